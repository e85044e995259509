"""Lazy values: what is pending, when it is computed, who shares elements, and in-place writes."""
