"""Assignment: new contents for a tensor or a part of it, by `assign`, `x[...] = y` and `x += y`."""

from __future__ import annotations

from typing import Any, Self

from glassgrad.base.dtype import dtypes
from glassgrad.base.errors import AxisError, DTypeError, ShapeError
from glassgrad.ir.uop import UOp
from glassgrad.tensor.core import TensorCore
from glassgrad.tensor.lazy.exclusive import exclusive
from glassgrad.tensor.lazy.in_place_writes import make_writable, write
from glassgrad.tensor.lazy.unrealized import set_node
from glassgrad.tensor.ops.indexing import gather_indexed, plan_index, scatter_indexed
from glassgrad.tensor.record import SCALARS, can_expand, cast_to, expanded


class Assignment(TensorCore):
    """assign, replace, item assignment and the operators that write in place."""

    __slots__ = ()

    def assign(self, x: Any) -> Self:
        """Write new contents. Tensors made before the write read the old contents, tensors made
        after it the new.

        Assigning to a view writes to the tensor that it is a view of.

        >>> x = Tensor([1, 2])
        >>> x.assign(x + 1).shape
        (2,)
        """
        value = self._value_to_write(x, self.uop.shape)
        if value is self.uop:
            return self
        write(self, value)
        return self

    def _value_to_write(self, x: Any, shape: tuple[int, ...]) -> UOp:
        """The value to write, in the target's shape and dtype."""
        if isinstance(x, TensorCore) and x.uop.dtype is self.uop.dtype and x.uop.shape == shape:
            return x.uop
        if isinstance(x, (list, tuple)):
            x = type(self)(x, dtype=self.dtype)
        value = self._operand(x, "write")
        if isinstance(x, SCALARS):
            value = cast_to(self._promoted_operands(x, "write")[1], self.dtype)
        if value.dtype is not self.dtype:
            raise DTypeError(
                f"cannot write {value.dtype.name} into a tensor of {self.dtype.name}",
                hint=f"cast it first: .cast({self.dtype})",
            )
        if not can_expand(value.shape, shape):
            raise ShapeError(
                f"cannot write {value.shape} into a target of shape {shape}",
                hint="axes must be equal, or 1 in what is written",
            )
        return expanded(value, shape)

    @exclusive
    def __setitem__(self, indices: Any, value: Any) -> None:
        if isinstance(indices, TensorCore) and indices.dtype is dtypes.bool and _is_number(value):
            self._fill(indices, value)
            return
        plan = plan_index(self._index_parts(indices), self.uop.shape)
        make_writable(self)
        target = self._wrap_raw(self.uop)._apply_steps(plan.steps)
        if plan.lookups:
            wanted = gather_indexed(target, plan).uop.shape
            if 0 in wanted or 0 in target.uop.shape:
                return
            new = self._from_uop(self._value_to_write(value, wanted))
            result = scatter_indexed(target, plan, new).uop
        else:
            result = self._value_to_write(value, target.uop.shape)
        del target  # a live view would make the write copy the old contents
        write(self, result, plan.steps)

    def _fill(self, mask: TensorCore, value: Any) -> None:
        """Write one number where a mask is true, without counting how many elements that are."""
        covered = self.uop.shape[: mask.ndim]
        if mask.uop.shape != covered or not mask.ndim:
            raise AxisError(f"a mask of shape {mask.shape} does not fit axes of shape {self.shape}")
        chosen = mask.reshape((*covered, *(1,) * (self.ndim - mask.ndim)))
        number = self._from_uop(self._value_to_write(value, ()))
        self[...] = chosen.where(number, self)

    @exclusive
    def replace(self, x: TensorCore) -> Self:
        """Hold another tensor's value; nothing is written.

        >>> Tensor([1, 2]).replace(Tensor([3, 4])).tolist()
        [3, 4]
        """
        x = self._as_tensor(x, "what replaces a tensor")
        if x.uop.shape != self.uop.shape:
            raise ShapeError(f"cannot replace {self.shape} by {x.shape}")
        if self._view_group is not None:
            self._view_group.leave(self)
        set_node(self, x.uop)
        return self

    # ------------------------------------------------------------------ in-place operators
    # Under the graph lock as a whole: no other thread writes between the read and the write.

    @exclusive
    def __iadd__(self, x: Any) -> Self:
        return self.assign(self + x)

    @exclusive
    def __isub__(self, x: Any) -> Self:
        return self.assign(self - x)

    @exclusive
    def __imul__(self, x: Any) -> Self:
        return self.assign(self * x)

    @exclusive
    def __itruediv__(self, x: Any) -> Self:
        return self.assign(self / x)

    @exclusive
    def __ifloordiv__(self, x: Any) -> Self:
        return self.assign(self // x)

    @exclusive
    def __ipow__(self, x: Any) -> Self:
        return self.assign(self**x)

    @exclusive
    def __iand__(self, x: Any) -> Self:
        return self.assign(self & x)

    @exclusive
    def __ior__(self, x: Any) -> Self:
        return self.assign(self | x)

    @exclusive
    def __ixor__(self, x: Any) -> Self:
        return self.assign(self ^ x)

    @exclusive
    def __ilshift__(self, x: Any) -> Self:
        return self.assign(self << x)

    @exclusive
    def __irshift__(self, x: Any) -> Self:
        return self.assign(self >> x)

    @exclusive
    def __imatmul__(self, x: Any) -> Self:
        return self.assign(self @ x)


def _is_number(value: Any) -> bool:
    return isinstance(value, SCALARS) or (isinstance(value, TensorCore) and not value.shape)
