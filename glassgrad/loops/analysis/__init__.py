"""Analyses that moves and strategies share: mask bounds and the online-softmax pattern."""
