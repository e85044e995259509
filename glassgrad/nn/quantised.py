"""Matrices of few bits, as they lie in a file -> products with them, computed inside of kernels.

Numbers come in blocks of 32 or 256 along a row, each with codes of a few bits and scales (GGUF's
Q4_0, Q8_0, Q4_K and Q6_K). They stay as they are: a product reads the bytes, and what they stand
for is in no memory.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple

import numpy as np

from glassgrad.nn.files.quantised import six_bit_scales
from glassgrad.tensor.tensor import Tensor

Array = np.ndarray[Any, Any]
Parts = dict[str, Tensor]
FEW = 3  # rows; for more the matrix is written out first, and shared by all of them


class Numbers(NamedTuple):
    """code · scale - least"""

    codes: Tensor
    scale: Tensor
    least: Tensor | None = None


class Format(NamedTuple):
    """The numbers of a block as (groups, pieces, parts, width): one byte holds numbers of several
    pieces. `arrays` says where the bytes of blocks (rows, blocks, bytes) are; `read` makes numbers
    of them, of one piece or of all (None).
    """

    shape: tuple[int, int, int, int]
    arrays: Callable[[Array], dict[str, Array]]
    read: Callable[[Parts, int | None], Numbers]


def _halves(raw: Array, *places: int) -> list[Array]:
    """float16 at these bytes of every block: (rows, blocks, 1, 1, 1, 1)"""
    rows, count, _ = raw.shape
    halves = raw.reshape(rows, -1).view(np.float16).reshape(rows, count, -1)
    return [halves[:, :, place // 2].reshape(rows, count, 1, 1, 1, 1) for place in places]


def _of(part: Tensor, piece: int | None) -> Tensor:
    """What a piece needs of (…, pieces or 1, parts, width)."""
    return part if piece is None else part[..., min(piece, int(part.shape[-3]) - 1), :, :]


def _bits(codes: Tensor, piece: int | None, shifts: tuple[int, ...], mask: int) -> Tensor:
    """Some bits of every byte for each piece."""
    if piece is None:
        return (codes >> Tensor(shifts).cast(codes.dtype).reshape(-1, 1, 1)) & mask
    return (_of(codes, piece) >> shifts[piece]) & mask


def _q8_0_arrays(raw: Array) -> dict[str, Array]:
    (scale,) = _halves(raw, 0)
    return {"codes": raw[:, :, None, None, None, 2:].view(np.int8), "scale": scale}


def _q8_0(parts: Parts, piece: int | None) -> Numbers:
    return Numbers(_of(parts["codes"], piece).float(), _of(parts["scale"], piece).float())


def _q4_0_arrays(raw: Array) -> dict[str, Array]:
    (scale,) = _halves(raw, 0)
    return {"codes": raw[:, :, None, None, None, 2:], "scale": scale}


def _q4_0(parts: Parts, piece: int | None) -> Numbers:
    codes = _bits(parts["codes"], piece, (0, 4), 15).float() - 8
    return Numbers(codes, _of(parts["scale"], piece).float())


def _q4_k_arrays(raw: Array) -> dict[str, Array]:
    rows, count, _ = raw.shape
    scale, least = _halves(raw, 0, 2)
    fine = six_bit_scales(raw[:, :, 4:16].reshape(-1, 12))
    scales, leasts = (six_bits.reshape(rows, count, 4, 2, 1, 1) for six_bits in fine)
    codes = raw[:, :, 16:].reshape(rows, count, 4, 1, 1, 32)
    return {"codes": codes, "scale": scale, "least": least, "scales": scales, "leasts": leasts}


def _q4_k(parts: Parts, piece: int | None) -> Numbers:
    codes = _bits(parts["codes"], piece, (0, 4), 15).float()
    scale, least = (_of(parts[name], piece).float() for name in ("scale", "least"))
    scales, leasts = (_of(parts[name], piece).float() for name in ("scales", "leasts"))
    return Numbers(codes, scales * scale, leasts * least)


def _q6_k_arrays(raw: Array) -> dict[str, Array]:
    rows, count, _ = raw.shape
    (scale,) = _halves(raw, 208)
    return {
        "low": raw[:, :, :128].reshape(rows, count, 2, 2, 2, 16),
        "high": raw[:, :, 128:192].reshape(rows, count, 2, 1, 2, 16),
        "scales": raw[:, :, 192:208].view(np.int8).reshape(rows, count, 2, 4, 2, 1),
        "scale": scale,
    }


def _q6_k(parts: Parts, piece: int | None) -> Numbers:
    """The first two pieces have the lower bits of their bytes, the last two the upper ones."""
    high, low = _bits(parts["high"], piece, (0, 2, 4, 6), 3), parts["low"]
    if piece is None:
        both = low.unsqueeze(-4) >> Tensor((0, 4)).cast(low.dtype).reshape(2, 1, 1, 1)
        low = both.flatten(-4, -3)
    else:
        low = low[..., piece % 2, :, :] >> (4 * (piece // 2))
    codes = ((low & 15) | (high << 4)).float() - 32
    return Numbers(codes, _of(parts["scales"], piece).float() * _of(parts["scale"], piece).float())


KEPT = {  # by their numbers in GGUF
    2: Format((1, 2, 1, 16), _q4_0_arrays, _q4_0),
    8: Format((1, 1, 1, 32), _q8_0_arrays, _q8_0),
    12: Format((4, 2, 1, 32), _q4_k_arrays, _q4_k),
    14: Format((2, 4, 2, 16), _q6_k_arrays, _q6_k),
}


class Blocks:
    """A matrix (rows, columns). It is no part of a model's state: it is somebody's file.

    >>> blocks = Blocks(8, np.tile(np.uint8([0, 60] + [3] * 32), (2, 1, 1)))  # the scale is 1.0
    >>> blocks.shape, blocks.times(Tensor.ones(32)).tolist()
    ((2, 32), [96.0, 96.0])
    """

    __slots__ = ("kind", "parts", "raw")
    ndim = 2
    holds_state = False

    def __init__(self, kind: int, raw: Array) -> None:
        self.kind, self.raw = kind, raw
        arrays = KEPT[kind].arrays(raw)
        self.parts = {
            name: Tensor.from_memory(array).is_param_(is_param=False)
            for name, array in arrays.items()
        }

    @property
    def shape(self) -> tuple[int, int]:
        rows, count, _ = self.raw.shape
        return rows, count * prod(KEPT[self.kind].shape)

    def times(self, x: Tensor) -> Tensor:
        """x @ matrix.T: (…, columns) -> (…, rows)"""
        if prod(x.shape[:-1]) > FEW:
            return x.linear(self.numbers().contiguous().transpose())
        shape, _, read = KEPT[self.kind]
        split = x.reshape(*x.shape[:-1], 1, -1, *shape)
        pieces = [(read(self.parts, i), split[..., i, :, :]) for i in range(shape[1])]
        terms = [codes * numbers for (codes, _, _), numbers in pieces]
        first = pieces[0][0].scale
        if all(piece.scale.uop is first.uop for piece, _ in pieces):
            total = sum(terms[1:], terms[0]) * first
        else:
            scaled = [term * piece.scale for term, (piece, _) in zip(terms, pieces, strict=True)]
            total = sum(scaled[1:], scaled[0])
        for piece, numbers in pieces:
            total = total if piece.least is None else total - piece.least * numbers
        return total.sum((-4, -3, -2, -1))

    def rows(self, index: Tensor) -> Tensor:
        """Some rows as numbers: (…) -> (…, columns)"""
        return self._read({name: part[index] for name, part in self.parts.items()})

    def numbers(self) -> Tensor:
        """All of it, not computed yet: (rows, columns)"""
        return self._read(self.parts)

    def _read(self, parts: Parts) -> Tensor:
        codes, scale, least = KEPT[self.kind].read(parts, None)
        numbers = codes * scale if least is None else codes * scale - least
        return numbers.flatten(-5)

    def arranged(self, order: Array) -> Blocks:
        """The rows in another order."""
        return Blocks(self.kind, np.ascontiguousarray(self.raw[order]))

    def cat(self, *others: Blocks) -> Blocks:
        """These rows, and those of others of the same kind."""
        return Blocks(self.kind, np.concatenate([self.raw, *(other.raw for other in others)]))


class QuantisedLinear:
    """Linear, with a matrix of few bits."""

    def __init__(self, blocks: Blocks, bias: Tensor | None = None) -> None:
        self.blocks, self.bias = blocks, bias

    def __call__(self, x: Tensor) -> Tensor:
        product = self.blocks.times(x)
        return product if self.bias is None else product + self.bias


class QuantisedEmbedding:
    """Embedding, with a table of few bits."""

    def __init__(self, blocks: Blocks) -> None:
        self.blocks = blocks

    def __call__(self, idx: Tensor) -> Tensor:
        return self.blocks.rows(idx)
