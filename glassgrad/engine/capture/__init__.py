"""Captures: the launches of a recorded function, replayed as one native call."""
