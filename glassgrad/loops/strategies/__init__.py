"""Nest -> Recipe: one file for each family of kernels; `heuristic` asks them in order."""
