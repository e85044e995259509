"""What people write: Tensor, its families of methods, and gradients."""

from glassgrad.tensor.tensor import Tensor

__all__ = ["Tensor"]
