"""All operations of random programs by name; each family is a file."""

from __future__ import annotations

from fuzz.ops.contraction import CONTRACTION
from fuzz.ops.elementwise import ELEMENTWISE
from fuzz.ops.indexing import INDEXING
from fuzz.ops.layers import NETWORKS
from fuzz.ops.movement import COPIES, VIEWS
from fuzz.ops.reductions import REDUCTIONS
from fuzz.ops.table import Op
from fuzz.ops.writes import OTHERS, WRITES

FAMILIES: dict[str, list[Op]] = {
    "elementwise": ELEMENTWISE,
    "views": VIEWS,
    "copies": COPIES,
    "indexing": INDEXING,
    "reductions": REDUCTIONS,
    "contraction": CONTRACTION,
    "networks": NETWORKS,
    "writes": WRITES,
    "others": OTHERS,
}
OPS: dict[str, Op] = {op.name: op for family in FAMILIES.values() for op in family}
assert len(OPS) == sum(map(len, FAMILIES.values())), "two operations have one name"
