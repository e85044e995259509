"""VERIFY=1: runs the plain loops of each launch, too, on copies of its outputs, and compares.

The reference is the same kernel compiled without loop moves. It runs first, so that it sees the
same inputs, and the old contents of everything that is overwritten.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from glassgrad.base.config import NOOPT, VERIFY
from glassgrad.base.fast_dataclasses import replace
from glassgrad.devices.protocol import Call, Device
from glassgrad.ir.stages import Kernel, Launch, Reference
from glassgrad.memory.allocator import ALIGNMENT, HOST, is_host

if TYPE_CHECKING:
    from glassgrad.ir.uop import UOp


def is_verified() -> bool:
    """True if launches are compared; almost free if VERIFY was never set."""
    return VERIFY.was_changed and bool(VERIFY)


def needs_references(device: Device) -> bool:
    return is_verified() and not NOOPT and is_host(device.name)


def with_references(
    launches: Sequence[Launch], plain: Sequence[Launch], kernels: Sequence[Kernel]
) -> list[Launch]:
    """Launches with the plain version of their kernels."""
    pairs = zip(launches, plain, kernels, strict=True)
    return [replace(one, reference=Reference(p.executable, kernel)) for one, p, kernel in pairs]


class Span(NamedTuple):
    """The addresses of a parameter: from its lowest element to the end of its highest."""

    start: int
    stop: int


def span_of(param: UOp, address: int) -> Span:
    item = param.dtype.itemsize
    steps = [(int(n) - 1) * s for n, s in zip(param.arg.shape, param.arg.strides, strict=True)]
    low, high = sum(s for s in steps if s < 0), sum(s for s in steps if s > 0)
    return Span(address + low * item, address + (high + 1) * item)


def merge_spans(spans: Sequence[Span]) -> list[Span]:
    """Spans without overlaps: memory that two parameters share is copied once."""
    found: list[Span] = []
    for span in sorted(spans):
        if found and span.start < found[-1].stop:
            found[-1] = Span(found[-1].start, max(found[-1].stop, span.stop))
        else:
            found.append(span)
    return found


@contextmanager
def verified(launch: Launch, call: Call, device: Device) -> Iterator[None]:
    """Around a launch: raises VerifyError if it writes something else than its plain loops."""
    reference = launch.reference
    if reference is None:
        yield
        return
    from glassgrad.engine.verify.differences import output_params, params_of, require_close

    kernel = reference.kernel
    written = output_params(kernel)
    spans = merge_spans([span_of(p, call.pointers[p.arg.slot]) for p in params_of(kernel)])
    outputs = [span_of(param, call.pointers[param.arg.slot]) for param in written]
    with copied_spans(
        [s for s in spans if any(_overlap(s, output) for output in outputs)]
    ) as moved:
        pointers = tuple([moved.get(address, address) for address in call.pointers])
        device.run((Call(reference.executable, pointers, call.values),))
        device.synchronize()
        yield
        for param in written:
            require_close(launch, kernel, param, call.pointers, pointers, device)


def _overlap(one: Span, other: Span) -> bool:
    return one.start < other.stop and other.start < one.stop


class CopiedSpans(NamedTuple):
    """Spans, and the distance from each to its copy."""

    pairs: tuple[tuple[Span, int], ...]

    def get(self, address: int, default: int) -> int:
        for span, distance in self.pairs:
            if span.start <= address < span.stop:
                return address + distance
        return default


@contextmanager
def copied_spans(spans: Sequence[Span]) -> Iterator[CopiedSpans]:
    """Temporary copies of memory, with the alignment of the originals."""
    blocks: list[Any] = []
    pairs = []
    try:
        for span in spans:
            nbytes = span.stop - span.start
            block = HOST.allocate(nbytes + ALIGNMENT, zeroed=False)
            blocks.append(block)
            start = block.address + span.start % ALIGNMENT
            ctypes.memmove(start, span.start, nbytes)
            pairs.append((span, start - span.start))
        yield CopiedSpans(tuple(pairs))
    finally:
        for block in blocks:
            HOST.free(block)
