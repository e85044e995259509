"""PYTHON: an interpreter of Programs, slow and obvious: the reference for every other device."""
