"""torch.compile (inductor): the eager adapter with every step's function compiled."""

import torch

from peers import torch_eager
from peers.torch_eager import *  # noqa: F403


def _jit(fn):
    return torch.compile(fn, dynamic=False)


torch_eager.jit, torch_eager.STATIC_CACHE = _jit, True
