"""Kernel -> Source, read from disk: what was lowered once need not be lowered by the next process.

A kernel is written down as its structure, so that equal kernels of all processes have one name. The
name also tells of the machine, of who chose the moves, and of the state of this package's own code.
"""

from __future__ import annotations

import json
import os
from functools import cache, lru_cache
from typing import Any

from glassgrad.base.config import DEBUG
from glassgrad.base.events import LISTENERS
from glassgrad.devices.cpu.object_cache import object_key, read_object, remove_object, write_object
from glassgrad.ir.stages import Kernel, Nest, Program, Source, Target
from glassgrad.ir.uop import UOp

LANGUAGES = frozenset(("llvm", "c"))
FACTS = ("name", "cores", "groups", "threads", "scratch_bytes", "label")


def key_of(kernel: Kernel, target: Target, choice: str) -> str | None:
    """The name of a kernel's source on disk; None if somebody wants to see how it is made."""
    return _name(kernel, target, choice) if is_kept(target) else None


def is_kept(target: Target) -> bool:
    """Is what was made for a target kept on disk? Not if somebody wants to see how it is made."""
    return not LISTENERS and DEBUG < 3 and target.language in LANGUAGES


@lru_cache(maxsize=4096)
def _name(kernel: Kernel, target: Target, choice: str) -> str:
    return object_key(structure(kernel), written_target(target), choice, own_code())


def recall(key: str | None) -> Source | None:
    """The source kept under a key. Its program has no instructions: they are in the text."""
    stored = None if key is None else read_object(key)
    if stored is None:
        return None
    try:
        return read_source(json.loads(stored))
    except (ValueError, KeyError, TypeError):  # written by another version: as if it were not there
        return None


def remember(key: str | None, source: Source) -> None:
    if key is not None:
        write_object(key, json.dumps(written_source(source)).encode())


def forget(key: str | None) -> None:
    """What is kept under a key did not compile: the next process makes it anew."""
    if key is not None:
        remove_object(key)


def written_source(source: Source) -> dict[str, Any]:
    """What a device needs of a source, as JSON has it."""
    facts = {name: getattr(source.program, name) for name in FACTS}
    return facts | {"text": source.text, "language": source.language, "name": source.name}


def read_source(found: dict[str, Any]) -> Source:
    facts = {name: found[name] for name in FACTS}
    facts |= {name: tuple(facts[name]) for name in ("groups", "threads")}
    return Source(found["name"], found["text"], found["language"], Program(uops=(), **facts))


def structure(kernel: Kernel | Nest) -> str:
    """A kernel as text: its nodes, sources first, in an order that only depends on structure."""
    numbers: dict[UOp, int] = {}
    lines: list[str] = []
    for root in (kernel.body, *kernel.outer):
        _write(root, numbers, lines)
    outer = [numbers[r] for r in kernel.outer]
    return "\n".join([*lines, f"{outer} {kernel.rewrites}"])


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
def written_target(target: Target) -> str:
    """A target's facts; sets in order."""
    parts = []
    for name in target.__match_args__:
        value = getattr(target, name)
        parts.append(repr(sorted(map(repr, value)) if isinstance(value, frozenset) else value))
    return " ".join(parts)


@cache
def own_code() -> str:
    """The state of our own code: a change of any file makes new names."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    states = []
    for folder in os.scandir(package):  # a Path for each file takes 2 ms more of every start
        for file in os.scandir(folder) if folder.is_dir() else ():
            if file.name.endswith(".py"):
                found = file.stat()
                place = f"{folder.name}/{file.name}"
                states.append(f"{place} {found.st_size} {found.st_mtime_ns}")
    return " ".join(sorted(states))
