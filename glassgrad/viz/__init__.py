"""A browser page about a program's computations, from the user's lines to machine code."""
