"""Graph -> graph: rewrites before materialization, from in-place writes to split reductions."""
