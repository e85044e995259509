"""Training: a folder of tokens -> a model, step by step; it can stop and go on at any step."""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import closing
from dataclasses import asdict, dataclass, fields
from math import cos, isfinite, pi
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

from glassgrad.base.config import Context
from glassgrad.base.errors import FormatError, GradientError, ShapeError
from glassgrad.nn.checkpoint import Checkpoints
from glassgrad.nn.files.atomic import written_whole
from glassgrad.nn.gpt.config import Config
from glassgrad.nn.gpt.corpus import LEARNED, TESTED
from glassgrad.nn.gpt.model import GPT
from glassgrad.nn.loader import Loader
from glassgrad.nn.optim import AdamW
from glassgrad.nn.optim.clip import clip_grad_norm_
from glassgrad.nn.optim.optimizer import OptimizerGroup
from glassgrad.nn.state import get_parameters
from glassgrad.nn.tokens import TokenWindows
from glassgrad.tensor.jit.function import TinyJit
from glassgrad.tensor.tensor import Tensor

CONFIG = "config.json"
TEST_BATCHES = 8
LEAST_RATE = 0.1  # of the learning rate, at the end


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How long and how fast to learn. With `seconds` the run ends by the clock, not by steps."""

    steps: int = 1000
    seconds: float = 0.0
    batch: int = 16
    rate: float = 2e-3
    warmup: int = 50
    decay: float = 0.05
    longest_gradient: float = 1.0
    seed: int = 0

    def factor(self, step: int, seconds: float) -> float:
        """The share of the learning rate: up along a line, then down half a cosine."""
        if step < self.warmup:
            return (step + 1) / (self.warmup + 1)
        return LEAST_RATE + (1 - LEAST_RATE) * (1 + cos(pi * self.done(step, seconds))) / 2

    def done(self, step: int, seconds: float) -> float:
        """How much of the run is over, from 0 to 1."""
        return min(seconds / self.seconds if self.seconds else step / self.steps, 1.0)


class Step(NamedTuple):
    """One step is over."""

    number: int  # how many are done
    loss: float
    seconds: float  # since the run began, pauses left out
    done: float  # share of the run


class Training:
    """A model in a folder, and everything that is needed to go on with it."""

    def __init__(self, folder: Path, config: Config, plan: Plan) -> None:
        self.folder, self.config, self.plan = folder, config, plan
        Tensor.manual_seed(plan.seed)
        self.model = GPT(config)
        params = get_parameters(self.model)
        matrices = [param for param in params if param.ndim > 1]
        vectors = [param for param in params if param.ndim == 1]
        self.params = params
        self.optimizer = OptimizerGroup(
            AdamW(matrices, plan.rate, b2=0.99, weight_decay=plan.decay),
            AdamW(vectors, plan.rate, b2=0.99, weight_decay=0.0),
        )
        self.loader = self._loader(LEARNED, plan.seed)
        self.saved = Checkpoints(
            folder, keep=2, model=self.model, optimizer=self.optimizer, place=self.loader
        )
        self.number, self.seconds = 0, 0.0
        self._learn, self._measure = TinyJit(self._learned), TinyJit(self.model.loss)

    @classmethod
    def begin(cls, folder: Path, config: Config, plan: Plan) -> Training:
        """A run of its own in this folder."""
        text = json.dumps({"model": config.to_json(), "plan": asdict(plan)}, indent=1)
        written_whole(folder / CONFIG, [text.encode()])
        return cls(folder, config, plan)

    @classmethod
    def resume(cls, folder: Path, **changes: Any) -> Training:
        """The run of this folder, where it was saved last."""
        config, noted = read_config(folder)
        known = {field.name for field in fields(Plan)}
        given = {name: value for name, value in {**noted, **changes}.items() if name in known}
        made = cls(folder, config, Plan(**given))
        made.number = made.saved.resume()
        made.seconds = float((made.saved.notes() or {}).get("seconds", 0.0))
        return made

    def save(self) -> Path:
        return self.saved.save(self.number, {"seconds": self.seconds})

    def steps(self) -> Generator[Step, None, None]:
        """Learn to the end of the plan."""
        self.loader.seek(self.loader.position())  # where an earlier call was left
        while self._done() < 1.0:
            with closing(iter(self.loader)) as batches:
                for batch in batches:
                    yield self._step(batch)
                    if self._done() >= 1.0:
                        return

    def _step(self, batch: Tensor) -> Step:
        start = perf_counter()
        rate = self.plan.rate * self.plan.factor(self.number, self.seconds)
        with Context(TRAINING=1):
            loss = self._learn(batch, Tensor([rate], requires_grad=False)).item()
        if not isfinite(loss):
            raise GradientError(
                f"the loss of step {self.number + 1} is {loss}",
                hint="a smaller learning rate; what was saved last is still there",
            )
        self.number += 1
        self.seconds += perf_counter() - start
        return Step(self.number, loss, self.seconds, self._done())

    def test(self) -> float | None:
        """The mean loss of a few batches that are never learned from; None for a short text."""
        losses: list[float] = []
        try:
            loader = self._loader(TESTED, None)
        except ShapeError:  # not even one window was kept
            return None
        for batch in loader:
            losses.append(float(self._measure(*_pairs(batch)).item()))
            if len(losses) == TEST_BATCHES:
                break
        return sum(losses) / len(losses)

    def _done(self) -> float:
        return self.plan.done(self.number, self.seconds)

    def _learned(self, batch: Tensor, rate: Tensor) -> Tensor:
        for one in self.optimizer.optimizers:
            one.lr.assign(rate)
        self.optimizer.zero_grad()
        loss = self.model.loss(*_pairs(batch))
        loss.backward()
        clip_grad_norm_(self.params, self.plan.longest_gradient)
        return loss.realize(*self.optimizer.schedule_step())

    def _loader(self, name: str, seed: int | None) -> Loader:
        windows = TokenWindows(self.folder / name, self.config.context)
        size = min(self.plan.batch, len(windows))
        return Loader(windows, batch_size=size, seed=seed, drop_last=True)


def read_config(folder: Path) -> tuple[Config, dict[str, Any]]:
    """The shape of the model in a folder, and the plan it was trained by."""
    try:
        found = json.loads((folder / CONFIG).read_text("utf-8"))
        return Config.from_json(found["model"]), dict(found["plan"])
    except OSError:
        raise FormatError(f"{folder} holds no model that was trained here: no {CONFIG}") from None
    except (ValueError, KeyError, TypeError) as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError(f"{folder} holds no model that was trained here: {error}") from None


def _pairs(batch: Tensor) -> tuple[Tensor, Tensor]:
    """Tokens, and what comes behind each of them."""
    return batch[:, :-1], batch[:, 1:]
