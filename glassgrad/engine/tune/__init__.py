"""BEAM=n: recipes measured in a process of their own, and the winner remembered."""
