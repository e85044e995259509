"""Buffer: the eager strided array; each operation walks the compiler's road at once."""

from glassgrad.buffer.buffer import Buffer

__all__ = ["Buffer"]
