"""Kernels -> Executables: the recipe policy, background compilation, and fallbacks."""
