"""Lazy evaluation: pending values, when they are computed, aliasing views, and in-place writes."""
