"""Loads, stores and scratch: addresses, bounds checks, transposed and non-temporal accesses."""
