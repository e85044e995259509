"""A capture -> a function that replays it if nothing changed since the last call, or misses.

A miss takes the full path. For a capture that only makes one tensor, the steps of CapturedGraph are
inlined into one function: for a tiny kernel they take longer than the kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from threading import RLock, get_ident
from typing import Any, cast

from glassgrad.base.config import DEBUG, DEV, JIT, NO_GRAD, TRAINING
from glassgrad.base.counters import GlobalCounters
from glassgrad.base.dtype import dtypes
from glassgrad.base.events import LISTENERS
from glassgrad.devices.cpu.pool import Table
from glassgrad.devices.registry import Device
from glassgrad.engine.verify.verify import is_verified
from glassgrad.ir.size import UNBOUND
from glassgrad.ir.uop import UOp
from glassgrad.tensor.core import LIVE_TENSORS, TensorRef
from glassgrad.tensor.jit.capture import CapturedGraph, settings_key
from glassgrad.tensor.jit.guards import GONE, Guards
from glassgrad.tensor.jit.output_buffers import OutputBlock

MISSED = object()
FastPath = Callable[[tuple[Any, ...]], Any]


def fast_path(captured: CapturedGraph, lock: RLock, guards: Guards, until: int) -> FastPath:
    """A function of the tuple of arguments. From replay number `until` on it misses, since that
    replay is verified.
    """
    table = captured.replay.batch
    if is_simple(captured) and isinstance(table, Table):
        return _simple(captured, table, lock, guards, until)

    def replay(args: tuple[Any, ...]) -> Any:
        with lock:
            if captured.replays >= until or not JIT.value:
                return MISSED
            if (
                captured.modes == settings_key()
                and guards.are_valid()
                and captured.is_unchanged(args)
            ):
                captured.replays += 1
                return captured(args, UNBOUND)
            return MISSED

    return replay


def _simple(
    captured: CapturedGraph,
    table: Table,
    lock: RLock,
    guards: Guards,
    until: int,
) -> FastPath:
    replayed, pool, address = captured.replay, table.pool, table.address
    launches, operations, nbytes = replayed.launches, replayed.operations, replayed.bytes
    (made,) = captured.output_buffers
    new, kind = object.__new__, captured.kind
    training, no_grad, default, default_int, device = captured.modes
    mode, gradients = TRAINING, NO_GRAD
    holders, held = captured.holders, captured.held
    counters, compare = GlobalCounters, guards.compare
    hold = _node_comparison(len(captured.last_nodes))
    forget = LIVE_TENSORS.pop

    def replay(args: tuple[Any, ...]) -> Any:
        with lock:
            try:
                if not hold(args, captured.last_nodes) or captured.replays >= until:
                    return MISSED
                if mode.value != training or gradients.value != no_grad:
                    return MISSED
                if held and [holder().uop.arg.storage for holder in holders] != held:  # type: ignore[union-attr]
                    return MISSED
                if dtypes.default_float is not default or dtypes.default_int is not default_int:
                    return MISSED
                if (DEV.was_changed and Device.DEFAULT != device) or not compare():
                    return MISSED
            except GONE:  # no tensor, no longer there, or not in memory
                return MISSED
            is_printed = DEBUG.was_changed and DEBUG.value >= 2
            if LISTENERS or is_printed or (JIT.was_changed and not JIT.value) or is_verified():
                return MISSED
            last = made.last
            if last is None:
                return MISSED
            if last.references() != last.idle:
                made.ready(replayed)
                last = cast(OutputBlock, made.last)
            node = last.nodes[0]
            node.arg.storage.holder = None  # no library shares it any more
            with pool.lock:
                if table.generation is not pool.generation:
                    pool._bind(table)
                pool.enter(address)
            captured.replays += 1
            counters.kernel_count += launches
            counters.global_ops += operations
            counters.global_mem += nbytes
            tensor = new(kind)
            tensor.uop = node
            tensor.grad = None
            tensor._is_param = False
            tensor._requires_grad = tensor._view_group = tensor._share_token = None
            reference = TensorRef(tensor, forget)
            reference.thread = get_ident()
            LIVE_TENSORS[reference] = None
            return tensor

    return replay


@lru_cache
def _node_comparison(count: int) -> Callable[[tuple[Any, ...], list[UOp]], bool]:
    """A function that is True if `count` tensors hold these nodes; it raises one of GONE for other
    objects than tensors, or for another number of them.
    """
    numbers = range(count)
    lines = [
        f"({''.join([f't{n}, ' for n in numbers])}) = tensors",
        f"({''.join([f'n{n}, ' for n in numbers])}) = nodes",
        f"return {' and '.join([f't{n}.uop is n{n}' for n in numbers]) or True}",
    ]
    names: dict[str, Any] = {}
    exec("def hold(tensors, nodes):\n    " + "\n    ".join(lines), names)
    return cast(Callable[[tuple[Any, ...], list[UOp]], bool], names["hold"])


def is_simple(captured: CapturedGraph) -> bool:
    """True if the capture makes one tensor and has no other effects."""
    replayed = captured.replay
    return (
        captured.is_one_tensor
        and len(captured.output_buffers) == 1
        and len(captured.output_buffers[0].windows) == 1
        and not (captured.has_effects or captured.random.starts or captured.lazy)
        and not (replayed.cells or replayed.values)
    )
