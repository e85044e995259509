"""Fusion groups -> Kernels: movement becomes index arithmetic, values become expressions."""
