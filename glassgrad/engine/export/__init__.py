"""Captures as files: a bundle that Python loads without a compiler, or a C library."""
