"""What repeated computations reuse: graph keys, cached steps, arguments for constants."""
