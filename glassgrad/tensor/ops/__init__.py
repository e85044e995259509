"""The families of Tensor methods, one per file; each records primitives by `record`."""
