"""The families of Tensor methods, one per file; each records primitives by `record`.

Tables of all methods that a new one joins: tests/tensor/test_all_gradients.py and
tests/support/variables/cases.py.
"""
