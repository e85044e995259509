"""Program -> CUDA C++ for NVIDIA GPUs, and the Target of such a GPU."""

from __future__ import annotations

from typing import ClassVar

from glassgrad.base.config import CHECK
from glassgrad.base.dtype import DType, dtypes
from glassgrad.ir.ops import Ops
from glassgrad.ir.stages import Target
from glassgrad.render.cstyle import XYZW, CStyleRenderer
from glassgrad.render.cstyle_body import Body

INCLUDES = {dtypes.float16: "cuda_fp16.h", dtypes.bfloat16: "cuda_bf16.h"}
BUILT_IN_VECTORS = {  # CUDA's vector types, by element
    dtypes.int8: "char",
    dtypes.uint8: "uchar",
    dtypes.int16: "short",
    dtypes.uint16: "ushort",
    dtypes.int32: "int",
    dtypes.uint32: "uint",
    dtypes.float32: "float",
    dtypes.int64: "longlong",
    dtypes.uint64: "ulonglong",
    dtypes.float64: "double",
}
MAX_LOAD_BYTES = 16  # of the widest load instruction

BITCAST = (
    "template <class To, class From> __device__ __forceinline__ To bitcast(From from) "
    "{ return *reinterpret_cast<To*>(&from); }"
)


def cuda_target(arch: str) -> Target:
    """The common features of all chips; bfloat16 requires sm_80."""
    digits = "".join(letter for letter in arch if letter.isdigit())
    missing = {*dtypes.fp8s} | (set() if int(digits or 0) >= 80 else {dtypes.bfloat16})
    return Target(
        name="CUDA",
        language="cuda",
        arch=arch,
        vector_bytes=16,
        has_vector_alu=False,
        has_threads=True,
        reports_indices=bool(CHECK),
        shared_bytes=48 << 10,
        group_size=1024,
        grid_sizes=((1 << 31) - 1, 65535, 65535),
        index_dtype=dtypes.int32,
        native=frozenset((Ops.EXP2, Ops.LOG2, Ops.SIN, Ops.POW)),
        dtypes=frozenset(dtypes.all) - missing,
    )


class CUDARenderer(CStyleRenderer):
    """Renders programs as CUDA C++ for an architecture such as sm_80."""

    types: ClassVar[dict[DType, str]] = {
        **CStyleRenderer.types,
        dtypes.int64: "long long",
        dtypes.uint64: "unsigned long long",
        dtypes.float16: "half",
        dtypes.bfloat16: "__nv_bfloat16",
    }
    shared = "__shared__"
    barrier = "__syncthreads();"
    long_suffix = "ll"

    def __init__(self, arch: str | Target) -> None:
        super().__init__(cuda_target(arch) if isinstance(arch, str) else arch)

    def prelude(self, body: Body) -> list[str]:
        found = body.dtypes()
        scalars = {dtype.scalar for dtype in found}
        return [
            "#define INFINITY (__int_as_float(0x7f800000))",
            "#define NAN (__int_as_float(0x7fffffff))",
            *(f"#include <{name}>" for dtype, name in INCLUDES.items() if dtype in scalars),
            *([BITCAST] if body.has(Ops.BITCAST) else []),
            *(
                self.structure(dtype)
                for dtype in found
                if dtype.count > 1 and needs_definition(dtype)
            ),
        ]

    def structure(self, dtype: DType) -> str:
        """struct __align__(8) half4 { half x, y, z, w; };"""
        fields = ", ".join(self.field(number, dtype) for number in range(dtype.count))
        align = min(dtype.itemsize, MAX_LOAD_BYTES)
        scalar = self.type_name(dtype.scalar)
        return f"struct __align__({align}) {self.type_name(dtype)} {{ {scalar} {fields}; }};"

    def head(self, name: str, body: Body) -> str:
        return f'extern "C" __global__ void __launch_bounds__({body.threads}) {name}'

    def coordinate(self, name: str) -> str:
        return f"{'blockIdx' if name[0] == 'g' else 'threadIdx'}.{XYZW[int(name[4:])]}"

    def vector_name(self, dtype: DType) -> str:
        return f"{BUILT_IN_VECTORS.get(dtype.scalar, dtype.scalar.alias)}{dtype.count}"

    def vector(self, dtype: DType, parts: list[str]) -> str:
        name, inside = self.type_name(dtype), ",".join(parts)
        return f"{name}{{{inside}}}" if needs_definition(dtype) else f"make_{name}({inside})"

    def field(self, number: int, dtype: DType) -> str:
        return XYZW[number] if dtype.count <= 4 else f"s{number:x}"

    def lane(self, vector: str, dtype: DType, number: int) -> str:
        return f"{vector}.{self.field(number, dtype)}"

    def bits(self, dtype: DType, source: DType, x: str) -> str:
        return f"bitcast<{self.type_name(dtype)}>({self.type_name(source)}({x}))"


def needs_definition(dtype: DType) -> bool:
    """True for vectors that CUDA lacks: it has up to 4 lanes, or 2 of 64 bits."""
    max_lanes = 2 if dtype.bits == 64 else 4
    return dtype.scalar not in BUILT_IN_VECTORS or dtype.count > max_lanes
