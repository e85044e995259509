"""Optimizer, the base of all optimisers: gradients -> in-place updates of parameters.

Numbers that change from step to step are tensors, so every step is the same program, and a
captured step sees them change.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, TypedDict, Unpack

from glassgrad.base.dtype import DType, dtypes
from glassgrad.base.errors import DeviceError, GradientError
from glassgrad.base.origin import here
from glassgrad.ir.ops import Ops
from glassgrad.memory.allocator import is_file
from glassgrad.tensor.extension import canonical_device, defer, exclusive, unrealized_holders, write
from glassgrad.tensor.tensor import Tensor

ASSIGN = Ops.ASSIGN
Update = Callable[..., Tensor]
FOREIGN_OPTIONS = {"betas": "; pass b1 and b2"}  # PyTorch's names -> what to write


class Placement(TypedDict, total=False):
    """The device of an optimiser; the default is that of its first parameter.

    `fused` is accepted for compatibility: updates share kernels in any case.
    """

    device: str | None
    fused: bool


class Optimizer:
    """Parameters and an update rule.

    If `guard` is a false tensor, a step changes nothing.
    """

    def __init__(self, params: Iterable[Tensor], lr: float, **placement: Unpack[Placement]) -> None:
        for name in placement.keys() - Placement.__annotations__.keys():
            hint = FOREIGN_OPTIONS.get(name, "")
            raise TypeError(f"{type(self).__name__}() has no argument {name!r}{hint}")
        self.params = list({id(param): param for param in params}.values())
        if not self.params:
            raise GradientError("an optimiser needs parameters", hint="pass a list of tensors")
        for number, param in enumerate(self.params):
            if not isinstance(param, Tensor):
                raise GradientError(
                    f"parameter {number} is a {type(param).__name__}, not a Tensor",
                    hint="OptimizerGroup.of takes parameter groups with their own options",
                )
            if param.dtype.kind != "float":
                raise GradientError(
                    f"parameter {number} of shape {param.shape} has dtype {param.dtype.name}, "
                    "which has no gradient",
                    hint="nn.state.get_parameters(model) leaves such tensors out",
                )
            param.is_param_()
        devices = [param.device for param in self.params if not is_file(param.device)]
        self.device = canonical_device(placement.get("device") or next(iter(devices), None))
        elsewhere = [device for device in devices if device != self.device]
        if elsewhere:
            raise DeviceError(
                f"an optimiser on {self.device} cannot update a parameter on {elsewhere[0]}",
                hint=f"call parameter.to_({self.device!r}) before making the optimiser",
            )
        self._rate = self._convert_foreign(float(lr))
        self.guard: Tensor | None = None
        Tensor.realize(*self.params)

    @property
    def optimizers(self) -> tuple[Optimizer, ...]:
        """The optimisers of a group, each with one learning rate; an optimiser itself otherwise."""
        return (self,)

    @property
    def lr(self) -> Tensor:
        """The learning rate. Assigning a number writes it into the same tensor, so captured steps
        see it.

        >>> optimizer = Optimizer([Tensor([1.0])], lr=0.5)
        >>> optimizer.lr = 0.25
        >>> optimizer.lr.item()
        0.25
        """
        return self._rate

    @lr.setter
    def lr(self, rate: Tensor | float) -> None:
        if isinstance(rate, Tensor):
            self._rate = rate
        else:
            self._rate.assign(Tensor.full(self._rate.shape, float(rate), dtype=self._rate.dtype))

    def zero_grad(self) -> None:
        """Drop the gradients."""
        for param in self.params:
            param.grad = None

    @exclusive
    def accumulate(self) -> None:
        """Compute the accumulated gradients, which frees the graphs behind them.

        The next backward() adds to them: gradient accumulation over small batches.
        """
        Tensor.realize(*self.gradients())

    @exclusive
    def step(self) -> None:
        """Update every parameter."""
        Tensor.realize(*self.schedule_step())

    def schedule_step(self) -> list[Tensor]:
        """The tensors that a step writes, lazily.

        They include other pending writes, such as those to running statistics.
        """
        written = self._apply_rule()
        own = {id(tensor) for tensor in written}
        lazy = [tensor for tensor in unrealized_holders() if isinstance(tensor, Tensor)]
        return [*written, *(t for t in lazy if t.uop.op is ASSIGN and id(t) not in own)]

    def gradients(self) -> list[Tensor]:
        """The gradient of every parameter; a parameter without one is an error."""
        for number, param in enumerate(self.params):
            if param.grad is None:
                raise GradientError(
                    f"parameter {number} of shape {param.shape} has no gradient",
                    hint="call backward() on a value that depends on it first",
                )
        return [param.grad for param in self.params if param.grad is not None]

    def _apply_rule(self) -> list[Tensor]:
        """Apply the rule to gradients of at least float32: squares of float16 would underflow."""
        return self._write([_widened(gradient) for gradient in self.gradients()])

    def _write(self, gradients: list[Tensor]) -> list[Tensor]:
        raise NotImplementedError

    def _set(self, target: Tensor, value: Tensor) -> Tensor:
        """Assign a value; if the guard is false, the old value is kept."""
        value = value.cast(target.dtype)
        return target.assign(value if self.guard is None else self.guard.where(value, target))

    def _update(
        self, target: Tensor, function: Update, options: tuple[Hashable, ...], *tensors: Tensor
    ) -> None:
        """Assign function(*options, *tensors); the function must be pure.

        It becomes one deferred node, so the graph of a repeated step is written only once.
        """
        uop, line = target.uop, here()
        if uop.shape:
            node = defer(function, options, tensors, uop.shape, uop.dtype, line)
        else:  # the parameter is a scalar, and learning rates have shape (1,)
            rows = [tensor if tensor.shape else tensor.reshape(1) for tensor in tensors]
            row = Tensor._from_uop(defer(function, options, rows, (1,), uop.dtype, line))
            node = row.reshape(()).uop
        if self.guard is None:
            write(target, node, origin=line)
        else:
            self._set(target, Tensor._from_uop(node))

    def _convert_foreign(self, value: float) -> Tensor:
        """A scalar of the state, on the optimiser's device."""
        are_double = all(param.dtype is dtypes.float64 for param in self.params)
        dtype = dtypes.float64 if are_double else dtypes.float32
        made = Tensor([value], dtype=dtype, device=self.device, requires_grad=False)
        return made.realize()

    def _zeros(self) -> list[Tensor]:
        """State for each parameter, in float32 at least: sums of narrow floats would not grow."""
        made = [
            param.zeros_like(dtype=_wide(param.dtype)).is_param_(is_param=False)
            for param in self.params
        ]
        Tensor.realize(*made)
        return made


class OptimizerGroup(Optimizer):
    """Several optimisers that step together: parameter groups with their own options.

    >>> from glassgrad.nn.optim import SGD
    >>> weights, biases = [Tensor.ones(2, 2)], [Tensor.zeros(2)]
    >>> both = OptimizerGroup(SGD(weights, weight_decay=0.1), SGD(biases))
    >>> len(both.params)
    2
    """

    def __init__(self, *optimizers: Optimizer) -> None:
        if not optimizers:
            raise GradientError("an optimiser group needs at least one optimiser")
        self.parts = optimizers
        self.params = [param for one in optimizers for param in one.params]
        if len({id(param) for param in self.params}) != len(self.params):
            raise GradientError("a parameter belongs to two optimisers of the group")

    @classmethod
    def of(
        cls, kind: type[Optimizer], groups: Iterable[Mapping[str, Any]], **options: Any
    ) -> OptimizerGroup:
        """One optimiser of class `kind` for each group {"params": [...], "weight_decay": 0}.

        >>> from glassgrad.nn.optim import AdamW
        >>> groups = [{"params": [Tensor.ones(2)]}, {"params": [Tensor.ones(2)], "lr": 0.1}]
        >>> [one.lr.item() for one in OptimizerGroup.of(AdamW, groups, lr=0.5).optimizers][0]
        0.5
        """
        return cls(*(kind(**{**options, **group}) for group in groups))

    @property
    def optimizers(self) -> tuple[Optimizer, ...]:
        return tuple(part for one in self.parts for part in one.optimizers)

    @property
    def lr(self) -> Tensor:
        """The learning rate of the first optimiser; assigning sets that of all."""
        return self.optimizers[0].lr

    @lr.setter
    def lr(self, rate: Tensor | float) -> None:
        for one in self.optimizers:
            one.lr = rate

    @property
    def guard(self) -> Tensor | None:
        return self.optimizers[0].guard

    @guard.setter
    def guard(self, guard: Tensor | None) -> None:
        for one in self.optimizers:
            one.guard = guard

    def _apply_rule(self) -> list[Tensor]:
        return [tensor for one in self.parts for tensor in one._apply_rule()]


def _widened(gradient: Tensor) -> Tensor:
    return gradient if gradient.uop.dtype.bits >= 32 else gradient.cast(dtypes.float32)


def _wide(dtype: DType) -> DType:
    return dtypes.float32 if dtype.bits < 32 else dtype
