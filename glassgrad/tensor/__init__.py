"""What people write: Tensor, its families of methods, and gradients."""
