"""MixedPrecision: a model in half floats, an optimiser in float32, a loss that is scaled."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from glassgrad.base.dtype import DTypeLike, dtypes
from glassgrad.nn.initial import state
from glassgrad.nn.optim.optimizer import Optimizer
from glassgrad.tensor.extension import dtype_of
from glassgrad.tensor.tensor import Tensor


class MixedPrecision:
    """Train a model whose parameters are half floats.

    The parameters become `dtype`; the optimiser that `make` gives moves copies of them in float32,
    and every step rounds those anew. Gradients of float16 vanish below 6e-8, so the loss is
    multiplied by a number first: use `scaled(loss).backward()`. Where a gradient is inf or nan, the
    step does nothing and the number is halved; after `patience` good steps it is doubled.

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
        # bfloat16 reaches as far as float32: nothing vanishes there.
        usual = 2.0**16 if wanted is dtypes.float16 else 1.0
        self.scale = state(usual if scale is None else float(scale), 1)
        self.good = state(0.0, 1)
        self.patience = patience

    @property
    def optimizers(self) -> tuple[Optimizer, ...]:
        """For schedules: where the learning rates are."""
        return self.optimizer.optimizers

    def scaled(self, loss: Tensor) -> Tensor:
        """The loss times the scale; call backward() on this one."""
        return loss.cast(dtypes.float32) * self.scale.reshape(())

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for param in (*self.params, *self.masters):
            param.grad = None

    def unscale(self) -> list[Tensor]:
        """Hand the gradients to the float32 copies, which are given back: clip theirs."""
        for param, master in zip(self.params, self.masters, strict=True):
            if param.grad is not None:
                master.grad = param.grad.cast(dtypes.float32) / self.scale.reshape(())
                param.grad = None
        return self.masters

    def step(self) -> None:
        """Move every parameter once, if all gradients are numbers."""
        Tensor.realize(*self.schedule_step())

    def schedule_step(self) -> list[Tensor]:
        """The tensors that a step writes, not computed yet."""
        self.unscale()
        fine = self._are_numbers(self.optimizer.gradients())
        self.optimizer.guard = fine
        written = self.optimizer.schedule_step()
        self.optimizer.guard = None
        for param, master in zip(self.params, self.masters, strict=True):
            param.assign(master.cast(param.dtype))
        return [*written, *self.params, *self._rescale(fine)]

    def _are_numbers(self, gradients: list[Tensor]) -> Tensor:
        """Whether no gradient has inf or nan in it: times 0, any of them is nan."""
        sums = [(gradient * 0).sum() for gradient in gradients]
        return sum(sums[1:], sums[0]).eq(0).contiguous()

    def _rescale(self, fine: Tensor) -> list[Tensor]:
        good = fine.where(self.good + 1, 0.0)
        is_long = good >= self.patience
        grown = is_long.where(self.scale * 2, self.scale)
        self.scale.assign(fine.where(grown, (self.scale / 2).maximum(1.0)))
        self.good.assign(is_long.where(0.0, good))
        return [self.scale, self.good]
