"""Prefetches: the operands of the next steps, and what an epilogue will read and write."""
