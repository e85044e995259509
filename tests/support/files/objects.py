"""CODE: an object file with constants and a call, as our compiler writes it."""

from __future__ import annotations

from glassgrad.devices.cpu.loader import can_load
from glassgrad.devices.cpu.native import compile_text

TEXT = """
@row = private constant [4 x float] [float 1.0, float 2.0, float 3.0, float 4.0], align 16
declare float @sinf(float)
define float @element(i64 %i) {
  %place = getelementptr [4 x float], ptr @row, i64 0, i64 %i
  %x = load float, ptr %place
  %y = call float @sinf(float %x)
  ret float %y
}
"""
CODE = compile_text(TEXT) if can_load() else b""
