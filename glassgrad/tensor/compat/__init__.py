"""Names of PyTorch, NumPy and tinygrad for methods that have another name here."""
