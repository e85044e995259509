"""Program -> Metal for Apple GPUs, and the Target of such a GPU."""

from __future__ import annotations

from typing import ClassVar

from glassgrad.base.config import CHECK
from glassgrad.base.dtype import DType, dtypes
from glassgrad.ir.ops import Ops
from glassgrad.ir.stages import Target
from glassgrad.render.cstyle import XYZW, CStyleRenderer
from glassgrad.render.cstyle_body import Body


def metal_target() -> Target:
    """The common features of Apple GPUs, which have no float64."""
    return Target(
        name="METAL",
        language="metal",
        vector_bytes=16,
        has_vector_alu=False,
        has_threads=True,
        reports_indices=bool(CHECK),
        shared_bytes=32 << 10,
        group_size=1024,
        max_params=31,
        index_dtype=dtypes.int32,
        native=frozenset((Ops.EXP2, Ops.LOG2, Ops.SIN, Ops.POW)),
        dtypes=frozenset(dtypes.all) - {dtypes.float64, *dtypes.fp8s},
    )


class MetalRenderer(CStyleRenderer):
    """Renders programs in the Metal shading language."""

    types: ClassVar[dict[DType, str]] = {
        **{dtype: dtype.alias for dtype in dtypes.ints},
        dtypes.bool: "bool",
        dtypes.float16: "half",
        dtypes.bfloat16: "bfloat",
        dtypes.float32: "float",
    }
    memory = "device "
    shared = "threadgroup"
    shared_memory = "threadgroup "
    barrier = "threadgroup_barrier(mem_flags::mem_threadgroup);"
    # Metal's default functions are fast but inaccurate.
    functions: ClassVar[dict[Ops, str]] = {
        op: f"precise::{name}" for op, name in CStyleRenderer.functions.items()
    }

    def __init__(self, target: Target | None = None) -> None:
        super().__init__(target or metal_target())

    def prelude(self, body: Body) -> list[str]:
        return ["#include <metal_stdlib>", "using namespace metal;"]

    def head(self, name: str, body: Body) -> str:
        return f"kernel void {name}"

    def parameters(self, body: Body) -> list[str]:
        return [
            *super().parameters(body),
            "uint3 gid [[threadgroup_position_in_grid]]",
            "uint3 lid [[thread_position_in_threadgroup]]",
        ]

    def variables(self, body: Body) -> list[str]:
        return [f"constant int& {name}" for name in body.variables]

    def coordinate(self, name: str) -> str:
        return f"{name[0]}id.{XYZW[int(name[4:])]}"

    def vector_name(self, dtype: DType) -> str:
        return f"{self.type_name(dtype.scalar)}{dtype.count}"

    def bits(self, dtype: DType, source: DType, x: str) -> str:
        return f"as_type<{self.type_name(dtype)}>({x})"
