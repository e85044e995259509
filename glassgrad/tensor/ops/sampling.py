"""Random permutations and draws from weights."""

from __future__ import annotations

from typing import Self

from glassgrad.base.dtype import DTypeLike, dtypes
from glassgrad.base.errors import ShapeError
from glassgrad.tensor.core import TensorCore
from glassgrad.tensor.device_names import canonical_device
from glassgrad.tensor.record import dtype_of, whole_number
from glassgrad.tensor.symbolic_sizes import with_concrete_arguments


class Sampling(TensorCore):
    """randperm and multinomial."""

    __slots__ = ()

    @classmethod
    @with_concrete_arguments
    def randperm(
        cls,
        n: int,
        device: str | None = None,
        dtype: DTypeLike = dtypes.int32,
        requires_grad: bool | None = None,
        contiguous: bool = True,  # noqa: ARG003  scripts pass it, as to rand
    ) -> Self:
        """The numbers 0 to n-1 in random order.

        >>> sorted(Tensor.randperm(4).tolist())
        [0, 1, 2, 3]
        """
        n = whole_number(n, "the size of a permutation")
        wanted = dtype_of(dtype)
        if n == 0:
            return cls.empty(0, dtype=wanted, device=device)
        bits = cls._random_bits(n, canonical_device(device)) >> 32
        order = bits.cast(dtypes.uint32).argsort().cast(wanted)
        return cls._leaf(order.uop, requires_grad)

    @with_concrete_arguments
    def multinomial(self, num_samples: int = 1, replacement: bool = False) -> Self:
        """Indices drawn with probabilities proportional to these weights, per row.

        >>> Tensor([0.0, 1.0, 0.0]).multinomial(4, replacement=True).tolist()
        [1, 1, 1, 1]
        """
        if not 1 <= self.ndim <= 2 or num_samples < 1 or 0 in self.uop.shape:
            raise ShapeError(
                f"cannot draw {num_samples} samples from weights of shape {self.shape}",
                hint="weights have one or two axes, and at least one sample is drawn",
            )
        categories = int(self.shape[-1])
        if not replacement and num_samples > categories:
            raise ShapeError(
                f"cannot draw {num_samples} of {categories} categories without replacement",
                hint="pass replacement=True",
            )
        rows = self.reshape((-1, categories)).cast(dtypes.float32).detach()
        drawn = (
            rows._draw_with_replacement(num_samples)
            if replacement
            else rows._draw_without_replacement(num_samples)
        )
        return drawn.reshape((*self.shape[:-1], num_samples))

    def _draw_with_replacement(self, count: int) -> Self:
        """With replacement: the number of running sums that a uniform number exceeds."""
        sums = self.cumsum(1)
        chance = type(self).rand(self.shape[0], count, device=self.device) * sums[:, -1:]
        passed = chance.unsqueeze(2) >= sums.unsqueeze(1)
        # Rounding may reach the total: an index of weight 0 at the end must not be drawn.
        return passed.cast(dtypes.int32).sum(2).minimum(self._last_positive_weight())

    def _last_positive_weight(self) -> Self:
        """The last index of each row with a positive weight."""
        line = self._iota(int(self.shape[1]))
        return (self > 0).where(line, 0).max(1, keepdim=True)

    def _draw_without_replacement(self, count: int) -> Self:
        """Without replacement: the first arrivals at exponential times over the weights."""
        chance = type(self).rand(*self.shape, device=self.device)
        speed = ((1.0 - chance).log() - 1e-30) / self  # negative; weight 0 gives -inf
        return speed.topk(count, 1)[1]
