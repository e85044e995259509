"""Graphs realised on a device that is not in the registry, with a chooser of one's own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

from glassgrad.devices.protocol import Device
from glassgrad.engine import pipeline
from glassgrad.engine.cache.graph_keys import KERNELS, signature
from glassgrad.engine.launch.run import run
from glassgrad.ir.uop import UOp
from support.references.graph import Array


def realize_on(device: Device, roots: Sequence[UOp], choose: Any = None) -> list[Array]:
    """Like engine.pipeline.realize, on this device and without caches."""
    KERNELS.clear()  # another device may have had this one's name
    leaves = signature(roots).leaves
    if choose is None:
        plan = pipeline.plan_graph(roots, leaves, device)
    else:
        with patch.object(pipeline, "current_policy", lambda: choose):
            plan = pipeline.plan_graph(roots, leaves, device)
    return [view.numpy() for view in run(plan, leaves, device)]
