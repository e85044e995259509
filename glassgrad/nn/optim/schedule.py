"""Learning-rate schedules that work inside captured steps.

A schedule keeps its step count in a tensor and writes the optimiser's learning-rate tensor.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, pi

from glassgrad.nn.initial import state
from glassgrad.nn.optim.optimizer import Optimizer
from glassgrad.tensor.tensor import Tensor


class Schedule:
    """Learning rate = initial learning rate * factor(number of steps).

    >>> from glassgrad.nn.optim import SGD
    >>> optimizer = SGD([Tensor([1.0])], lr=8.0)
    >>> schedule = Schedule(optimizer, lambda count: 0.5**count)
    >>> [schedule.step() or optimizer.lr.item() for _ in range(3)]
    [4.0, 2.0, 1.0]
    """

    def __init__(
        self, optimizer: Optimizer, factor: Callable[[Tensor], Tensor] | None = None
    ) -> None:
        self.rates = [one.lr for one in optimizer.optimizers]
        self.initial = [rate.clone().is_param_(is_param=False) for rate in self.rates]
        self.count = state(0.0, 1)
        self._function = factor
        Tensor.realize(*self.initial)
        Tensor.realize(*self._write())

    def factor(self, count: Tensor) -> Tensor:
        """The factor after `count` steps."""
        assert self._function is not None, "pass a factor function, or override factor()"
        return self._function(count)

    def step(self) -> None:
        """Count a step and update the learning rate."""
        Tensor.realize(*self.schedule_step())

    def schedule_step(self) -> list[Tensor]:
        """The tensors that step() writes, lazily."""
        self.count.assign(self.count + 1)
        return self._write()

    def _write(self) -> list[Tensor]:
        factor = self.factor(self.count)
        for rate, initial in zip(self.rates, self.initial, strict=True):
            rate.assign((initial * factor).cast(rate.dtype))
        return [self.count, *self.rates]


class StepSchedule(Schedule):
    """Multiplies the learning rate by gamma every step_size steps."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1) -> None:
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer)

    def factor(self, count: Tensor) -> Tensor:
        return self.gamma ** (count / self.step_size).floor()


class CosineSchedule(Schedule):
    """Linear warm-up for `warmup` steps, then half a cosine down to `least` at `steps`.

    `least` is a fraction of the initial learning rate.
    """

    def __init__(
        self, optimizer: Optimizer, steps: int, warmup: int = 0, least: float = 0.0
    ) -> None:
        if not 0 <= warmup < steps:
            raise ValueError(f"warmup must be at least 0 and less than {steps} steps, not {warmup}")
        self.steps, self.warmup, self.least = steps, warmup, least
        super().__init__(optimizer)

    def factor(self, count: Tensor) -> Tensor:
        left = ((self.steps - count) / (self.steps - self.warmup)).clamp(0.0, 1.0)
        down = cosine(1.0, self.least, left)
        if not self.warmup:
            return down
        return (count < self.warmup).where((count + 1) / (self.warmup + 1), down)


class OneCycleSchedule(Schedule):
    """The one-cycle policy: cosine up from lr / div_factor to lr, then down to almost 0.

    As in PyTorch, with the optimiser's lr as max_lr; the momentum is not changed.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        steps: int,
        pct_start: float = 0.3,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
    ) -> None:
        if steps * pct_start <= 1:
            raise ValueError(f"pct_start {pct_start} of {steps} steps is no more than one step")
        self.top, self.last = steps * pct_start - 1, steps - 1
        self.start = 1 / div_factor
        self.end = self.start / final_div_factor
        super().__init__(optimizer)

    def factor(self, count: Tensor) -> Tensor:
        up = cosine(1.0, self.start, (count / self.top).clamp(0.0, 1.0))
        left = ((self.last - count) / (self.last - self.top)).clamp(0.0, 1.0)
        return (count <= self.top).where(up, cosine(1.0, self.end, left))


class PlateauSchedule(Schedule):
    """Multiplies the learning rate by `shrink` if step(loss) has not improved for `patience` steps.

    `mode="max"` is for metrics that should grow, such as an accuracy.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        shrink: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        least: float = 0.0,
        mode: str = "min",
    ) -> None:
        if mode not in ("min", "max"):
            raise ValueError(f"mode is min or max, not {mode!r}")
        self.shrink, self.patience, self.threshold, self.least = shrink, patience, threshold, least
        self.is_loss = mode == "min"
        self.best, self.waited = state(inf if self.is_loss else -inf, 1), state(0.0, 1)
        self.now = state(1.0, 1)
        super().__init__(optimizer)

    def factor(self, count: Tensor) -> Tensor:
        return self.now

    def step(self, loss: Tensor | float) -> None:  # type: ignore[override]
        Tensor.realize(*self.schedule_step(loss))

    def schedule_step(self, loss: Tensor | float) -> list[Tensor]:  # type: ignore[override]
        given = loss if isinstance(loss, Tensor) else Tensor(float(loss))
        value = given.detach().cast(self.best.dtype).reshape(1)
        below, above = self.best * (1 - self.threshold), self.best * (1 + self.threshold)
        is_better = value < below if self.is_loss else value > above
        waited = is_better.where(0.0, self.waited + 1)
        is_over = waited > self.patience
        self.best.assign(is_better.where(value, self.best))
        self.waited.assign(is_over.where(0.0, waited))
        self.now.assign(is_over.where((self.now * self.shrink).maximum(self.least), self.now))
        return [*super().schedule_step(), self.best, self.waited, self.now]


def cosine(start: float, end: float, left: Tensor) -> Tensor:
    """Half a cosine from start to end as `left` goes from 1 to 0.

    (1 + cos(pi - x)) / 2 = sin(x / 2)^2, which is accurate near the end.
    """
    return (left * (pi / 2)).sin().square() * (start - end) + end
