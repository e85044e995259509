"""The text of the python device is the program itself."""

from support.compiler.hand_programs import elementwise

from glassgrad.base.dtype import dtypes
from glassgrad.ir.stages import Target
from glassgrad.render import render


def test_each_uop_has_a_line() -> None:
    program = elementwise(lambda x: x + 1.0, [dtypes.float], dtypes.float, 8)
    text = render(program, Target("PYTHON", "python")).text
    assert text.startswith("# elementwise\nx0 = UOp(Ops.PARAM, dtypes.float")
    assert len(text.splitlines()) == len(program.uops) + 1
