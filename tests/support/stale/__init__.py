"""Mutations of values that a captured function reads.

Each test gets a new `Mutation`: a function of a tensor, and `change()`, after which the function
computes something else. Many are combinations of a location of the value and a kind of value.
"""

from support.stale import access, classes, locations
from support.stale.kinds import MUTATIONS
from support.stale.models import MODEL_CHANGES, Net

__all__ = ["MODEL_CHANGES", "MUTATIONS", "Net", "access", "classes", "locations"]
