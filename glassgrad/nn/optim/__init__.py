"""Optimisers: gradients -> new parameters, and what goes with them."""

from __future__ import annotations

from glassgrad.nn.optim.adam import LAMB, Adam, AdamW
from glassgrad.nn.optim.optimizer import Optimizer, OptimizerGroup
from glassgrad.nn.optim.rmsprop import RMSprop
from glassgrad.nn.optim.sgd import LARS, SGD, Muon

__all__ = [
    "LAMB",
    "LARS",
    "SGD",
    "Adam",
    "AdamW",
    "Muon",
    "Optimizer",
    "OptimizerGroup",
    "RMSprop",
]
