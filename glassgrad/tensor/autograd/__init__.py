"""Gradients: reverse-mode differentiation of graphs, derivatives per op, and what keeps old
values.
"""
