"""Kernel -> Source, read from disk: what was lowered once need not be lowered by the next process.

A kernel's key is its structure as text, so equal kernels of all processes share it, plus the
machine, the policy that chose the recipe, and the version of this package's code.
"""

from __future__ import annotations

import json
import os
from functools import cache, lru_cache
from typing import Any

from glassgrad.base.config import DEBUG
from glassgrad.base.events import LISTENERS
from glassgrad.base.origin import PACKAGE
from glassgrad.devices.cpu.object_cache import object_key, read_object, remove_object, write_object
from glassgrad.ir.stages import Kernel, Nest, Program, Source, Target
from glassgrad.ir.uop import UOp

CACHED_LANGUAGES = frozenset(("llvm", "c"))
PROGRAM_FACTS = ("name", "cores", "groups", "threads", "scratch_bytes", "label")


def source_key(kernel: Kernel, target: Target, choice: str) -> str | None:
    """The key of a kernel's source on disk; None if it is not stored there."""
    return _cached_key(kernel, target, choice) if is_cached_on_disk(target) else None


def is_cached_on_disk(target: Target) -> bool:
    """True if sources for a target are stored; not while DEBUG or a listener wants to see
    compilation.
    """
    return not LISTENERS and DEBUG < 3 and target.language in CACHED_LANGUAGES


@lru_cache(maxsize=4096)
def _cached_key(kernel: Kernel, target: Target, choice: str) -> str:
    return object_key(kernel_text(kernel), target_key(target), choice, code_version())


def load_source(key: str | None) -> Source | None:
    """The stored source. Its program has no instructions: the text replaces them."""
    stored = None if key is None else read_object(key)
    if stored is None:
        return None
    try:
        return decode_source(json.loads(stored))
    except (ValueError, KeyError, TypeError):  # damaged or outdated: lower it again
        return None


def store_source(key: str | None, source: Source) -> None:
    if key is not None:
        write_object(key, json.dumps(encode_source(source)).encode())


def discard_source(key: str | None) -> None:
    """Delete a stored source that did not compile: the next process lowers it again."""
    if key is not None:
        remove_object(key)


def encode_source(source: Source) -> dict[str, Any]:
    """What a device needs of a source, as JSON."""
    facts = {name: getattr(source.program, name) for name in PROGRAM_FACTS}
    return facts | {"text": source.text, "language": source.language, "name": source.name}


def decode_source(found: dict[str, Any]) -> Source:
    facts = {name: found[name] for name in PROGRAM_FACTS}
    facts |= {name: tuple(facts[name]) for name in ("groups", "threads")}
    return Source(found["name"], found["text"], found["language"], Program(uops=(), **facts))


def kernel_text(kernel: Kernel | Nest) -> str:
    """A kernel as text: its nodes, sources first, in an order that depends on structure alone."""
    numbers: dict[UOp, int] = {}
    lines: list[str] = []
    for root in (kernel.body, *kernel.outer):
        _write(root, numbers, lines)
    outer = [numbers[r] for r in kernel.outer]
    return "\n".join([*lines, f"{outer} {kernel.may_alias}"])


def _write(root: UOp, numbers: dict[UOp, int], lines: list[str]) -> None:
    stack = [root]
    while stack:
        node = stack[-1]
        missing = [source for source in node.src if source not in numbers]
        if missing:
            stack.extend(reversed(missing))
            continue
        stack.pop()
        if node not in numbers:
            numbers[node] = len(numbers)
            sources = [numbers[source] for source in node.src]
            lines.append(f"{node.op.name} {node.dtype!r} {node.arg!r} {sources}")


@cache
def target_key(target: Target) -> str:
    """All fields of a target as text; sets are sorted."""
    parts = []
    for name in target.__match_args__:
        value = getattr(target, name)
        parts.append(repr(sorted(map(repr, value)) if isinstance(value, frozenset) else value))
    return " ".join(parts)


@cache
def code_version() -> str:
    """Sizes and times of all files of this package: a change of any makes new keys."""
    states, folders = [], [PACKAGE]
    while folders:
        for entry in os.scandir(folders.pop()):  # pathlib would take 2 ms more of every start
            if entry.name.endswith(".py"):
                found = entry.stat()
                name = entry.path.removeprefix(PACKAGE)
                states.append(f"{name} {found.st_size} {found.st_mtime_ns}")
            elif entry.is_dir():
                folders.append(entry.path)
    return " ".join(sorted(states))
