"""Dequantisation: blocks of the GGUF formats -> float32.

A block has codes of a few bits for 32 or 256 numbers, and scales.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]
SHIFTS = np.arange(0, 8, 2, dtype=np.uint8)[:, None]  # of the four 2-bit codes in a byte
# The values of the 4-bit codes of the non-linear formats, IQ4_NL and IQ4_XS.
LEVELS = np.array(
    [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], np.float32
)


class Format(NamedTuple):
    """A quantised format."""

    block_size: int  # numbers per block
    block_bytes: int
    dequantise: Callable[[Array], Array]  # (blocks, block_bytes) -> (blocks, block_size)


def _float16(blocks: Array, offset: int) -> Array:
    return np.ascontiguousarray(blocks[:, offset : offset + 2]).view(np.float16).astype(np.float32)


def _nibbles(codes: Array) -> Array:
    """The low nibbles of all bytes, then the high ones."""
    return np.concatenate([codes & 15, codes >> 4], -1).astype(np.float32)


def q4_0(blocks: Array) -> Array:
    """scale, 32 x 4 bits:  (code - 8) scale"""
    return (_nibbles(blocks[:, 2:]) - 8) * _float16(blocks, 0)


def q4_1(blocks: Array) -> Array:
    """scale, minimum, 32 x 4 bits:  code scale + minimum"""
    return _nibbles(blocks[:, 4:]) * _float16(blocks, 0) + _float16(blocks, 2)


def _five_bits(fifth: Array, codes: Array) -> Array:
    upper = np.unpackbits(fifth, axis=1, bitorder="little").astype(np.float32)
    return _nibbles(codes) + upper * 16


def q5_0(blocks: Array) -> Array:
    """scale, 32 fifth bits, 32 x 4 bits:  (code - 16) scale"""
    return (_five_bits(blocks[:, 2:6], blocks[:, 6:]) - 16) * _float16(blocks, 0)


def q5_1(blocks: Array) -> Array:
    """scale, minimum, 32 fifth bits, 32 x 4 bits:  code scale + minimum"""
    codes = _five_bits(blocks[:, 4:8], blocks[:, 8:])
    return codes * _float16(blocks, 0) + _float16(blocks, 2)


def q8_0(blocks: Array) -> Array:
    """scale, 32 x 8 bits:  code scale"""
    return np.ascontiguousarray(blocks[:, 2:]).view(np.int8) * _float16(blocks, 0)


def _two_bit_codes(codes: Array) -> Array:
    """64 bytes  ->  256 codes: in each half the lowest two bits of all bytes, then the next two"""
    return (codes.reshape(-1, 2, 1, 32) >> SHIFTS) & 3


def q2_k(blocks: Array) -> Array:
    """16 x (scale, minimum) of 4 bits, 256 x 2 bits, two scales for these"""
    scales = (blocks[:, :16] & 15) * _float16(blocks, 80)
    minimums = (blocks[:, :16] >> 4) * _float16(blocks, 82)
    numbers: Array = _scale_groups_of_16(_two_bit_codes(blocks[:, 16:80]), scales) - np.repeat(
        minimums, 16, axis=1
    )
    return numbers


def q3_k(blocks: Array) -> Array:
    """256 third bits, 256 x 2 bits, 16 scales of 6 bits, a scale:  (code - 4) (scale - 32) scale"""
    shifts = np.arange(8, dtype=np.uint8).reshape(2, 4, 1)
    third = (blocks[:, None, None, :32] >> shifts) & 1
    codes = (_two_bit_codes(blocks[:, 32:96]) | (third << 2)).astype(np.float32) - 4
    low = np.concatenate([blocks[:, 96:104] & 15, blocks[:, 96:104] >> 4], 1)
    high = ((blocks[:, None, 104:108] >> SHIFTS) & 3).reshape(-1, 16)
    scales = (low | (high << 4)).astype(np.float32) - 32
    return _scale_groups_of_16(codes, scales * _float16(blocks, 108))


def _scale_groups_of_16(codes: Array, scales: Array) -> Array:
    """Multiply every 16 codes by their scale."""
    numbers: Array = codes.reshape(-1, 16, 16) * scales[:, :, None]
    return numbers.reshape(-1, 256)


def six_bit_scales(packed: Array) -> tuple[Array, Array]:
    """12 bytes  ->  8 scales and 8 minimums of 6 bits

    The first four of each have bytes of their own, whose high two bits belong to the last four.
    """
    scales, minimums, mixed = packed[:, 0:4], packed[:, 4:8], packed[:, 8:12]
    last_scales = (mixed & 15) | ((scales >> 6) << 4)
    last_minimums = (mixed >> 4) | ((minimums >> 6) << 4)
    return (
        np.concatenate([scales & 63, last_scales], 1),
        np.concatenate([minimums & 63, last_minimums], 1),
    )


def _scale_groups_of_32(blocks: Array, codes: Array) -> Array:
    """Scale 8 groups of 32 codes, whose scales and minimums have scales in turn."""
    scales, minimums = six_bit_scales(blocks[:, 4:16])
    scales, minimums = scales * _float16(blocks, 0), minimums * _float16(blocks, 2)
    numbers: Array = codes * scales[:, :, None] - minimums[:, :, None]
    return numbers.reshape(len(blocks), 256)


def q4_k(blocks: Array) -> Array:
    """two scales, 12 bytes of scales, 256 x 4 bits"""
    codes = _nibbles(blocks[:, 16:].reshape(-1, 4, 32)).reshape(-1, 8, 32)
    return _scale_groups_of_32(blocks, codes)


def q5_k(blocks: Array) -> Array:
    """two scales, 12 bytes of scales, 256 fifth bits, 256 x 4 bits"""
    codes = _nibbles(blocks[:, 48:].reshape(-1, 4, 32)).reshape(-1, 8, 32)
    fifth = (blocks[:, None, 16:48] >> np.arange(8, dtype=np.uint8)[:, None]) & 1
    return _scale_groups_of_32(blocks, codes + fifth.astype(np.float32) * 16)


def q6_k(blocks: Array) -> Array:
    """256 x 4 bits, 256 x 2 upper bits, 16 scales of 8 bits, a scale:  (code - 32) scale scale"""
    low = blocks[:, :128].reshape(-1, 2, 2, 32)  # two halves of 128 numbers
    low = np.concatenate([low & 15, low >> 4], 2)  # (n, 2, 4, 32)
    codes = (low | (_two_bit_codes(blocks[:, 128:192]) << 4)).astype(np.float32) - 32
    scales = np.ascontiguousarray(blocks[:, 192:208]).view(np.int8) * _float16(blocks, 208)
    return _scale_groups_of_16(codes, scales)


def iq4_nl(blocks: Array) -> Array:
    """scale, 32 x 4 bits:  LEVELS[code] scale"""
    return LEVELS[_nibbles(blocks[:, 2:]).astype(np.intp)] * _float16(blocks, 0)


def iq4_xs(blocks: Array) -> Array:
    """scale, 8 x 2 and 8 x 4 bits of scales, 256 x 4 bits:  LEVELS[code] (scale - 32) scale"""
    high = ((blocks[:, 2:4, None] >> SHIFTS[:, 0]) & 3).reshape(-1, 8)
    low = np.stack([blocks[:, 4:8] & 15, blocks[:, 4:8] >> 4], 2).reshape(-1, 8)
    scales = ((low | (high << 4)).astype(np.float32) - 32) * _float16(blocks, 0)
    codes = _nibbles(blocks[:, 8:].reshape(-1, 8, 16)).astype(np.intp)
    numbers: Array = LEVELS[codes] * scales[:, :, None]
    return numbers.reshape(-1, 256)


FORMATS = {  # by GGUF type number
    2: Format(32, 18, q4_0),
    3: Format(32, 20, q4_1),
    6: Format(32, 22, q5_0),
    7: Format(32, 24, q5_1),
    8: Format(32, 34, q8_0),
    10: Format(256, 84, q2_k),
    11: Format(256, 110, q3_k),
    12: Format(256, 144, q4_k),
    13: Format(256, 176, q5_k),
    14: Format(256, 210, q6_k),
    20: Format(32, 18, iq4_nl),
    23: Format(256, 136, iq4_xs),
}
