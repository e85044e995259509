"""UOps: one instance per node, weakly held, in topological order by number."""

import gc
import math
import pickle
import threading
import weakref

import pytest

import glassgrad.ir.uop as uop_module
from glassgrad.base.dtype import dtypes
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.stages import Param
from glassgrad.ir.uop import NODES, UOp, const, make_range, set_realized, toposort, variable

v, w = variable("v", 0, 9), variable("w", -3, 3)
param = UOp(Ops.PARAM, dtypes.float, (), Param(0, (4, 5), (5, 1)))


def test_equal_nodes_are_the_same_object():
    assert v + 1 is v + 1
    assert v + 1 is not v + 2
    assert UOp(Ops.ADD, dtypes.index, (v, w)) is v + w


@pytest.mark.parametrize(
    "left, right",
    [
        (const(0.0, dtypes.float), const(-0.0, dtypes.float)),
        (const(1, dtypes.int), const(1.0, dtypes.float)),
        (const(True, dtypes.bool), const(1, dtypes.int)),
        (const(1, dtypes.int), const(1, dtypes.long)),
    ],
)
def test_constants_that_compare_equal_are_told_apart(left, right):
    assert left is not right


def test_nan_is_one_constant():
    assert const(math.nan, dtypes.float) is const(-math.nan, dtypes.float)


def test_constants_are_values_of_their_dtype():
    assert const(300, dtypes.uchar).arg == 44
    assert type(const(1, dtypes.float).arg) is float
    assert const(2, dtypes.bool).arg is True


def test_unreferenced_nodes_are_freed():
    before = len(NODES)
    held = variable("forgotten", 0, 1) * 12_345
    assert len(NODES) > before
    del held
    gc.collect()
    assert len(NODES) <= before


def test_an_equal_expression_of_a_realized_node_is_a_new_node():
    x = variable("noted", 0, 1)
    node, held = x * 12_345, const(0)
    set_realized(node, held)
    again = x * 12_345
    assert again is not node
    assert (node.realized, again.realized) == (held, None)
    del node
    gc.collect()
    assert x * 12_345 is again  # the end of the first does not take the second away


def test_constants_are_never_marked_as_realized():
    two = const(2)
    set_realized(two, const(0))
    assert two.realized is None
    assert const(2) is two


def test_a_deep_graph_is_forgotten_without_recursion():
    node = variable("deep", 0, 1)
    for _ in range(100_000):
        node = -node
    del node
    gc.collect()


class Overtaken(dict):
    """A table in which another thread acts between a look and the deletion."""

    def __init__(self, items, meanwhile):
        super().__init__(items)
        self.meanwhile = meanwhile

    def get(self, key, default=None):
        found = super().get(key, default)
        self.meanwhile(self, key)
        return found


@pytest.mark.parametrize("is_filed_again", [False, True])
def test_a_node_that_two_threads_forget_at_once_is_forgotten_once(monkeypatch, is_filed_again):
    node = const(123456789)
    (key,) = [key for key, held in NODES.items() if held() is node]
    held, following = NODES[key], weakref.ref(node)

    def meanwhile(table, key):
        dict.pop(table, key, None)
        if is_filed_again:
            dict.__setitem__(table, key, following)

    table = Overtaken({key: held}, meanwhile)
    monkeypatch.setattr(uop_module, "NODES", table)
    uop_module._drop_node(held)
    assert dict(table) == ({key: following} if is_filed_again else {})


def test_threads_get_the_same_node():
    found = []
    ready = threading.Barrier(4)

    def work():
        ready.wait()
        found.append([v * (1_000_000 + n) for n in range(300)])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for nodes in zip(*found, strict=True):
        assert all(node is nodes[0] for node in nodes)


def test_pickling_gives_the_same_node():
    assert pickle.loads(pickle.dumps((v + 1) * w)) is (v + 1) * w


def test_replace_changes_one_field():
    assert (v + w).replace(op=Ops.SUB) is v - w
    assert (v + w).replace(src=(w, v)) is w + v


def test_operators_make_ops():
    built = {
        Ops.ADD: v + w, Ops.SUB: v - w, Ops.MUL: v * w, Ops.FLOORDIV: v // w, Ops.FLOORMOD: v % w,
        Ops.AND: v & w, Ops.OR: v | w, Ops.XOR: v ^ w, Ops.SHL: v << w, Ops.SHR: v >> w,
        Ops.CMPLT: v < w, Ops.CMPEQ: v.eq(w), Ops.CMPNE: v.ne(w), Ops.MAX: v.maximum(w),
        Ops.MIN: v.minimum(w),
    }  # fmt: skip
    for op, node in built.items():
        assert (node.op, node.src) == (op, (v, w))
        assert node.dtype is (dtypes.bool if op.name.startswith("CMP") else dtypes.index)


def test_where_has_the_dtype_of_its_choices():
    chosen = (v < w).where(const(1.0, dtypes.float), const(2.0, dtypes.float))
    assert chosen.dtype is dtypes.float


def test_casts_to_the_same_dtype_are_nothing():
    assert v.cast(dtypes.index) is v
    assert v.bitcast(dtypes.index) is v
    assert v.cast(dtypes.float).op is Ops.CAST


def test_an_index_knows_its_indices_and_gate():
    plain, gated = param.index(v, w), param.index(v, w, gate=v < 3)
    assert (plain.indices, plain.gate) == ((v, w), None)
    assert (gated.indices, gated.gate) == ((v, w), v < 3)
    assert gated.load().dtype is dtypes.float


def test_what_was_stored_has_the_dtype_of_its_value():
    store = UOp(Ops.STORE, dtypes.void, (param.index(v, w), param.index(w, v).load(), v))
    assert store.index(v, w).load().dtype is dtypes.float


def test_ranges_know_number_kind_and_size():
    found = make_range(2, 16, AxisKind.REDUCE)
    assert (found.axis, found.kind, found.size) == (2, AxisKind.REDUCE, 16)
    assert make_range(0, v).size == 9


def test_sources_come_first_in_topological_order():
    root = (v + w) * (v + w) - v
    order = root.toposort()
    assert order[-1] is root
    assert len(order) == len(set(order)) == 5
    for node in order:
        assert all(order.index(source) < order.index(node) for source in node.src)


def test_toposort_stops_where_told():
    inner = v + w
    order = toposort((inner * 2,), stop=lambda node: node is inner)
    assert v not in order
    assert inner in order
