"""Passes over the finished instruction list: dead code, interleaved dependency chains."""
