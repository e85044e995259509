"""Dry runs of programs of realistic sizes: kernels are scheduled, optimized, lowered and checked,
but neither compiled nor run. `python -m sweep` in the folder of the tests.
"""
