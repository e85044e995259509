"""BEAM=n: recipes one change away, and the beam search over them."""
