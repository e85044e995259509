"""TinyJit under the name that scripts written for tinygrad import it by."""

from glassgrad.tensor.jit import TinyJit

__all__ = ["TinyJit"]
