"""Program -> OpenCL C for any GPU with a driver, and the Target of such a GPU."""

from __future__ import annotations

from typing import ClassVar

from glassgrad.base.config import CHECK
from glassgrad.base.dtype import DType, dtypes
from glassgrad.ir.ops import Ops
from glassgrad.ir.stages import Target
from glassgrad.render.cstyle import CStyleRenderer
from glassgrad.render.cstyle_body import Body

EXTENSIONS = {dtypes.float16: "cl_khr_fp16", dtypes.float64: "cl_khr_fp64"}


def opencl_target() -> Target:
    """The common features of drivers; float16 arithmetic is an extension that many lack."""
    return Target(
        name="OPENCL",
        language="opencl",
        vector_bytes=16,
        has_vector_alu=False,
        has_threads=True,
        reports_indices=bool(CHECK),
        shared_bytes=32 << 10,
        group_size=256,
        index_dtype=dtypes.int32,
        native=frozenset((Ops.EXP2, Ops.LOG2, Ops.SIN, Ops.POW)),
        dtypes=frozenset(dtypes.all) - {dtypes.float16, dtypes.bfloat16, *dtypes.fp8s},
    )


class OpenCLRenderer(CStyleRenderer):
    """Renders programs as OpenCL C."""

    types: ClassVar[dict[DType, str]] = {
        **{dtype: dtype.alias for dtype in dtypes.ints},
        dtypes.bool: "bool",
        dtypes.float16: "half",
        dtypes.float32: "float",
        dtypes.float64: "double",
    }
    memory = "__global "
    shared = "__local"
    shared_memory = "__local "
    barrier = "barrier(CLK_LOCAL_MEM_FENCE);"

    def __init__(self, target: Target | None = None) -> None:
        super().__init__(target or opencl_target())

    def prelude(self, body: Body) -> list[str]:
        found = {dtype.scalar for dtype in body.dtypes()}
        wanted = [name for dtype, name in EXTENSIONS.items() if dtype in found]
        return [f"#pragma OPENCL EXTENSION {name} : enable" for name in wanted]

    def head(self, name: str, body: Body) -> str:
        return f"__kernel void {name}"

    def coordinate(self, name: str) -> str:
        word = "get_group_id" if name[0] == "g" else "get_local_id"
        return f"{word}({int(name[4:])})"

    def element_name(self, dtype: DType) -> str:
        """OpenCL has no bool in memory, and no vectors of bool."""
        is_bool = dtype.kind == "bool"
        return self.type_name(dtypes.uint8.vec(dtype.count) if is_bool else dtype)

    def vector_name(self, dtype: DType) -> str:
        scalar = dtypes.uint8 if dtype.kind == "bool" else dtype.scalar
        return f"{self.type_name(scalar)}{dtype.count}"

    def vector(self, dtype: DType, parts: list[str]) -> str:
        return f"({self.type_name(dtype)})({','.join(parts)})"

    def lane(self, vector: str, dtype: DType, number: int) -> str:
        return f"{vector}.s{number:x}" if dtype.count > 4 else super().lane(vector, dtype, number)

    def bits(self, dtype: DType, source: DType, x: str) -> str:
        return f"as_{self.type_name(dtype)}({x})"
