"""MixedPrecision: float16 or bfloat16 parameters, float32 master weights, dynamic loss scaling."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from glassgrad.base.dtype import DTypeLike, dtypes
from glassgrad.nn.initial import state
from glassgrad.nn.optim.optimizer import Optimizer
from glassgrad.tensor.extension import dtype_of
from glassgrad.tensor.tensor import Tensor


class MixedPrecision:
    """Mixed-precision training.

    Parameters are cast to `dtype`; the optimiser that `make` returns updates float32 master
    weights, and every step rounds them to the parameters. float16 gradients underflow below 6e-8,
    so the loss is scaled: call `scaled(loss).backward()`. A step with an inf or nan gradient is
    skipped and halves the scale; after `patience` good steps the scale doubles.

    >>> from glassgrad.nn.optim import SGD
    >>> w = Tensor([1.0, 2.0])
    >>> optimizer = MixedPrecision([w], lambda params: SGD(params, lr=0.25), dtype="bfloat16")
    >>> _ = optimizer.scaled((w * w).sum()).backward()
    >>> optimizer.step()
    >>> w.dtype, w.tolist()
    (dtypes.bfloat16, [0.5, 1.0])
    """

    def __init__(
        self,
        params: Iterable[Tensor],
        make: Callable[[list[Tensor]], Optimizer],
        dtype: DTypeLike = dtypes.bfloat16,
        scale: float | None = None,
        patience: int = 2000,
    ) -> None:
        self.params = list({id(param): param for param in params}.values())
        masters = [param.cast(dtypes.float32).contiguous() for param in self.params]
        wanted = dtype_of(dtype)
        for param in self.params:
            param.replace(param.cast(wanted).contiguous()).is_param_()
        Tensor.realize(*masters, *self.params)
        self.optimizer = make(masters)
        self.masters = masters
        # bfloat16 has the exponent range of float32 and needs no scaling.
        default_scale = 2.0**16 if wanted is dtypes.float16 else 1.0
        self.scale = state(default_scale if scale is None else float(scale), 1)
        self.good_steps = state(0.0, 1)
        self.patience = patience

    @property
    def optimizers(self) -> tuple[Optimizer, ...]:
        """The optimisers whose learning rates schedules write."""
        return self.optimizer.optimizers

    def scaled(self, loss: Tensor) -> Tensor:
        """The loss times the scale; call backward() on this one."""
        return loss.cast(dtypes.float32) * self.scale.reshape(())

    def zero_grad(self) -> None:
        """Drop the gradients."""
        for param in (*self.params, *self.masters):
            param.grad = None

    def unscale(self) -> list[Tensor]:
        """Move the unscaled gradients to the master weights, and return these, for clipping."""
        for param, master in zip(self.params, self.masters, strict=True):
            if param.grad is not None:
                master.grad = param.grad.cast(dtypes.float32) / self.scale.reshape(())
                param.grad = None
        return self.masters

    def step(self) -> None:
        """Update every parameter if all gradients are finite."""
        Tensor.realize(*self.schedule_step())

    def schedule_step(self) -> list[Tensor]:
        """The tensors that a step writes, lazily."""
        self.unscale()
        is_finite = self._are_finite(self.optimizer.gradients())
        self.optimizer.guard = is_finite
        written = self.optimizer.schedule_step()
        self.optimizer.guard = None
        for param, master in zip(self.params, self.masters, strict=True):
            param.assign(master.cast(param.dtype))
        return [*written, *self.params, *self._rescale(is_finite)]

    def _are_finite(self, gradients: list[Tensor]) -> Tensor:
        """True if no gradient has inf or nan: multiplied by 0, either gives nan."""
        sums = [(gradient * 0).sum() for gradient in gradients]
        return sum(sums[1:], sums[0]).eq(0).contiguous()

    def _rescale(self, is_finite: Tensor) -> list[Tensor]:
        good_steps = is_finite.where(self.good_steps + 1, 0.0)
        is_due = good_steps >= self.patience
        grown = is_due.where(self.scale * 2, self.scale)
        self.scale.assign(is_finite.where(grown, (self.scale / 2).maximum(1.0)))
        self.good_steps.assign(is_due.where(0.0, good_steps))
        return [self.scale, self.good_steps]
