"""Caches: keys of graphs and kernels, and plans and sources on disk."""
