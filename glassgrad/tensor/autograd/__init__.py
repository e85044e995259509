"""Gradients: the walk over the graph, a table of derivatives, and what they need of the past."""
