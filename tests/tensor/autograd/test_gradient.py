"""Every derivative rule against finite differences in float64."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from support.random.graphs import smooth_graph
from support.references.finite_differences import Function, check, finite_differences, weighted
from support.references.graph import evaluate
from support.values.arrays import distinct, positive

from glassgrad import Tensor, dtypes
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp
from glassgrad.tensor.autograd.derivatives import RULES, broadcast_to, sum_to_shape
from glassgrad.tensor.autograd.gradient import gradients

X, Y = distinct((2, 3)), distinct((2, 3), seed=1) + 0.137
P, Q = positive((2, 3)), positive((2, 3), seed=1)

SMOOTH: dict[str, tuple[Function, tuple[np.ndarray, ...]]] = {
    "add": (lambda x, y: x + y, (X, Y)),
    "subtract": (lambda x, y: x - y, (X, Y)),
    "multiply": (lambda x, y: x * y, (X, Y)),
    "divide": (lambda x, y: x / y, (X, P)),
    "negate": (lambda x: -x * x, (X,)),
    "reciprocal": (lambda x: x.reciprocal(), (P,)),
    "sqrt": (lambda x: x.sqrt(), (P,)),
    "exp2": (lambda x: x.exp2(), (X,)),
    "log2": (lambda x: x.log2(), (P,)),
    "sin": (lambda x: x.sin(), (X,)),
    "power": (lambda x, y: x**y, (P, X)),
    "known power": (lambda x: x**2.5, (P,)),
    "broadcast": (lambda x, y: x * y, (distinct((3, 1)), distinct((2, 1, 4)))),
    "broadcast of a scalar": (lambda x, y: x * y + x, (distinct(()), X)),
    "reshape": (lambda x: (x * x).reshape(3, 2), (X,)),
    "permute": (lambda x: (x * x).permute(1, 0), (X,)),
    "expand": (lambda x: (x * x).expand(2, 3, 4), (distinct((3, 1)),)),
    "pad": (lambda x: (x * x).pad(((1, 0), (0, 2))), (X,)),
    "shrink": (lambda x: (x * x).shrink(((0, 1), (1, 3))), (X,)),
    "flip": (lambda x: (x * x).flip(1), (X,)),
    "window": (lambda x: (x * x)._window(0, 3, 2, 1), (distinct((8, 2)),)),
    "dilated window": (lambda x: (x * x)._window(1, 2, 1, 3), (distinct((2, 7)),)),
    "gather": (lambda x: (x * x).gather(1, Tensor([[0, 0, 2, 1], [1, 1, 1, 2]]) + 0), (X,)),
    "sum": (lambda x: (x * x).sum(0), (X,)),
    "product": (lambda x: x.prod(1), (X,)),
    "contiguous": (lambda x: (x * x).contiguous(), (X,)),
    "where": (lambda x, y: (x < y).where(x * x, y * y * y), (X, Y)),
    "cast": (lambda x: (x * x).cast("float64"), (X,)),
    "matmul": (lambda x, y: x @ y, (distinct((2, 3, 4)), distinct((4, 5)))),
    "softmax": (lambda x: x.softmax(1), (X,)),
    "log_softmax": (lambda x: x.log_softmax(0), (X,)),
    "layernorm": (lambda x: x.layernorm(1), (distinct((2, 4)),)),
    "tanh": (lambda x: (x * 0.9).tanh(), (X,)),
    "sigmoid": (lambda x: x.sigmoid(), (X,)),
    "erf": (lambda x: (x * 1.3).erf(), (X,)),
    "gelu": (lambda x: x.gelu(), (X,)),
    "exact gelu": (lambda x: x.gelu("none"), (X,)),
    "silu": (lambda x: x.silu(), (X,)),
    "cos": (lambda x: x.cos(), (X,)),
    "logsumexp": (lambda x: x.logsumexp(1), (X,)),
    "softplus": (lambda x: x.softplus(2.0), (X,)),
    "variance": (lambda x: x.var(1), (X,)),
    "convolution": (
        lambda x, y: x.conv2d(y, padding=1, stride=2, groups=2),
        (distinct((1, 4, 4, 3)), distinct((2, 2, 3, 2))),
    ),
    "average pool": (lambda x: (x * x).avg_pool2d(2, stride=1), (distinct((1, 1, 3, 4)),)),
}

BENT: dict[str, tuple[Function, tuple[np.ndarray, ...]]] = {
    "maximum": (lambda x, y: x.maximum(y), (X, Y)),
    "minimum": (lambda x, y: x.minimum(y), (X, Y)),
    "largest": (lambda x: x.max(1), (X,)),
    "smallest": (lambda x: x.min((0, 1)), (X,)),
    "relu": (lambda x: x.relu(), (X,)),
    "abs": (lambda x: x.abs(), (X,)),
    "clamp": (lambda x: x.clamp(-1, 1.5), (X,)),
    "max pool": (lambda x: x.max_pool2d((2, 2)), (distinct((1, 2, 4, 4)),)),
    "lookup by tensors": (lambda x: x[Tensor([1, 0, 1]), Tensor([2, 2, 0])], (X,)),
    "steps of two": (lambda x: x[:, ::-2], (X,)),
    "joined": (lambda x, y: x.cat(y, dim=1), (X, Y)),
    "cross-entropy": (lambda x: x.sparse_categorical_crossentropy(Tensor([2, 0])), (X,)),
    "smoothed": (lambda x: x.cross_entropy(Tensor([2, 0]), label_smoothing=0.1), (X,)),
}


@pytest.mark.parametrize("name", SMOOTH)
def test_gradients_of_smooth_functions_match_finite_differences(name: str) -> None:
    function, arrays = SMOOTH[name]
    check(function, *arrays)


@pytest.mark.parametrize("name", [name for name in SMOOTH if name != "convolution"])
def test_second_gradients_match_finite_differences(name: str) -> None:
    function, arrays = SMOOTH[name]
    inputs = [Tensor(array) for array in arrays]
    for which in range(len(arrays)):

        def derivative(*xs: Tensor, i: int = which) -> Tensor:
            return weighted(function(*xs)).gradient(xs[i])[0]

        value = weighted(derivative(*inputs))
        flat = [not _depends(value.uop, tensor.uop) for tensor in inputs]
        for other in range(len(arrays)):
            wanted = finite_differences(derivative, list(arrays), other)
            if flat[other]:
                np.testing.assert_allclose(wanted, 0, atol=1e-4)
                continue
            found = evaluate(value.gradient(inputs[other])[0].uop)
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


def _depends(root: UOp, leaf: UOp) -> bool:
    return leaf in gradients(root, [leaf], root.const_like(1.0))


@pytest.mark.parametrize("name", BENT)
def test_gradients_of_piecewise_functions_match_away_from_the_kinks(name: str) -> None:
    function, arrays = BENT[name]
    check(function, *arrays)


def test_every_graph_op_that_floats_pass_through_has_a_rule() -> None:
    without = {Ops.TRUNC, Ops.BITCAST, Ops.DETACH, Ops.THREEFRY, Ops.CONST, Ops.BUFFER, Ops.IOTA}
    without |= {Ops.CMPLT, Ops.CMPEQ, Ops.CMPNE, Ops.FLOORDIV, Ops.FLOORMOD, Ops.SHL, Ops.SHR}
    without |= {Ops.AND, Ops.OR, Ops.XOR, Ops.VARIABLE, Ops.BIND, Ops.SINK, Ops.CHECK}
    without |= {Ops.CUSTOM, Ops.DEFERRED}  # one brings its own, the other is written out before
    from glassgrad.ir.ops import Stage

    recorded = {op for op in Ops if Stage.GRAPH in op.stages}
    assert set(RULES) == recorded - without


@pytest.mark.parametrize(("stride", "dilation"), [(1, 1), (2, 1), (1, 2), (3, 2)])
def test_the_adjoint_of_window_has_a_gradient(stride: int, dilation: int) -> None:
    size = 3 * stride + 1 * dilation + 2

    def scatter_windows(x: Tensor) -> Tensor:
        uop = UOp(Ops.WINDOW_ADJOINT, x.dtype, (x.uop,), (0, size, stride, dilation))
        return Tensor._from_uop(uop)

    check(scatter_windows, distinct((4, 3, 2)))


def test_equal_largest_values_share_the_gradient() -> None:
    x = Tensor([1.0, 3.0, 3.0, 2.0])
    assert x.max().gradient(x)[0].tolist() == [0, 0.5, 0.5, 0]


def test_the_product_has_a_gradient_where_one_factor_is_zero() -> None:
    x = Tensor([2.0, 0.0, 3.0])
    assert x.prod().gradient(x)[0].tolist() == [0, 6, 0]
    y = Tensor([2.0, 0.0, 0.0])
    assert y.prod().gradient(y)[0].tolist() == [0, 0, 0]


def test_relu_has_no_gradient_at_zero() -> None:
    x = Tensor([-1.0, 0.0, 1.0])
    assert x.relu().sum().gradient(x)[0].tolist() == [0, 0, 1]


@pytest.mark.parametrize("name", ["sigmoid", "tanh", "erf", "relu", "silu", "gelu", "softplus"])
def test_gradients_of_activations_are_finite_far_out(name: str) -> None:
    x = Tensor([-1e30, -1e4, -100.0, -20.0, 0.0, 20.0, 100.0, 1e4], dtype=dtypes.float32)
    found = getattr(x, name)().sum().gradient(x)[0].numpy()
    if name == "gelu":  # x³ overflows for 1e30, as it does everywhere
        found = found[1:]
    assert np.isfinite(found).all(), found
    assert found[-1] == pytest.approx(1 if name in ("relu", "silu", "gelu", "softplus") else 0)


@pytest.mark.parametrize("name", ["sigmoid", "tanh", "erf"])
def test_gradients_of_activations_are_zero_at_infinity(name: str) -> None:
    x = Tensor([-np.inf, np.inf])
    assert getattr(x, name)().sum().gradient(x)[0].tolist() == [0, 0]


def test_detach_stops_the_gradient() -> None:
    x = Tensor([2.0, 3.0])
    assert (x * x.detach()).sum().gradient(x)[0].tolist() == [2, 3]


def test_written_values_get_the_gradient_of_their_elements() -> None:
    x, y = Tensor([1.0, 2.0, 3.0]), Tensor([5.0, 7.0])
    z = Tensor.empty(3)
    z.assign(x * x)
    z[1:] = y * y
    got = (z * Tensor([1.0, 10.0, 100.0])).sum().gradient(x, y)
    assert [gradient.tolist() for gradient in got] == [[2, 0, 0], [100, 1400]]


def test_a_chain_of_ten_thousand_ops_has_a_gradient() -> None:
    x = Tensor([1.0])
    y = x
    for _ in range(10_000):
        y = y + 1.0
    assert y.sum().gradient(x)[0].tolist() == [1.0]


def test_gradient_nodes_have_the_origin_of_their_operation() -> None:
    x = Tensor([1.0, 2.0])
    y = (x.sin() * 2).sum()  # this line
    node = y.gradient(x)[0].uop
    while node.origin is None:
        node = node.src[0]
    assert "this line" in node.origin.text


def test_sum_to_shape_sums_broadcast_axes() -> None:
    one = UOp(Ops.CONST, dtypes.float64, (), 1.0)
    assert evaluate(broadcast_to(sum_to_shape(one, (4, 3), (3,)), (3,))).tolist() == [4, 4, 4]
    wide = broadcast_to(one, (4, 3))
    assert evaluate(sum_to_shape(wide, (4, 3), (4, 1))).tolist() == [[3]] * 4


@pytest.mark.parametrize("seed", range(400))
def test_gradients_of_random_graphs_match_directional_differences(seed: int) -> None:
    """All leaves move at once: the change of the value is the gradients times the direction."""
    rng = np.random.default_rng(seed)
    roots = [root for root in smooth_graph(Random(seed), 12) if root.dtype is dtypes.float64]
    value = Tensor(0.0, dtype=dtypes.float64)
    for root in roots:
        value = value + (Tensor(root) * Tensor(rng.normal(size=root.shape))).sum()
    leaves = [
        node
        for node in value.uop.toposort()
        if node.op is Ops.BUFFER and node.dtype is dtypes.float64
    ]
    found = gradients(value.uop, leaves, value.const_like(1.0).uop)
    directions = {leaf: rng.normal(size=leaf.shape) for leaf in found}
    derivative = sum(float((evaluate(found[leaf]) * directions[leaf]).sum()) for leaf in found)
    ends = []
    for step in (1e-6, -2e-6):
        for leaf, direction in directions.items():
            leaf.arg.numpy()[...] += step * direction
        ends.append(float(evaluate(value.uop)))
    assert derivative == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=2e-4, abs=1e-3)
