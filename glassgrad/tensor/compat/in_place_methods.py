"""In-place methods: PyTorch's names that end in an underscore."""

from __future__ import annotations

from typing import Any, Self

from glassgrad.base.errors import ShapeError
from glassgrad.tensor.core import TensorCore
from glassgrad.tensor.lazy.exclusive import exclusive


class InPlaceMethods(TensorCore):
    """add_, sub_, mul_, div_, clamp_, copy_, fill_ and zero_."""

    __slots__ = ()

    @exclusive
    def add_(self, other: Any, *, alpha: float = 1) -> Self:
        """x += alpha · other

        >>> Tensor([1, 2]).add_(Tensor([1, 1]), alpha=3).tolist()
        [4, 5]
        """
        return self._write(self + (other if alpha == 1 else other * alpha))

    @exclusive
    def sub_(self, other: Any, *, alpha: float = 1) -> Self:
        """x -= alpha · other

        >>> Tensor([1, 2]).sub_(1).tolist()
        [0, 1]
        """
        return self._write(self - (other if alpha == 1 else other * alpha))

    @exclusive
    def mul_(self, other: Any) -> Self:
        """x *= other

        >>> Tensor([1, 2]).mul_(2).tolist()
        [2, 4]
        """
        return self._write(self * other)

    @exclusive
    def div_(self, other: Any) -> Self:
        """x /= other

        >>> Tensor([1.0, 2.0]).div_(2).tolist()
        [0.5, 1.0]
        """
        return self._write(self / other)

    @exclusive
    def clamp_(self, min: Any = None, max: Any = None) -> Self:
        """Clamp the elements in place.

        >>> Tensor([-5, 5]).clamp_(min=0).tolist()
        [0, 5]
        """
        return self._write(self.clamp(min, max))

    def copy_(self, src: Any) -> Self:
        """Write the values of another tensor, broadcast to this shape.

        >>> Tensor([1, 2]).copy_(Tensor([7])).tolist()
        [7, 7]
        """
        return self._write(self._as_tensor(src, "what copy_ writes").to(self.device))

    def fill_(self, value: Any) -> Self:
        """Write one number everywhere.

        >>> Tensor([1, 2]).fill_(5).tolist()
        [5, 5]
        """
        if getattr(value, "shape", ()) != () or isinstance(value, (list, tuple)):
            raise ShapeError(f"fill_ takes one number, not {value!r}", hint="copy_ takes many")
        return self._write(value)

    def zero_(self) -> Self:
        """Write zeros everywhere.

        >>> Tensor([1, 2]).zero_().tolist()
        [0, 0]
        """
        return self._write(0)

    def _write(self, value: Any) -> Self:
        """Assign a value, cast to the dtype of this tensor."""
        if isinstance(value, TensorCore) and value.dtype is not self.dtype:
            if self.is_floating_point() or not value.is_floating_point():
                value = value.cast(self.dtype)
        return self.assign(value)
