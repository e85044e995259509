"""Function -> Guards: a snapshot of every Python value that it can reach, checked before a replay.

A replay runs no Python, so values that the function read keep the effect that they had at the
capture. Which values it may read is over-approximated by reachability, without following bytecode:
closure cells, globals that the code names, defaults, `self` and other objects with every attribute
whose name occurs in reachable code, containers with all items, classes and properties with their
functions. `names` reads code, `reach` walks values, `snapshot` compares them, `impure` lists what
no snapshot can hold.
"""

from glassgrad.tensor.jit.guards.snapshot import GONE, Change, Guards, Roots

__all__ = ["GONE", "Change", "Guards", "Roots"]
