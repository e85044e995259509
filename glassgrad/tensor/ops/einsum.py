"""Einsum: sums of products named by letters, contracted two operands at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from glassgrad.base.dtype import DTypeLike, promote
from glassgrad.base.errors import DTypeError, ShapeError
from glassgrad.ir.ops import Ops
from glassgrad.tensor.core import TensorCore
from glassgrad.tensor.ops.reductions import accumulator
from glassgrad.tensor.record import dtype_of

ELLIPSIS_LETTERS = "①②③④⑤⑥⑦⑧⑨⑩⑪⑫⑬⑭⑮⑯"  # letters for the axes that ... stands for


class Einsum(TensorCore):
    """einsum."""

    __slots__ = ()

    @classmethod
    def einsum(
        cls,
        formula: str,
        *operands: Any,
        dtype: DTypeLike | None = None,
        acc_dtype: DTypeLike | None = None,
    ) -> Self:
        """Sums of products; letters missing in the result are summed over.

        >>> x, y = Tensor([[1, 2], [3, 4]]), Tensor([[5, 6], [7, 8]])
        >>> Tensor.einsum("ij,jk->ik", x, y).tolist()
        [[19, 22], [43, 50]]
        """
        dtype = acc_dtype if dtype is None else dtype
        one = operands[0] if len(operands) == 1 else None
        tensors: Sequence[Self] = one if isinstance(one, (list, tuple)) else operands
        if not isinstance(formula, str):
            raise ShapeError(
                "the formula of einsum comes first and is a string such as 'ij,jk->ik'"
            )
        if not all(isinstance(tensor, TensorCore) for tensor in tensors):
            raise DTypeError(f"einsum takes tensors, not {tensors!r}")
        terms, output = _terms(formula, [tensor.uop.shape for tensor in tensors])
        wanted = tensors[0].uop.dtype
        for tensor in tensors[1:]:
            wanted = promote(wanted, tensor.uop.dtype)
        wanted = wanted if dtype is None else dtype_of(dtype)
        wide = accumulator(wanted) if wanted.kind == "float" else wanted
        parts = [_unique(t.cast(wide), term) for t, term in zip(tensors, terms, strict=True)]
        total, letters = parts[0]
        for number, (tensor, own) in enumerate(parts[1:], start=2):
            later = set(output).union(*terms[number:])
            total, letters = _contract(total, letters, tensor, own, later)
        total, letters = _sum_unneeded(total, letters, set(output))
        ordered: Self = total.permute(tuple(letters.index(letter) for letter in output))
        return ordered.cast(wanted)


def _terms(formula: str, shapes: list[tuple[int, ...]]) -> tuple[list[str], str]:
    """The letters of every operand and of the result, with ... expanded."""
    left, arrow, right = formula.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(shapes):
        raise ShapeError(f"einsum {formula!r} names {len(terms)} operands, not {len(shapes)}")
    ellipsis_axes = [
        len(shape) - len(term.replace("...", "")) for term, shape in zip(terms, shapes, strict=True)
    ]
    max_ellipsis = max(
        (n for n, term in zip(ellipsis_axes, terms, strict=True) if "..." in term), default=0
    )
    full = []
    for term, shape, n in zip(terms, shapes, ellipsis_axes, strict=True):
        if n < 0 or (n and "..." not in term):
            raise ShapeError(
                f"{term!r} of einsum {formula!r} does not fit {shape}",
                hint="one letter for each axis, or ...",
            )
        full.append(term.replace("...", ELLIPSIS_LETTERS[max_ellipsis - n : max_ellipsis]))
    counts = "".join(full)
    alone = sorted(letter for letter in set(counts) if counts.count(letter) == 1)
    output = right.replace("...", ELLIPSIS_LETTERS[:max_ellipsis])
    if not arrow:
        output = ELLIPSIS_LETTERS[:max_ellipsis] + "".join(
            letter for letter in alone if letter not in ELLIPSIS_LETTERS
        )
    _check_letters(formula, full, output, shapes)
    return full, output


def _check_letters(
    formula: str, terms: list[str], output: str, shapes: list[tuple[int, ...]]
) -> None:
    sizes: dict[str, int] = {}
    for term, shape in zip(terms, shapes, strict=True):
        for letter, size in zip(term, shape, strict=True):
            known = sizes.setdefault(letter, size)
            if known != size and 1 not in (known, size):
                raise ShapeError(
                    f"{letter!r} of einsum {formula!r} is {known} for one operand and {size} for "
                    "another",
                    hint="a letter stands for one size",
                )
            sizes[letter] = size if known == 1 else known
    strange = [letter for letter in output if letter not in sizes or output.count(letter) > 1]
    if strange or not all(letter.isalpha() or letter in ELLIPSIS_LETTERS for letter in sizes):
        raise ShapeError(
            f"cannot read einsum {formula!r}",
            hint="such as 'ij,jk->ik'; the result names letters of the operands, once each",
        )


def _unique(x: TensorCore, letters: str) -> tuple[Any, str]:
    """A letter that occurs twice in an operand takes its diagonal."""
    for letter in dict.fromkeys(letters):
        while letters.count(letter) > 1:
            first = letters.index(letter)
            second = letters.index(letter, first + 1)
            if x.uop.shape[first] != x.uop.shape[second]:
                raise ShapeError(f"{letter!r} stands for {x.shape[first]} and {x.shape[second]}")
            x = x.diagonal(0, first, second)
            rest = letters[:first] + letters[first + 1 : second] + letters[second + 1 :]
            letters = rest + letter
    return x, letters


def _sum_unneeded(x: Any, letters: str, needed: set[str]) -> tuple[Any, str]:
    """The sum over letters that no later operand or the result needs."""
    axes = tuple(i for i, letter in enumerate(letters) if letter not in needed)
    if not axes:
        return x, letters
    return x._reduce(Ops.ADD, axes, keepdim=False), "".join(c for c in letters if c in needed)


def _contract(x: Any, left: str, y: Any, right: str, needed: set[str]) -> tuple[Any, str]:
    """(batch, left, 1, k) * (batch, 1, right, k), summed over k."""
    x, left = _sum_unneeded(x, left, needed | set(right))
    y, right = _sum_unneeded(y, right, needed | set(left))
    both = [letter for letter in left if letter in right]
    batch = [letter for letter in both if letter in needed]
    rest = [letter for letter in left if letter not in right]
    others = [letter for letter in right if letter not in left]
    summed = [letter for letter in both if letter not in needed]
    order = [*batch, *rest, *others, *summed]
    product = _aligned(x, left, order) * _aligned(y, right, order)
    if not summed:
        return product, "".join(order)
    axes = tuple(range(len(order) - len(summed), len(order)))
    return product._reduce(Ops.ADD, axes, keepdim=False), "".join([*batch, *rest, *others])


def _aligned(x: Any, letters: str, order: list[str]) -> Any:
    """Axes in the given order of letters, with size 1 for missing ones."""
    own = [letter for letter in order if letter in letters]
    moved = x.permute(tuple(letters.index(letter) for letter in own))
    sizes = dict(zip(own, moved.shape, strict=True))
    return moved.reshape(tuple(sizes.get(letter, 1) for letter in order))
