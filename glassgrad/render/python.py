"""Program -> a listing of its uops, which the PYTHON device interprets."""

from __future__ import annotations

from collections.abc import Sequence

from glassgrad.ir.show import listing
from glassgrad.ir.stages import Target
from glassgrad.ir.uop import UOp


class PythonRenderer:
    """Renders programs as the list of their uops."""

    def __init__(self, target: Target | None = None) -> None:
        self.target = target

    def render(self, name: str, uops: Sequence[UOp]) -> str:
        return f"# {name}\n{listing(uops)}\n"
