"""Two copies of an output -> VerifyError if they differ by more than rounding.

Integers must be equal. Floats may differ by their precision, relative to typical values of the
kernel's inputs and outputs. Where a sum decides a comparison, one element in a thousand may be
decided differently.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from glassgrad.base.dtype import DType, dtypes
from glassgrad.base.errors import DTypeError, VerifyError
from glassgrad.devices.protocol import Device
from glassgrad.ir.ops import OpGroup, Ops
from glassgrad.ir.stages import Kernel, Launch
from glassgrad.ir.uop import UOp
from glassgrad.memory.view import numpy_dtype

Array = np.ndarray[Any, Any]
Pointers = tuple[int, ...]
TOLERANCE = {
    dtypes.float64: 1e-9,
    dtypes.float32: 1e-3,
    dtypes.float16: 2e-2,
    dtypes.bfloat16: 6e-2,
    dtypes.fp8e4m3: 0.3,
    dtypes.fp8e5m2: 0.6,
}
SUMS = frozenset((Ops.REDUCE, Ops.SCAN))
MAX_FLIPPED_SHARE = 1e-3  # of elements, where comparisons depend on sums
MAX_SAMPLED_ELEMENTS = 4096  # enough to estimate a typical magnitude


def params_of(kernel: Kernel) -> list[UOp]:
    """The parameters of a kernel that have elements."""
    params = [node for node in kernel.body.toposort() if node.op is Ops.PARAM]
    return [param for param in params if 0 not in param.arg.shape]


def output_params(kernel: Kernel) -> list[UOp]:
    stores = [node for node in kernel.body.toposort() if node.op is Ops.STORE]
    return [p for p in dict.fromkeys(s.buffer for s in stores) if 0 not in p.arg.shape]


def require_close(
    launch: Launch, kernel: Kernel, param: UOp, pointers: Pointers, plain: Pointers, device: Device
) -> None:
    """Raise VerifyError if an output of a launch differs from that of the plain loops."""
    slot = param.arg.slot
    found, wanted = elements(param, pointers[slot]), elements(param, plain[slot])
    if found.tobytes() == wanted.tobytes():
        return
    if param.dtype.kind != "float" or found.dtype.kind == "u":
        wrong = np.asarray(found != wanted)
    else:
        magnitude = max(
            _typical_magnitude(elements(p, plain[p.arg.slot])) for p in params_of(kernel)
        )
        wrong = _differs(
            found, wanted, max(TOLERANCE[dtype] for dtype in _floats(kernel)), magnitude
        )
    if np.count_nonzero(wrong) <= _allowed_differences(wrong.size, kernel):
        return
    index = tuple(int(i) for i in np.argwhere(wrong)[0])
    raise VerifyError(
        f"kernel {launch.executable.source.name} computes {found[index]} where its plain loops "
        f"compute {wanted[index]}: element {index} of output {slot}, the first of "
        f"{np.count_nonzero(wrong):,} that differ among {wrong.size:,}; {_recipe(kernel, device)}",
        hint="NOOPT=1 computes with plain loops; to report it, send this message",
    )


def elements(param: UOp, address: int) -> Array:
    """The memory at an address as a parameter's array; as bits where NumPy lacks the dtype."""
    item = param.dtype.itemsize
    shape = tuple(int(n) for n in param.arg.shape)
    steps = [s * item for s in param.arg.strides]
    low = sum((n - 1) * min(s, 0) for n, s in zip(shape, steps, strict=True))
    high = sum((n - 1) * max(s, 0) for n, s in zip(shape, steps, strict=True))
    raw = (ctypes.c_ubyte * (high - low + item)).from_address(address + low)
    return np.ndarray(shape, _numpy_dtype(param.dtype), raw, -low, tuple(steps))


def _numpy_dtype(dtype: DType) -> Any:
    try:
        return numpy_dtype(dtype)
    except DTypeError:
        return np.dtype(f"uint{dtype.bits}")


def _differs(found: Array, wanted: Array, part: float, magnitude: float) -> Array:
    """True where values differ by more than `part` of themselves and of a typical magnitude."""
    one, two = found.astype(np.float64), wanted.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        is_close = np.abs(one - two) <= part * (np.maximum(np.abs(one), np.abs(two)) + magnitude)
    return np.asarray(~(is_close | (one == two) | (np.isnan(one) & np.isnan(two))))


def _typical_magnitude(values: Array) -> float:
    """The median magnitude of a sample of the finite nonzero values.

    Sums may cancel, so results are compared with the magnitude of the inputs, too.
    """
    if values.dtype.kind in "biu":
        return 0.0
    some = np.abs(values.ravel()[:: max(1, values.size // MAX_SAMPLED_ELEMENTS)].astype(np.float64))
    some = some[np.isfinite(some) & (some > 0)]
    return float(np.median(some)) if some.size else 0.0


def _floats(kernel: Kernel) -> set[DType]:
    nodes = kernel.body.toposort()
    return {node.dtype.scalar for node in nodes if node.dtype.kind == "float"}


def _allowed_differences(count: int, kernel: Kernel) -> int:
    """How many elements may differ because a sum decides a comparison."""
    nodes = kernel.body.toposort()
    has_sum = any(node.op in SUMS and node.dtype.kind == "float" for node in nodes)
    compares = any(node.op in OpGroup.COMPARISON for node in nodes)
    return int(count * MAX_FLIPPED_SHARE) if has_sum and compares else 0


def _recipe(kernel: Kernel, device: Device) -> str:
    """The kernel's recipe, chosen once more."""
    from glassgrad.engine.compile.optimizer_policy import current_policy
    from glassgrad.loops import optimize

    recipe = optimize(kernel, device.target, current_policy()).recipe
    return f"recipe: {', '.join(map(str, recipe)) or 'none'}"
