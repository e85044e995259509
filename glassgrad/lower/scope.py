"""Open loops and what each holds: a value is placed in the outermost loop that can hold it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from glassgrad.base.fast_dataclasses import field, slotted
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.uop import UOp

# Axes that are coordinates of a launch grid, not loops.
GRID = frozenset((AxisKind.GLOBAL, AxisKind.LOCAL, AxisKind.GROUP))


@slotted
class Scope:
    """The body of one loop, and how many loops are around it."""

    depth: int
    is_open: bool = True
    lines: list[UOp] = field(default_factory=list)
    memo: dict[Any, UOp] = field(default_factory=dict)
    emitted: set[UOp] = field(default_factory=set)


class TooManyInstructionsError(Exception):
    """A nest becomes more instructions than were asked for."""


class Scopes:
    """The stack of open loops, outermost first; scope 0 is the function itself.

    More than `max_instructions` instructions are a TooManyInstructionsError.
    """

    def __init__(self, max_instructions: int | None = None) -> None:
        self.stack = [Scope(0)]
        self.max_instructions = 1 << 62 if max_instructions is None else max_instructions
        self.depth: dict[UOp, int] = {}  # open RANGE -> its place in the stack
        self._scope_of: dict[UOp, Scope] = {}  # instruction -> where it was put last

    def depth_of(self, loops: tuple[UOp, ...]) -> int:
        """The innermost of these loops; what depends on no loop belongs to the function itself."""
        return max([self.depth[loop] for loop in loops]) if loops else 0

    def is_available(self, uop: UOp) -> bool:
        """Does an instruction stand in a loop that is open?"""
        scope = self._scope_of.get(uop)
        return scope is not None and scope.is_open

    def depth_of_instruction(self, uop: UOp) -> int:
        """The scope that an instruction stands in."""
        return self._scope_of[uop].depth if self.is_available(uop) else 0

    def emit(self, uop: UOp, depth: int | None = None) -> UOp:
        """Put an instruction as far out as its sources are, or in the scope that is named."""
        if depth is None:
            scope_of = self._scope_of.get
            scope = scope_of(uop)
            if scope is not None and scope.is_open:
                return uop
            depth = 0
            for source in uop.src:
                scope = scope_of(source)
                if scope is not None and scope.depth > depth and scope.is_open:
                    depth = scope.depth
        scope = self.stack[depth]
        if uop not in scope.emitted:
            scope.emitted.add(uop)
            scope.lines.append(uop)
            self._scope_of[uop] = scope
            self.max_instructions -= 1
            if self.max_instructions < 0:
                raise TooManyInstructionsError
        return uop

    def emit_here(self, uop: UOp) -> UOp:
        """Put an instruction into the innermost loop, wherever its sources are."""
        return self.emit(uop, len(self.stack) - 1)

    @contextmanager
    def at_depth(self, depth: int) -> Iterator[None]:
        """Work in an outer scope for a while; what is open inside of it is set aside."""
        aside = self.stack[depth + 1 :]
        closed = {loop: d for loop, d in self.depth.items() if d > depth}
        del self.stack[depth + 1 :]
        for loop in closed:
            del self.depth[loop]
        for scope in aside:
            scope.is_open = False
        yield
        for scope in aside:
            scope.is_open = True
        self.stack.extend(aside)
        self.depth.update(closed)

    def open(self, loop: UOp, line: UOp) -> None:
        """Start a loop; `line` is its RANGE in the program."""
        self.depth[loop] = len(self.stack)
        self.stack.append(Scope(len(self.stack)))
        self.emit_here(line)

    def close(self, loop: UOp, end: UOp) -> None:
        """End the innermost loop: its lines go behind what the loop around it has so far."""
        assert self.depth.pop(loop) == len(self.stack) - 1, f"not the innermost loop: {loop}"
        finished = self.stack.pop()
        finished.is_open = False
        self.stack[-1].lines.extend(finished.lines)
        self.stack[-1].lines.append(end)
        assert end.op is Ops.END


def loops_of(ranges: Any) -> tuple[UOp, ...]:
    """Of these ranges, those that are loops in the program."""
    return tuple([r for r in ranges if not r.kind.is_unrolled and r.kind not in GRID])
