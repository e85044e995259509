"""Optimisers, learning-rate schedules, gradient clipping and mixed precision."""

from __future__ import annotations

from glassgrad.nn.optim.adam import LAMB, Adam, AdamW
from glassgrad.nn.optim.clip import clip_grad_norm_, clip_grad_value_
from glassgrad.nn.optim.optimizer import Optimizer, OptimizerGroup
from glassgrad.nn.optim.precision import MixedPrecision
from glassgrad.nn.optim.rmsprop import RMSprop
from glassgrad.nn.optim.schedule import (
    CosineSchedule,
    OneCycleSchedule,
    PlateauSchedule,
    Schedule,
    StepSchedule,
)
from glassgrad.nn.optim.sgd import LARS, SGD, Muon

__all__ = [
    "LAMB",
    "LARS",
    "SGD",
    "Adam",
    "AdamW",
    "CosineSchedule",
    "MixedPrecision",
    "Muon",
    "OneCycleSchedule",
    "Optimizer",
    "OptimizerGroup",
    "PlateauSchedule",
    "RMSprop",
    "Schedule",
    "StepSchedule",
    "clip_grad_norm_",
    "clip_grad_value_",
]
