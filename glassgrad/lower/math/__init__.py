"""Ops that machines lack, legalized: polynomials, emulated narrow floats, floored division."""
