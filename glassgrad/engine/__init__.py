"""Runs the stages in order, caches their results, and launches kernels."""
