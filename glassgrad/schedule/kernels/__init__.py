"""Fusion groups -> Kernels: scalar expressions under ranges, with their index arithmetic."""
