"""What several strategies share: the recipe builder, register tiles, packing, vectors, cores."""
