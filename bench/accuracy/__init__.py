"""Accuracy: the largest errors of functions and sums, and the documented bounds."""
