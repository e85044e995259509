"""TinyJit under the name that scripts written for tinygrad import it by."""

from glassgrad.tensor.jit.function import TinyJit

__all__ = ["TinyJit"]
