"""Quantised matrices in the layout of a GGUF file, and products that dequantise inside the kernel.

A row consists of blocks of 32 or 256 numbers, each block of codes of a few bits and scales (Q4_0,
Q8_0, Q4_K and Q6_K). A product reads the bytes of the file; dequantised numbers are never stored.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple

import numpy as np

from glassgrad.nn.files.gguf_dequantise import six_bit_scales
from glassgrad.tensor.tensor import Tensor

Array = np.ndarray[Any, Any]
Parts = dict[str, Tensor]
MAX_FUSED_ROWS = 3  # rows of x; for more the matrix is dequantised once and shared by all of them


class Dequantised(NamedTuple):
    """codes * scale - minimum"""

    codes: Tensor
    scale: Tensor
    minimum: Tensor | None = None


class Format(NamedTuple):
    """A block is (groups, pieces, parts, width) numbers; one byte holds numbers of several pieces.
    `arrays` splits the bytes of blocks (rows, blocks, bytes) into codes and scales; `read` decodes
    one piece, or all of them (None).
    """

    shape: tuple[int, int, int, int]
    arrays: Callable[[Array], dict[str, Array]]
    read: Callable[[Parts, int | None], Dequantised]


def _halves(raw: Array, *offsets: int) -> list[Array]:
    """float16 at these byte offsets of every block: (rows, blocks, 1, 1, 1, 1)"""
    rows, count, _ = raw.shape
    halves = raw.reshape(rows, -1).view(np.float16).reshape(rows, count, -1)
    return [halves[:, :, at // 2].reshape(rows, count, 1, 1, 1, 1) for at in offsets]


def _of(part: Tensor, piece: int | None) -> Tensor:
    """One piece of (…, pieces or 1, parts, width); all of it for None."""
    return part if piece is None else part[..., min(piece, int(part.shape[-3]) - 1), :, :]


def _bits(codes: Tensor, piece: int | None, shifts: tuple[int, ...], mask: int) -> Tensor:
    """The bits of each byte that belong to a piece."""
    if piece is None:
        return (codes >> Tensor(shifts).cast(codes.dtype).reshape(-1, 1, 1)) & mask
    return (_of(codes, piece) >> shifts[piece]) & mask


def _q8_0_arrays(raw: Array) -> dict[str, Array]:
    (scale,) = _halves(raw, 0)
    return {"codes": raw[:, :, None, None, None, 2:].view(np.int8), "scale": scale}


def _q8_0(parts: Parts, piece: int | None) -> Dequantised:
    return Dequantised(_of(parts["codes"], piece).float(), _of(parts["scale"], piece).float())


def _q4_0_arrays(raw: Array) -> dict[str, Array]:
    (scale,) = _halves(raw, 0)
    return {"codes": raw[:, :, None, None, None, 2:], "scale": scale}


def _q4_0(parts: Parts, piece: int | None) -> Dequantised:
    codes = _bits(parts["codes"], piece, (0, 4), 15).float() - 8
    return Dequantised(codes, _of(parts["scale"], piece).float())


def _q4_k_arrays(raw: Array) -> dict[str, Array]:
    rows, count, _ = raw.shape
    scale, minimum = _halves(raw, 0, 2)
    fine = six_bit_scales(raw[:, :, 4:16].reshape(-1, 12))
    scales, minimums = (six_bits.reshape(rows, count, 4, 2, 1, 1) for six_bits in fine)
    codes = raw[:, :, 16:].reshape(rows, count, 4, 1, 1, 32)
    return {
        "codes": codes,
        "scale": scale,
        "minimum": minimum,
        "scales": scales,
        "minimums": minimums,
    }


def _q4_k(parts: Parts, piece: int | None) -> Dequantised:
    codes = _bits(parts["codes"], piece, (0, 4), 15).float()
    scale, minimum = (_of(parts[name], piece).float() for name in ("scale", "minimum"))
    scales, minimums = (_of(parts[name], piece).float() for name in ("scales", "minimums"))
    return Dequantised(codes, scales * scale, minimums * minimum)


def _q6_k_arrays(raw: Array) -> dict[str, Array]:
    rows, count, _ = raw.shape
    (scale,) = _halves(raw, 208)
    return {
        "low": raw[:, :, :128].reshape(rows, count, 2, 2, 2, 16),
        "high": raw[:, :, 128:192].reshape(rows, count, 2, 1, 2, 16),
        "scales": raw[:, :, 192:208].view(np.int8).reshape(rows, count, 2, 4, 2, 1),
        "scale": scale,
    }


def _q6_k(parts: Parts, piece: int | None) -> Dequantised:
    """Pieces 0 and 1 are the low four bits of their bytes, pieces 2 and 3 the high four."""
    high, low = _bits(parts["high"], piece, (0, 2, 4, 6), 3), parts["low"]
    if piece is None:
        both = low.unsqueeze(-4) >> Tensor((0, 4)).cast(low.dtype).reshape(2, 1, 1, 1)
        low = both.flatten(-4, -3)
    else:
        low = low[..., piece % 2, :, :] >> (4 * (piece // 2))
    codes = ((low & 15) | (high << 4)).float() - 32
    return Dequantised(
        codes, _of(parts["scales"], piece).float() * _of(parts["scale"], piece).float()
    )


FORMATS = {  # by GGUF type number
    2: Format((1, 2, 1, 16), _q4_0_arrays, _q4_0),
    8: Format((1, 1, 1, 32), _q8_0_arrays, _q8_0),
    12: Format((4, 2, 1, 32), _q4_k_arrays, _q4_k),
    14: Format((2, 4, 2, 16), _q6_k_arrays, _q6_k),
}


class Blocks:
    """A quantised matrix (rows, columns). It refers to a file and is not part of a model's state.

    >>> blocks = Blocks(8, np.tile(np.uint8([0, 60] + [3] * 32), (2, 1, 1)))  # the scale is 1.0
    >>> blocks.shape, blocks.times(Tensor.ones(32)).tolist()
    ((2, 32), [96.0, 96.0])
    """

    __slots__ = ("kind", "parts", "raw")
    ndim = 2
    holds_state = False

    def __init__(self, kind: int, raw: Array) -> None:
        self.kind, self.raw = kind, raw
        arrays = FORMATS[kind].arrays(raw)
        self.parts = {
            name: Tensor.from_memory(array).is_param_(is_param=False)
            for name, array in arrays.items()
        }

    @property
    def shape(self) -> tuple[int, int]:
        rows, count, _ = self.raw.shape
        return rows, count * prod(FORMATS[self.kind].shape)

    def times(self, x: Tensor) -> Tensor:
        """x @ matrix.T: (…, columns) -> (…, rows)"""
        if prod(x.shape[:-1]) > MAX_FUSED_ROWS:
            return x.linear(self.numbers().contiguous().transpose())
        shape, _, read = FORMATS[self.kind]
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
            total = total if piece.minimum is None else total - piece.minimum * numbers
        return total.sum((-4, -3, -2, -1))

    def rows(self, index: Tensor) -> Tensor:
        """Rows by index, dequantised: (…) -> (…, columns)"""
        return self._read({name: part[index] for name, part in self.parts.items()})

    def numbers(self) -> Tensor:
        """The whole matrix, dequantised lazily: (rows, columns)"""
        return self._read(self.parts)

    def _read(self, parts: Parts) -> Tensor:
        codes, scale, minimum = FORMATS[self.kind].read(parts, None)
        numbers = codes * scale if minimum is None else codes * scale - minimum
        return numbers.flatten(-5)

    def arranged(self, order: Array) -> Blocks:
        """The matrix with its rows reordered."""
        return Blocks(self.kind, np.ascontiguousarray(self.raw[order]))

    def cat(self, *others: Blocks) -> Blocks:
        """Concatenates matrices of the same format along rows."""
        return Blocks(self.kind, np.concatenate([self.raw, *(other.raw for other in others)]))


class QuantisedLinear:
    """Linear with a quantised weight."""

    def __init__(self, blocks: Blocks, bias: Tensor | None = None) -> None:
        self.blocks, self.bias = blocks, bias

    def __call__(self, x: Tensor) -> Tensor:
        product = self.blocks.times(x)
        return product if self.bias is None else product + self.bias


class QuantisedEmbedding:
    """Embedding with a quantised table."""

    def __init__(self, blocks: Blocks) -> None:
        self.blocks = blocks

    def __call__(self, idx: Tensor) -> Tensor:
        return self.blocks.rows(idx)
