"""Training: a folder of tokens -> a trained model; runs can stop and resume at any step."""

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
from glassgrad.nn.files.atomic import write_atomically
from glassgrad.nn.gpt.config import Config
from glassgrad.nn.gpt.corpus import TEST_TOKENS, TRAIN_TOKENS
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
FINAL_RATE_FRACTION = 0.1  # of the learning rate, at the end of a run


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """The length and speed of a run. With `seconds` it ends by the clock, not by steps."""

    steps: int = 1000
    seconds: float = 0.0
    batch: int = 16
    rate: float = 2e-3
    warmup: int = 50
    decay: float = 0.05
    max_gradient_norm: float = 1.0
    seed: int = 0

    def factor(self, step: int, seconds: float) -> float:
        """The fraction of the learning rate: linear warm-up, then half a cosine down."""
        if step < self.warmup:
            return (step + 1) / (self.warmup + 1)
        return (
            FINAL_RATE_FRACTION
            + (1 - FINAL_RATE_FRACTION) * (1 + cos(pi * self.done(step, seconds))) / 2
        )

    def done(self, step: int, seconds: float) -> float:
        """The fraction of the run that is done."""
        return min(seconds / self.seconds if self.seconds else step / self.steps, 1.0)


class Step(NamedTuple):
    """A finished step."""

    number: int  # of steps done
    loss: float
    seconds: float  # since the run began, without pauses
    done: float  # fraction of the run


class Training:
    """A model in a folder, with everything that resuming needs."""

    def __init__(self, folder: Path, config: Config, options: TrainingOptions) -> None:
        self.folder, self.config, self.options = folder, config, options
        Tensor.manual_seed(options.seed)
        self.model = GPT(config)
        params = get_parameters(self.model)
        matrices = [param for param in params if param.ndim > 1]
        vectors = [param for param in params if param.ndim == 1]
        self.params = params
        self.optimizer = OptimizerGroup(
            AdamW(matrices, options.rate, b2=0.99, weight_decay=options.decay),
            AdamW(vectors, options.rate, b2=0.99, weight_decay=0.0),
        )
        self.loader = self._loader(TRAIN_TOKENS, options.seed)
        self.saved = Checkpoints(
            folder, keep=2, model=self.model, optimizer=self.optimizer, place=self.loader
        )
        self.number, self.seconds = 0, 0.0
        # Batches are arguments; the tokens behind the loader are too many to compare.
        self._train_step = TinyJit(self._train_on, constants=[self.loader])
        self._measure = TinyJit(self.model.loss)

    @classmethod
    def begin(cls, folder: Path, config: Config, options: TrainingOptions) -> Training:
        """A new run in this folder."""
        text = json.dumps({"model": config.to_json(), "plan": asdict(options)}, indent=1)
        write_atomically(folder / CONFIG, [text.encode()])
        return cls(folder, config, options)

    @classmethod
    def resume(cls, folder: Path, **changes: Any) -> Training:
        """The run in this folder, from its last checkpoint."""
        config, saved_options = read_config(folder)
        known = {field.name for field in fields(TrainingOptions)}
        given = {
            name: value for name, value in {**saved_options, **changes}.items() if name in known
        }
        made = cls(folder, config, TrainingOptions(**given))
        made.number = made.saved.resume()
        made.seconds = float((made.saved.notes() or {}).get("seconds", 0.0))
        return made

    def save(self) -> Path:
        return self.saved.save(self.number, {"seconds": self.seconds})

    def steps(self) -> Generator[Step, None, None]:
        """Train to the end of the run."""
        self.loader.seek(self.loader.position())  # continue where an earlier call stopped
        while self._done() < 1.0:
            with closing(iter(self.loader)) as batches:
                for batch in batches:
                    yield self._step(batch)
                    if self._done() >= 1.0:
                        return

    def _step(self, batch: Tensor) -> Step:
        start = perf_counter()
        rate = self.options.rate * self.options.factor(self.number, self.seconds)
        with Context(TRAINING=1):
            loss = self._train_step(batch, Tensor([rate], requires_grad=False)).item()
        if not isfinite(loss):
            raise GradientError(
                f"the loss of step {self.number + 1} is {loss}",
                hint="use a smaller learning rate; the last checkpoint is unchanged",
            )
        self.number += 1
        self.seconds += perf_counter() - start
        return Step(self.number, loss, self.seconds, self._done())

    def test(self) -> float | None:
        """The mean loss of a few test batches; None if the test set is too short."""
        losses: list[float] = []
        try:
            loader = self._loader(TEST_TOKENS, None)
        except ShapeError:  # not even one window
            return None
        for batch in loader:
            losses.append(float(self._measure(*_pairs(batch)).item()))
            if len(losses) == TEST_BATCHES:
                break
        return sum(losses) / len(losses)

    def _done(self) -> float:
        return self.options.done(self.number, self.seconds)

    def _train_on(self, batch: Tensor, rate: Tensor) -> Tensor:
        for one in self.optimizer.optimizers:
            one.lr.assign(rate)
        self.optimizer.zero_grad()
        loss = self.model.loss(*_pairs(batch))
        loss.backward()
        clip_grad_norm_(self.params, self.options.max_gradient_norm)
        return loss.realize(*self.optimizer.schedule_step())

    def _loader(self, name: str, seed: int | None) -> Loader:
        windows = TokenWindows(self.folder / name, self.config.context)
        size = min(self.options.batch, len(windows))
        return Loader(windows, batch_size=size, seed=seed, drop_last=True)


def read_config(folder: Path) -> tuple[Config, dict[str, Any]]:
    """The config of the model in a folder, and its training options."""
    try:
        found = json.loads((folder / CONFIG).read_text("utf-8"))
        options = dict(found["plan"])
        if "longest_gradient" in options:  # as earlier versions wrote it
            options["max_gradient_norm"] = options.pop("longest_gradient")
        return Config.from_json(found["model"]), options
    except OSError:
        raise FormatError(f"{folder} is not a training folder: it has no {CONFIG}") from None
    except (ValueError, KeyError, TypeError) as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError(f"{folder} is not a training folder: {error}") from None


def _pairs(batch: Tensor) -> tuple[Tensor, Tensor]:
    """Inputs and targets: tokens, and the next token of each."""
    return batch[:, :-1], batch[:, 1:]
