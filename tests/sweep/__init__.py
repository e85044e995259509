"""Programs of realistic sizes -> kernels that are scheduled, optimized, lowered and checked, but
neither compiled nor run: `python -m sweep` in the folder of the tests.
"""
