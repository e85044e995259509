"""Kernels -> Executables: who chooses the loop moves, background compilation, and fallbacks."""
