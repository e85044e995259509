"""The loop moves: one file each, legality and effect, with a picture; `table` lists them."""
