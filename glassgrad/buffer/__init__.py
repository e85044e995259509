"""Buffer: an eager strided array; each operation runs the whole pipeline at once."""

from glassgrad.buffer.buffer import Buffer

__all__ = ["Buffer"]
