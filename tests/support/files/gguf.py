"""A writer of GGUF files."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

KINDS = {"u8": (0, "B"), "i8": (1, "b"), "u16": (2, "H"), "i16": (3, "h"), "u32": (4, "I"),
         "i32": (5, "i"), "f32": (6, "f"), "bool": (7, "?"), "u64": (10, "Q"), "i64": (11, "q"),
         "f64": (12, "d")}  # fmt: skip
PLAIN = {"float32": 0, "float16": 1, "int8": 24, "int16": 25, "int32": 26, "int64": 27,
         "float64": 28}  # fmt: skip


def text(value: str) -> bytes:
    raw = value.encode()
    return struct.pack("<Q", len(raw)) + raw


def value(kind: str, given: Any) -> bytes:
    """The number of a value type, and the value; "[u32]" is an array."""
    if kind == "str":
        return struct.pack("<I", 8) + text(given)
    if kind == "[str]":
        head = struct.pack("<IIQ", 9, 8, len(given))
        return head + b"".join(map(text, given))
    if kind.startswith("["):
        number, letter = KINDS[kind[1:-1]]
        head = struct.pack("<IIQ", 9, number, len(given))
        return head + struct.pack(f"<{len(given)}{letter}", *given)
    number, letter = KINDS[kind]
    return struct.pack(f"<I{letter}", number, given)


def gguf_file(
    metadata: dict[str, tuple[str, Any]],
    tensors: dict[str, np.ndarray[Any, Any] | tuple[int, tuple[int, ...], bytes]],
    alignment: int = 32,
) -> bytes:
    """A file; tensors are arrays, or (type number, shape, bytes of blocks)."""
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata))
    head += b"".join(text(key) + value(*entry) for key, entry in metadata.items())
    data = b""
    for name, given in tensors.items():
        if isinstance(given, tuple):
            kind, shape, raw = given
        else:
            kind, shape, raw = PLAIN[given.dtype.name], given.shape, given.tobytes()
        sizes = struct.pack(f"<I{len(shape)}Q", len(shape), *shape[::-1])
        head += text(name) + sizes + struct.pack("<IQ", kind, len(data))
        data += raw + b"\0" * (-len(raw) % alignment)
    return head + b"\0" * (-len(head) % alignment) + data


def quantised(kind: int, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A matrix as blocks (rows, blocks, bytes) of type 2 (Q4_0) or 8 (Q8_0)."""
    split = array.reshape(array.shape[0], -1, 32).astype(np.float32)
    largest = 127 if kind == 8 else 7
    scales = (np.abs(split).max(-1, keepdims=True) / largest).astype(np.float16)
    codes = np.round(split / np.where(scales == 0, 1, scales).astype(np.float32))
    head = np.ascontiguousarray(scales).view(np.uint8)
    if kind == 8:
        return np.concatenate([head, codes.astype(np.int8).view(np.uint8)], -1)
    shifted = np.clip(codes + 8, 0, 15).astype(np.uint8)
    return np.concatenate([head, shifted[..., :16] | shifted[..., 16:] << 4], -1)
