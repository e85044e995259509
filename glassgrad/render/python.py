"""Program -> its own uops as text: what the python device carries out, for people to read."""

from __future__ import annotations

from collections.abc import Sequence

from glassgrad.ir.show import listing
from glassgrad.ir.stages import Target
from glassgrad.ir.uop import UOp


class PythonRenderer:
    """Writes programs as the list of uops that they are."""

    def __init__(self, target: Target | None = None) -> None:
        self.target = target

    def render(self, name: str, uops: Sequence[UOp]) -> str:
        return f"# {name}\n{listing(uops)}\n"
