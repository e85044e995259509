"""Dequantisation against scalar references written from the description of the formats."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from glassgrad.nn.files.gguf_dequantise import FORMATS

Block = list[int]


def half(block: Block, offset: int) -> float:
    return float(np.array(block[offset : offset + 2], np.uint8).view(np.float16)[0])


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


def q5_1(block: Block, i: int) -> float:
    fifth = int.from_bytes(bytes(block[4:8]), "little") >> i & 1
    return (nibble(block[8:], i, 16) | fifth << 4) * half(block, 0) + half(block, 2)


def two_bits(codes: Block, i: int) -> int:
    half, index = divmod(i, 128)
    return codes[half * 32 + index % 32] >> (index // 32 * 2) & 3


def q2_k(block: Block, i: int) -> float:
    packed = block[i // 16]
    code = two_bits(block[16:80], i)
    return half(block, 80) * (packed & 15) * code - half(block, 82) * (packed >> 4)


def q3_k(block: Block, i: int) -> float:
    code = two_bits(block[32:96], i) - (0 if block[i % 32] >> (i // 32) & 1 else 4)
    packed, k = block[96:108], i // 16
    low = packed[k] & 15 if k < 8 else packed[k - 8] >> 4
    high = packed[8 + k % 4] >> (k // 4 * 2) & 3
    return half(block, 108) * ((low | high << 4) - 32) * code


LEVELS = (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)


def iq4_nl(block: Block, i: int) -> float:
    return LEVELS[nibble(block[2:], i, 16)] * half(block, 0)


def iq4_xs(block: Block, i: int) -> float:
    k = i // 32
    low = block[4 + k // 2] >> (k % 2 * 4) & 15
    high = (block[2] | block[3] << 8) >> 2 * k & 3
    code = nibble(block[8 + k * 16 : 24 + k * 16], i % 32, 16)
    return half(block, 0) * ((low | high << 4) - 32) * LEVELS[code]


def q8_0(block: Block, i: int) -> float:
    return signed(block[2 + i]) * half(block, 0)


def scale_and_minimum(s: Block, j: int) -> tuple[int, int]:
    if j < 4:
        return s[j] & 63, s[j + 4] & 63
    return (s[j + 4] & 15) | (s[j - 4] >> 6) << 4, (s[j + 4] >> 4) | (s[j] >> 6) << 4


def q4_k(block: Block, i: int) -> float:
    scale, minimum = scale_and_minimum(block[4:16], i // 32)
    byte = block[16 + i // 64 * 32 + i % 32]
    code = byte >> 4 if i % 64 >= 32 else byte & 15
    return half(block, 0) * scale * code - half(block, 2) * minimum


def q5_k(block: Block, i: int) -> float:
    scale, minimum = scale_and_minimum(block[4:16], i // 32)
    byte = block[48 + i // 64 * 32 + i % 32]
    code = byte >> 4 if i % 64 >= 32 else byte & 15
    code += (block[16 + i % 32] >> (i // 32) & 1) * 16
    return half(block, 0) * scale * code - half(block, 2) * minimum


def q6_k(block: Block, i: int) -> float:
    part, index = divmod(i, 128)
    quarter, lane = divmod(index, 32)
    byte = block[part * 64 + (quarter % 2) * 32 + lane]
    low = byte >> 4 if quarter >= 2 else byte & 15
    high = block[128 + part * 32 + lane] >> (2 * quarter) & 3
    return half(block, 208) * signed(block[192 + i // 16]) * ((low | high << 4) - 32)


REFERENCES: dict[int, Callable[[Block, int], float]] = {
    2: q4_0, 3: q4_1, 6: q5_0, 7: q5_1, 8: q8_0, 10: q2_k, 11: q3_k, 12: q4_k, 13: q5_k, 14: q6_k,
    20: iq4_nl, 23: iq4_xs,
}  # fmt: skip
SCALE_OFFSETS = {  # byte offsets of the float16 scales and minimums of a block
    2: [0], 3: [0, 2], 6: [0], 7: [0, 2], 8: [0], 10: [80, 82], 11: [108], 12: [0, 2], 13: [0, 2],
    14: [208], 20: [0], 23: [0],
}  # fmt: skip


def random_blocks(kind: int, count: int = 5) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(kind)
    blocks = rng.integers(0, 256, (count, FORMATS[kind].block_bytes), np.uint8)
    for offset in SCALE_OFFSETS[kind]:
        scales = rng.normal(0, 0.1, (count, 1)).astype(np.float16)
        blocks[:, offset : offset + 2] = scales.view(np.uint8)
    return blocks


@pytest.mark.parametrize("kind", REFERENCES)
def test_blocks_are_dequantised_as_described(kind: int) -> None:
    blocks = random_blocks(kind)
    found = FORMATS[kind].dequantise(blocks)
    wanted = [[REFERENCES[kind](b, i) for i in range(found.shape[1])] for b in blocks.tolist()]
    assert found.dtype == np.float32
    assert found.shape == (5, FORMATS[kind].block_size)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


def test_every_format_is_tested() -> None:
    assert REFERENCES.keys() == FORMATS.keys()
