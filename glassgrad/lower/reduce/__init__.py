"""Reductions and scans: accumulators, horizontal adds, blocked sums, int8 dot products."""
