"""Matrices of few bits, as they lie in a file -> products with them, computed inside of kernels.

Numbers come in blocks of 32 along a row, each a scale and 32 codes of 8 or 4 bits (GGUF's Q8_0 and
Q4_0). They stay as they are: a product reads the bytes, and what they stand for is in no memory.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple

import numpy as np

from glassgrad.tensor.tensor import Tensor

Array = np.ndarray[Any, Any]
NUMBERS = 32  # of a block
FEW = 3  # rows; for more the matrix is written out first, and shared by all of them


def _whole(codes: Tensor, shift: int | Tensor) -> Tensor:
    return codes.float()


def _nibble(codes: Tensor, shift: int | Tensor) -> Tensor:
    """Four bits of each byte; 8 stands for nothing."""
    return ((codes >> shift) & 15).float() - 8


class Format(NamedTuple):
    """The dtype of a block's codes, and how numbers are read from them: all of a byte's first bits,
    then all of its second ones.
    """

    codes: type[np.generic]
    shifts: tuple[int, ...]
    read: Callable[[Tensor, int | Tensor], Tensor]


KEPT = {2: Format(np.uint8, (0, 4), _nibble), 8: Format(np.int8, (0,), _whole)}  # as in GGUF


class Blocks:
    """A matrix (rows, columns). It is no part of a model's state: it is somebody's file.

    >>> blocks = Blocks(8, np.tile(np.uint8([0, 60] + [3] * 32), (2, 1, 1)))  # the scale is 1.0
    >>> blocks.shape, blocks.times(Tensor.ones(32)).tolist()
    ((2, 32), [96.0, 96.0])
    """

    __slots__ = ("codes", "kind", "raw", "scales")
    ndim = 2

    def __init__(self, kind: int, raw: Array) -> None:
        form = KEPT[kind]
        rows, count, _ = raw.shape
        self.kind, self.raw = kind, raw
        halves = raw.reshape(rows, -1).view(np.float16).reshape(rows, count, -1)
        self.scales = Tensor(halves[:, :, 0], requires_grad=False)
        self.codes = Tensor(raw[:, :, 2:].view(form.codes), requires_grad=False)

    @property
    def shape(self) -> tuple[int, int]:
        rows, count, _ = self.raw.shape
        return rows, count * NUMBERS

    def times(self, x: Tensor) -> Tensor:
        """x @ matrix.T: (…, columns) -> (…, rows)"""
        if prod(x.shape[:-1]) > FEW:
            return x.linear(self.numbers().contiguous().transpose())
        _, shifts, read = KEPT[self.kind]
        split = x.reshape(*x.shape[:-1], 1, -1, len(shifts), NUMBERS // len(shifts))
        parts = [read(self.codes, shift) * split[..., i, :] for i, shift in enumerate(shifts)]
        total = sum(parts[1:], parts[0])
        return (total * self.scales.float().unsqueeze(-1)).sum((-2, -1))

    def rows(self, index: Tensor) -> Tensor:
        """Some rows as numbers: (…) -> (…, columns)"""
        return self._read(self.codes[index], self.scales[index])

    def numbers(self) -> Tensor:
        """All of it, not computed yet: (rows, columns)"""
        return self._read(self.codes, self.scales)

    def _read(self, codes: Tensor, scales: Tensor) -> Tensor:
        _, shifts, read = KEPT[self.kind]
        all_shifts = Tensor(shifts).cast(codes.dtype).reshape(-1, 1)
        numbers = read(codes.unsqueeze(-2), all_shifts).flatten(-2)
        return (numbers * scales.float().unsqueeze(-1)).flatten(-2)

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
