"""The methods of Tensor, one family a file; each is made of the primitives in `record`."""
