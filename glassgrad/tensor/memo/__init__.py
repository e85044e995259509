"""What repeated computations reuse: graph keys, cached steps, and arguments in place of
constants.
"""
