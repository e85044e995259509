"""Captures: the launches of a watched function, recorded and replayed as one native call."""
