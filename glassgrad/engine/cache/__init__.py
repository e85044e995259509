"""What is done once: keys of graphs and kernels, and the plans and sources kept on disk."""
