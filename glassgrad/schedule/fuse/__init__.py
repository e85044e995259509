"""Statements -> fusion groups: which values share a kernel, and whether that is worth it."""
