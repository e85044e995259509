"""Bytes: who owns them (Storage), how they are seen (View), where they come from (allocator)."""
