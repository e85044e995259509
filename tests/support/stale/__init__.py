"""Ways to change a value behind a captured function: a function, what changes, and its name.

A `Way` is made anew for each test: the function takes one tensor, `change()` gives it other values.
Many ways are products: where a value is kept, times what kind of value it is.
"""

from support.stale import access, classes, locations
from support.stale.kinds import WAYS
from support.stale.models import MODEL_CHANGES, Net

__all__ = ["MODEL_CHANGES", "WAYS", "Net", "access", "classes", "locations"]
