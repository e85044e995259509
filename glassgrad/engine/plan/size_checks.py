"""A slice whose bounds depend on variables -> a check that runs before every launch.

`x[p : p + 3]` with p from 0 to 7 fits an axis of size 8 for some values only. Values are known
where the slice is written, so it is checked there; a captured function checks again in every
replay, before anything is written.
"""

from __future__ import annotations

from collections.abc import Iterable

from glassgrad.base.errors import AxisError
from glassgrad.base.fast_dataclasses import frozen
from glassgrad.base.origin import Origin, here
from glassgrad.engine.capture.recorder import active_recorder
from glassgrad.ir.ops import Ops
from glassgrad.ir.size import Bound, Size, bindings, evaluate, expression, expression_text
from glassgrad.ir.uop import UOp, toposort


@frozen
class SizeCheck:
    """0 <= start <= stop <= size must hold at every launch; for an index, stop is start + 1."""

    start: UOp
    stop: UOp
    size: UOp
    axis: int
    is_index: bool = False
    origin: Origin | None = None

    @property
    def variables(self) -> list[UOp]:
        """The variables of the three expressions."""
        nodes = toposort((self.start, self.stop, self.size))
        return [node for node in nodes if node.op is Ops.VARIABLE]

    def check(self, values: Bound) -> None:
        """Raise an IndexError that names the axis and the values."""
        start, stop, size = (evaluate(n, values) for n in (self.start, self.stop, self.size))
        if 0 <= start <= stop <= size:
            return
        found, text = (
            f"{start}:{stop}",
            f"{expression_text(self.start)}:{expression_text(self.stop)}",
        )
        if self.is_index:
            found, text = str(start), expression_text(self.start)
        raise AxisError(
            f"{'index' if self.is_index else 'slice'} {found} is out of range for axis "
            f"{self.axis} of size {size}",
            hint=f"it was written as {text}, for an axis of size {expression_text(self.size)}",
            origin=self.origin,
        )


def check_slice(start: int, stop: int, size: int, axis: int, is_index: bool = False) -> None:
    """Check a slice by Sizes now, and in replays if a function is being captured."""
    if is_always_in_range(start, stop, size):
        return
    ends = expression(start), expression(stop), expression(size)
    check = SizeCheck(*ends, axis, is_index, here())
    check.check(bindings((start, stop, size)))
    if (recorder := active_recorder()) is not None:
        recorder.size_checks.append(check)


def is_always_in_range(start: int, stop: int, size: int) -> bool:
    """True if 0 <= start <= stop <= size for all values of the variables."""
    return all(map(_is_never_negative, (start, stop - start, size - stop)))


def _is_never_negative(distance: int) -> bool:
    return distance.vmin >= 0 if isinstance(distance, Size) else distance >= 0


def check_all(checks: Iterable[SizeCheck], values: Bound) -> None:
    for one in checks:
        one.check(values)
