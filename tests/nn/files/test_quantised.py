"""Blocks are read as a loop over their numbers, written from the description, reads them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from glassgrad.nn.files.quantised import FORMATS

Block = list[int]


def half(block: Block, at: int) -> float:
    return float(np.array(block[at : at + 2], np.uint8).view(np.float16)[0])


def signed(byte: int) -> int:
    return byte - 256 if byte > 127 else byte


def nibble(codes: Block, i: int, count: int) -> int:
    return codes[i] & 15 if i < count else codes[i - count] >> 4


def q4_0(block: Block, i: int) -> float:
    return (nibble(block[2:], i, 16) - 8) * half(block, 0)


def q4_1(block: Block, i: int) -> float:
    return nibble(block[4:], i, 16) * half(block, 0) + half(block, 2)


def q5_0(block: Block, i: int) -> float:
    fifth = int.from_bytes(bytes(block[2:6]), "little") >> i & 1
    return ((nibble(block[6:], i, 16) | fifth << 4) - 16) * half(block, 0)


def q8_0(block: Block, i: int) -> float:
    return signed(block[2 + i]) * half(block, 0)


def scale_and_least(s: Block, j: int) -> tuple[int, int]:
    if j < 4:
        return s[j] & 63, s[j + 4] & 63
    return (s[j + 4] & 15) | (s[j - 4] >> 6) << 4, (s[j + 4] >> 4) | (s[j] >> 6) << 4


def q4_k(block: Block, i: int) -> float:
    scale, least = scale_and_least(block[4:16], i // 32)
    byte = block[16 + i // 64 * 32 + i % 32]
    code = byte >> 4 if i % 64 >= 32 else byte & 15
    return half(block, 0) * scale * code - half(block, 2) * least


def q5_k(block: Block, i: int) -> float:
    scale, least = scale_and_least(block[4:16], i // 32)
    byte = block[48 + i // 64 * 32 + i % 32]
    code = byte >> 4 if i % 64 >= 32 else byte & 15
    code += (block[16 + i % 32] >> (i // 32) & 1) * 16
    return half(block, 0) * scale * code - half(block, 2) * least


def q6_k(block: Block, i: int) -> float:
    part, place = divmod(i, 128)
    quarter, lane = divmod(place, 32)
    byte = block[part * 64 + (quarter % 2) * 32 + lane]
    low = byte >> 4 if quarter >= 2 else byte & 15
    high = block[128 + part * 32 + lane] >> (2 * quarter) & 3
    return half(block, 208) * signed(block[192 + i // 16]) * ((low | high << 4) - 32)


READERS: dict[int, Callable[[Block, int], float]] = {
    2: q4_0, 3: q4_1, 6: q5_0, 8: q8_0, 12: q4_k, 13: q5_k, 14: q6_k,
}  # fmt: skip
HALVES = {2: [0], 3: [0, 2], 6: [0], 8: [0], 12: [0, 2], 13: [0, 2], 14: [208]}


def random_blocks(kind: int, count: int = 5) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(kind)
    blocks = rng.integers(0, 256, (count, FORMATS[kind].nbytes), np.uint8)
    for at in HALVES[kind]:
        scales = rng.normal(0, 0.1, (count, 1)).astype(np.float16)
        blocks[:, at : at + 2] = scales.view(np.uint8)
    return blocks


@pytest.mark.parametrize("kind", READERS)
def test_blocks_are_read_as_they_are_described(kind: int) -> None:
    blocks = random_blocks(kind)
    found = FORMATS[kind].read(blocks)
    wanted = [[READERS[kind](b, i) for i in range(found.shape[1])] for b in blocks.tolist()]
    assert found.dtype == np.float32
    assert found.shape == (5, FORMATS[kind].numbers)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


def test_every_format_is_tested() -> None:
    assert READERS.keys() == FORMATS.keys()
