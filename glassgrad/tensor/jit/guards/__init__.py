"""function -> Guards: a snapshot of every Python value that it can reach, checked before a replay.

A replay runs no Python, so a value that the function reads stays what it was when the function was
captured. Which values it may read is over-approximated by reachability, not by following the
bytecode: closure cells, globals that the code names, defaults, `self` and other objects with every
attribute whose name occurs in any code that can be reached, containers with all items, classes and
properties with their functions. `names` reads code, `reach` walks values, `snapshot` compares,
`impure` knows what no snapshot can hold.
"""

from glassgrad.tensor.jit.guards.snapshot import GONE, Change, Guards, Roots

__all__ = ["GONE", "Change", "Guards", "Roots"]
