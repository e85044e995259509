"""Rearranged elements by movement ops alone: roll, diagonals, meshgrid and einops formulas."""

from __future__ import annotations

import re
from math import prod
from typing import Any, Self

from glassgrad.base.errors import ShapeError
from glassgrad.tensor.core import TensorCore
from glassgrad.tensor.record import axis_of
from glassgrad.tensor.symbolic_sizes import with_concrete_arguments

TOKEN = re.compile(r"\s*(\(|\)|\.\.\.|1|[A-Za-z_]\w*)")
ELLIPSIS_ALONE = "... alone"  # several axes outside of brackets, their product inside
Groups = list[list[str]]


class Arrangement(TensorCore):
    """roll, diagonal, diag, meshgrid and rearrange."""

    __slots__ = ()

    @with_concrete_arguments
    def roll(
        self, shifts: int | tuple[int, ...], dims: int | tuple[int, ...] | None = None
    ) -> Self:
        """Elements shifted along axes; those shifted beyond one end reappear at the other.

        >>> Tensor.arange(5).roll(2).tolist()
        [3, 4, 0, 1, 2]
        """
        if dims is None:
            if not isinstance(shifts, int):
                raise ShapeError(f"roll by {shifts} needs one axis for each", hint="pass dims=")
            return self.flatten().roll(shifts, 0).reshape(self.shape)
        moves = (shifts,) if isinstance(shifts, int) else tuple(shifts)
        axes = (dims,) if isinstance(dims, int) else tuple(dims)
        if len(moves) != len(axes):
            raise ShapeError(f"{len(moves)} shifts do not fit {len(axes)} axes")
        x = self
        for shift, axis in zip(moves, axes, strict=True):
            x = x._roll_axis(shift, axis_of(axis, self.ndim))
        return x

    def _roll_axis(self, shift: int, axis: int) -> Self:
        """Two copies side by side, and a slice of one length."""
        size = int(self.shape[axis]) if self.shape else 0
        shift = shift % size if size else 0
        if not shift:
            return self._wrap(self.uop)
        times = [1] * self.ndim
        times[axis] = 2
        pairs: list[tuple[int, int] | None] = [None] * self.ndim
        pairs[axis] = (size - shift, 2 * size - shift)
        return self.repeat(tuple(times)).shrink(pairs)

    @with_concrete_arguments
    def diagonal(self, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Self:
        """The elements x[i, i + offset] of two axes, as a new last axis.

        >>> Tensor([[1, 2], [3, 4]]).diagonal().tolist()
        [1, 4]
        """
        first, second = axis_of(dim1, self.ndim), axis_of(dim2, self.ndim)
        if self.ndim < 2 or first == second:
            raise ShapeError(
                f"a diagonal of {self.shape} needs two axes, not {dim1} and {dim2}",
                hint="dim1 and dim2 name different axes",
            )
        rest = [axis for axis in range(self.ndim) if axis not in (first, second)]
        x = self.permute((*rest, first, second))
        rows, columns = x.shape[-2:]
        top, left = max(-offset, 0), max(offset, 0)
        size = max(0, min(rows - top, columns - left))
        if size == 0:
            return x.flatten(-2)[..., :0]
        square = x[..., top : top + size, left : left + size]
        return square.flatten(-2)[..., :: size + 1]

    @with_concrete_arguments
    def diag(self) -> Self:
        """A vector as the diagonal of a matrix of zeros; the diagonal of a matrix.

        >>> Tensor([1, 2]).diag().tolist()
        [[1, 0], [0, 2]]
        """
        if self.ndim == 2:
            return self.diagonal()
        if self.ndim != 1:
            raise ShapeError(f"diag takes one or two axes, but the shape is {self.shape}")
        line = self._iota(self.shape[0])
        return line.unsqueeze(1).eq(line).where(self.unsqueeze(1), self.const_like(0))

    def meshgrid(self, *args: Self, indexing: str = "ij") -> tuple[Self, ...]:
        """Vectors broadcast over the grid that they span; "xy" swaps the first two axes.

        >>> [x.tolist() for x in Tensor([1, 2]).meshgrid(Tensor([3, 4]))]
        [[[1, 1], [2, 2]], [[3, 4], [3, 4]]]
        """
        if indexing not in ("ij", "xy"):
            raise ValueError(f'indexing is "ij" or "xy", not {indexing!r}')
        vectors = (self, *(self._as_tensor(vector, "a vector of meshgrid") for vector in args))
        for vector in vectors:
            if vector.ndim > 1:
                raise ShapeError(f"meshgrid takes vectors, but one has the shape {vector.shape}")
        order = list(range(len(vectors)))
        if indexing == "xy" and len(vectors) > 1:
            order[:2] = [1, 0]
        shape = tuple(vectors[number].numel() for number in order)
        grid = []
        for number, vector in enumerate(vectors):
            own = [1] * len(vectors)
            own[order.index(number)] = vector.numel()
            grid.append(vector.reshape(tuple(own)).expand(shape))
        return tuple(grid)

    def rearrange(self, formula: str, **sizes: int) -> Self:
        """Axes permuted, split and merged by a formula of names, as in einops.

        >>> Tensor.empty(2, 6, 5).rearrange("b (h w) c -> b c h w", h=2).shape
        (2, 5, 2, 3)
        """
        left, arrow, right = str(formula).partition("->")
        if not arrow:
            raise ShapeError(f"rearrange by {formula!r} has no arrow", hint="such as 'a b -> b a'")
        old = _name_axes(_groups(left, formula), self.ndim, formula)
        dots = [name for group in old for name in group if name.startswith("...")]
        new = [part for group in _groups(right, formula) for part in _expand_ellipsis(group, dots)]
        known = _axis_sizes(old, self.shape, sizes, formula)
        names = [name for group in old for name in group]
        unused = sizes.keys() - set(names)
        if unused:
            raise ShapeError(f"{formula!r} names no axis {min(unused)}, which was given a size")
        wanted = [name for group in new for name in group]
        if sorted(names) != sorted(wanted) or len(set(names)) != len(names):
            raise ShapeError(
                f"cannot rearrange by {formula!r}", hint="both sides name the same axes, once each"
            )
        apart = self.reshape(tuple(known[name] for name in names))
        ordered = apart.permute(tuple(names.index(name) for name in wanted))
        sizes_of_new = [prod([known[name] for name in group]) for group in new]
        return ordered.reshape(tuple(sizes_of_new))


def _groups(side: str, formula: str) -> Groups:
    """One side of a formula as groups of names: a (b c) 1 -> [[a], [b, c], []]"""
    groups: Groups = []
    inside: list[str] | None = None
    at, text = 0, side.strip()
    while at < len(text):
        match = TOKEN.match(text, at)
        token = match[1] if match else ""
        if match is None or ((token == "(") != (inside is None) and token in "()"):
            raise ShapeError(
                f"cannot read {text[at:]!r} in {formula!r}",
                hint="names, 1, ... and groups in brackets",
            )
        at = match.end()
        if token == "(":
            inside = []
        elif token == ")":
            groups.append(inside or [])
            inside = None
        elif inside is not None:
            inside += [] if token == "1" else [token]
        else:
            groups.append([] if token == "1" else [ELLIPSIS_ALONE if token == "..." else token])
    if inside is not None:
        raise ShapeError(f"a bracket of {formula!r} is not closed")
    return groups


def _name_axes(groups: Groups, ndim: int, formula: str) -> Groups:
    """The left side with a unique name for every axis that ... stands for."""
    rest = ndim - sum(group != [ELLIPSIS_ALONE] for group in groups)
    dots = sum(group == [ELLIPSIS_ALONE] for group in groups)
    is_inside = any("..." in group for group in groups)
    if rest < 0 or (rest and not dots) or dots > 1 or is_inside:
        raise ShapeError(
            f"{formula!r} does not fit a tensor of {ndim} axes",
            hint="the left side has one name or group for each axis",
        )
    found: Groups = []
    for group in groups:
        found += [[f"...{i}"] for i in range(rest)] if group == [ELLIPSIS_ALONE] else [group]
    return found


def _expand_ellipsis(group: list[str], dots: list[str]) -> Groups:
    """A group of the right side with ... expanded; outside of brackets, ... is several axes."""
    if group == [ELLIPSIS_ALONE]:
        return [[name] for name in dots]
    return [[name for token in group for name in (dots if token == "..." else [token])]]


def _axis_sizes(groups: Groups, shape: Any, sizes: dict[str, int], formula: str) -> dict[str, int]:
    """The size of every name; one unknown size per group is found by division."""
    known = dict(sizes)
    for group, size in zip(groups, shape, strict=True):
        open_names = [name for name in group if name not in known]
        rest = prod(known[name] for name in group if name in known)
        if len(open_names) == 1:
            known[open_names[0]] = size // rest if rest else 0
        if len(open_names) > 1 or prod(known[name] for name in group) != size:
            words = " ".join(group) or "1"
            raise ShapeError(
                f"({words}) of {formula!r} does not fit an axis of {size}",
                hint="pass the sizes of all names of a group but one",
            )
    return known
