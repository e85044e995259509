"""Readers and writers: files of tensors <-> tensors by name."""
