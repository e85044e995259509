"""Open loops and their instructions: a value is emitted in the outermost loop that can hold it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from glassgrad.base.fast_dataclasses import field, slotted
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.uop import UOp

# Axes that are coordinates of the launch grid instead of loops.
GRID = frozenset((AxisKind.GLOBAL, AxisKind.LOCAL, AxisKind.GROUP))


@slotted
class Scope:
    """The body of one loop; `depth` counts the loops around it."""

    depth: int
    is_open: bool = True
    lines: list[UOp] = field(default_factory=list)
    memo: dict[Any, UOp] = field(default_factory=dict)
    emitted: set[UOp] = field(default_factory=set)


class TooManyInstructionsError(Exception):
    """A nest lowers to more instructions than the caller allowed."""


class Scopes:
    """The stack of open loops, outermost first; scope 0 is the function body.

    Raises TooManyInstructionsError after `max_instructions`.
    """

    def __init__(self, max_instructions: int | None = None) -> None:
        self.stack = [Scope(0)]
        self.max_instructions = 1 << 62 if max_instructions is None else max_instructions
        self.depth: dict[UOp, int] = {}  # open RANGE -> its index in the stack
        self._scope_of: dict[UOp, Scope] = {}  # instruction -> the scope that holds it

    def depth_of(self, loops: tuple[UOp, ...]) -> int:
        """The depth of the innermost of these loops; 0 for none."""
        return max([self.depth[loop] for loop in loops]) if loops else 0

    def is_available(self, uop: UOp) -> bool:
        """True if the instruction was emitted in a scope that is still open."""
        scope = self._scope_of.get(uop)
        return scope is not None and scope.is_open

    def depth_of_instruction(self, uop: UOp) -> int:
        """The depth of the scope that holds an instruction."""
        return self._scope_of[uop].depth if self.is_available(uop) else 0

    def emit(self, uop: UOp, depth: int | None = None) -> UOp:
        """Append an instruction to the innermost scope of its sources, or to scope `depth`."""
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
        """Append an instruction to the innermost loop, whatever its sources are."""
        return self.emit(uop, len(self.stack) - 1)

    @contextmanager
    def at_depth(self, depth: int) -> Iterator[None]:
        """Emit into an outer scope inside of a `with`; the scopes inside it are suspended."""
        suspended = self.stack[depth + 1 :]
        closed = {loop: d for loop, d in self.depth.items() if d > depth}
        del self.stack[depth + 1 :]
        for loop in closed:
            del self.depth[loop]
        for scope in suspended:
            scope.is_open = False
        yield
        for scope in suspended:
            scope.is_open = True
        self.stack.extend(suspended)
        self.depth.update(closed)

    def open(self, loop: UOp, line: UOp) -> None:
        """Enter a loop; `line` is its RANGE instruction."""
        self.depth[loop] = len(self.stack)
        self.stack.append(Scope(len(self.stack)))
        self.emit_here(line)

    def close(self, loop: UOp, end: UOp) -> None:
        """Leave the innermost loop: append its instructions and the END to the scope around it."""
        assert self.depth.pop(loop) == len(self.stack) - 1, f"not the innermost loop: {loop}"
        finished = self.stack.pop()
        finished.is_open = False
        self.stack[-1].lines.extend(finished.lines)
        self.stack[-1].lines.append(end)
        assert end.op is Ops.END


def loops_of(ranges: Any) -> tuple[UOp, ...]:
    """The ranges that are loops of the program, not unrolled and not grid coordinates."""
    return tuple([r for r in ranges if not r.kind.is_unrolled and r.kind not in GRID])
