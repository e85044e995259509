"""Every method of Tensor that gradients flow through, against finite differences in float64.

A row is called after its method; what comes behind a space tells rows of one method apart.
"""

from __future__ import annotations

import numpy as np
import pytest
from support.references.finite_differences import Function, check, finite_differences, weighted
from support.values.arrays import distinct, positive

from glassgrad import Context, Tensor

ON_BOTH_BACKENDS = True
X, Y = distinct((2, 3)), distinct((2, 3), seed=1) + 0.137
P = positive((2, 3))
SMALL = X * 0.4  # between -0.8 and 0.8
SQUARE = distinct((3, 3)) + 2 * np.eye(3)
IMAGE, KERNEL = distinct((1, 2, 4, 4)), distinct((2, 2, 2, 2), seed=2)
PLACES = np.array([[0, 2], [1, 1]])
Rows = dict[str, tuple[Function, tuple[np.ndarray, ...]]]


def of(name: str, *args: object, **options: object) -> Function:
    return lambda x: getattr(x, name)(*args, **options)


def of_square(name: str, *args: object, **options: object) -> Function:
    """Of x², so that what only moves or adds elements has a second derivative."""
    return lambda x: getattr(x * x, name)(*args, **options)


def all_of(name: str, *args: object, **options: object) -> Function:
    """Several results side by side."""
    return lambda x: Tensor.cat(*[y.flatten() for y in getattr(x * x, name)(*args, **options)])


UNARY = {
    "acos": SMALL, "acosh": P + 1, "asin": SMALL, "asinh": X, "atan": X, "atanh": SMALL, "cos": X,
    "cosh": X, "erf": X, "exp": X, "exp2": X, "gelu": X, "log": P, "log10": P, "log2": P,
    "log_softmax": X, "logsigmoid": X, "logsumexp": X, "mish": X, "quick_gelu": X, "reciprocal": P,
    "rsqrt": P, "sigmoid": X, "silu": X, "sin": X, "sinh": X, "softmax": X, "softmin": X,
    "softplus": X, "sqrt": P, "square": X, "swish": X, "tan": SMALL, "tanh": X, "neg": X,
    "logcumsumexp": X, "std": X, "var": X, "layernorm": X,
}  # fmt: skip

SMOOTH: Rows = {
    **{name: (of(name), (array,)) for name, array in UNARY.items()},
    # arithmetic
    "add": (lambda x, y: (x * x).add(y), (X, Y)),
    "sub": (lambda x, y: (x * x).sub(y), (X, Y)),
    "mul": (lambda x, y: x.mul(y), (X, Y)),
    "div": (lambda x, y: x.div(y), (X, P)),
    "pow": (lambda x, y: x.pow(y), (P, X)),
    "pow of a number": (lambda x: 2.0**x, (X,)),
    "logaddexp": (lambda x, y: x.logaddexp(y), (X, Y)),
    "lerp": (lambda x, y, w: x.lerp(y, w), (X, Y, P)),
    "usum": (lambda x, y: (x * x).usum(y, x), (X, Y)),
    "uprod": (lambda x, y: x.uprod(y, x), (X, Y)),
    "gelu none": (of("gelu", "none"), (X,)),
    "softplus beta": (of("softplus", 3.0), (X,)),
    # sums and products
    "sum": (of_square("sum", 1, keepdim=True), (X,)),
    "prod": (of("prod", 0), (X,)),
    "mean": (of_square("mean", -1), (X,)),
    "var_mean": (lambda x: sum(x.var_mean(1), Tensor(0.0)), (X,)),
    "std_mean": (lambda x: sum(x.std_mean(0), Tensor(0.0)), (X,)),
    "cumsum": (of_square("cumsum", 1), (X,)),
    "cumprod": (of("cumprod", 1), (X,)),
    "norm": (of("norm", dim=1), (X,)),
    "norm 3": (of("norm", 3, 0), (P,)),
    "normalize": (of("normalize", dim=1), (X,)),
    "normalize 3": (of("normalize", 3.0, 0), (P,)),
    "batchnorm": (
        lambda x, w, b: x.batchnorm(w, b, x.mean(0), x.var(0).add(1e-3).rsqrt()),
        (X, P[0], Y[0]),
    ),
    # movement
    "T": (lambda x: (x * x).T, (X,)),
    "reshape": (of_square("reshape", 3, 2), (X,)),
    "view": (of_square("view", 6), (X,)),
    "permute": (of_square("permute", 1, 0), (X,)),
    "transpose": (of_square("transpose"), (X,)),
    "expand": (of_square("expand", 2, 2, 3), (X,)),
    "broadcast_to": (of_square("broadcast_to", 2, 2, 3), (X,)),
    "flatten": (of_square("flatten"), (X,)),
    "unflatten": (of_square("unflatten", 0, (1, 2)), (X,)),
    "squeeze": (of_square("squeeze"), (X[:1],)),
    "unsqueeze": (of_square("unsqueeze", 1), (X,)),
    "flip": (of_square("flip", 1), (X,)),
    "roll": (of_square("roll", 2, 1), (X,)),
    "repeat": (of_square("repeat", 2, 1), (X,)),
    "repeat_interleave": (of_square("repeat_interleave", 2, 1), (X,)),
    "shrink": (of_square("shrink", ((0, 1), (1, 3))), (X,)),
    "shrink_to": (of_square("shrink_to", 1, 2), (X,)),
    "pad": (of_square("pad", (1, 2)), (X,)),
    "pad reflect": (of_square("pad", (1, 2), mode="reflect"), (X,)),
    "pad replicate": (of_square("pad", (1, 2), mode="replicate"), (X,)),
    "pad circular": (of_square("pad", (1, 2), mode="circular"), (X,)),
    "pad_to": (of_square("pad_to", 3, 3), (X,)),
    "split": (all_of("split", 2, 1), (X,)),
    "chunk": (all_of("chunk", 2, 1), (X,)),
    "unfold": (of_square("unfold", 1, 2, 1), (X,)),
    "stack": (lambda x, y: (x * x).stack(y, dim=1), (X, Y)),
    "cat": (lambda x, y: (x * x).cat(y, x, dim=1), (X, Y)),
    "meshgrid": (lambda x, y: sum((x * x).meshgrid(y), Tensor(0.0)), (X[0], Y[1])),
    "diag": (of_square("diag"), (X[0],)),
    "diagonal": (of_square("diagonal", 1), (X,)),
    "tril": (of_square("tril"), (X,)),
    "triu": (of_square("triu", 1), (X,)),
    "rearrange": (of_square("rearrange", "a b -> (b a)"), (X,)),
    "contiguous": (of_square("contiguous"), (X,)),
    "contiguous_backward": (of_square("contiguous_backward"), (X,)),
    "clone": (of_square("clone"), (X,)),
    "cast": (of_square("cast", "float64"), (X,)),
    "double": (of_square("double"), (X,)),
    "to": (of_square("to", "CPU"), (X,)),
    "kernelize": (of_square("kernelize"), (X,)),
    "t": (of_square("t"), (X,)),
    "mT": (lambda x: (x * x).mT, (X,)),
    "swapaxes": (of_square("swapaxes", 0, 1), (X,)),
    "swapdims": (of_square("swapdims", 0, 1), (X,)),
    "movedim": (of_square("movedim", 0, 1), (X,)),
    "moveaxis": (of_square("moveaxis", 0, 1), (X,)),
    "ravel": (of_square("ravel"), (X,)),
    "tile": (of_square("tile", 2, 2), (X,)),
    "narrow": (of_square("narrow", 1, 1, 2), (X,)),
    "select": (of_square("select", 1, 2), (X,)),
    "index_select": (of_square("index_select", 1, Tensor([2, 0, 2])), (X,)),
    "unbind": (all_of("unbind", 1), (X,)),
    "expand_as": (of_square("expand_as", Tensor(Y)), (X,)),
    "view_as": (of_square("view_as", Tensor(Y.T)), (X,)),
    "reshape_as": (of_square("reshape_as", Tensor(Y.T)), (X,)),
    "type_as": (of_square("type_as", Tensor(Y)), (X,)),
    "cpu": (of_square("cpu"), (X,)),
    # in place
    "add_": (lambda x, y: (x * x).add_(y, alpha=2), (X, Y)),
    "sub_": (lambda x, y: (x * x).sub_(y), (X, Y)),
    "mul_": (lambda x, y: (x * x).mul_(y), (X, Y)),
    "div_": (lambda x, y: (x * x).div_(y), (X, P)),
    "copy_": (lambda x, y: (x * 1).copy_(y * y) + x * y, (X, Y)),
    "fill_": (lambda x: (x * 1).fill_(3.0) + x * x, (X,)),
    "zero_": (lambda x: (x * 1).zero_() + x * x, (X,)),
    # products
    "dot": (lambda x, y: x.dot(y), (X, Y.T)),
    "matmul": (lambda x, y: x.matmul(y), (distinct((2, 2, 3)), Y.T)),
    "linear": (lambda x, w, b: x.linear(w, b), (X, Y.T, P[:1, :2])),
    "mm": (lambda x, y: x.mm(y), (X, Y.T)),
    "bmm": (lambda x, y: x.bmm(y), (distinct((2, 2, 3)), distinct((2, 3, 2), seed=3))),
    "mv": (lambda x, y: x.mv(y), (X, Y[0])),
    "outer": (lambda x, y: x.outer(y), (X[0], Y[1])),
    "addmm": (lambda x, y, z: (x * x).addmm(y, z, beta=2, alpha=3), (X[:, :2], X, Y.T)),
    "einsum": (lambda x, y: Tensor.einsum("ij,kj->ik", x, y), (X, Y)),
    "sequential": (lambda x: x.sequential([Tensor.exp, Tensor.tanh]), (X,)),
    "avg_pool2d": (of_square("avg_pool2d", 2, stride=1, padding=1), (IMAGE,)),
    "interpolate": (of_square("interpolate", (3, 5)), (IMAGE[:, :1],)),
    "interpolate cubic": (of_square("interpolate", (3, 5), "cubic"), (IMAGE[:, :1],)),
    "scaled_dot_product_attention": (
        lambda q, k, v: q.scaled_dot_product_attention(k, v, is_causal=True),
        (X, Y, P),
    ),
    "newton_schulz": (of("newton_schulz", 2, (2, -1.5, 0.5)), (X,)),
    # losses
    "binary_crossentropy": (
        lambda x, y: x.sigmoid().binary_crossentropy(y.sigmoid()),
        (X, Y),
    ),
    "binary_crossentropy_logits": (
        lambda x, y: x.binary_crossentropy_logits(y.sigmoid()),
        (X, Y),
    ),
    "cross_entropy": (lambda x, y: x.cross_entropy(y.softmax(1), label_smoothing=0.1), (X, Y)),
    "cross_entropy of classes": (of("cross_entropy", Tensor([2, 0])), (X,)),
    "nll_loss": (lambda x: x.log_softmax(1).nll_loss(Tensor([2, 0])), (X,)),
    "sparse_categorical_crossentropy": (
        of("sparse_categorical_crossentropy", Tensor([2, -1])),
        (X,),
    ),
    # places that are known
    "gather": (of_square("gather", 1, Tensor(PLACES)), (X,)),
    "scatter": (lambda x, y: (x * x).scatter(1, Tensor(PLACES), y * y), (X, Y[:, :2])),
    "scatter add": (
        lambda x, y: (x * x).scatter(1, Tensor(PLACES[:, :1]), y * y, reduce="add"),
        (X, Y[:, :1]),
    ),
    "scatter_reduce": (
        lambda x, y: (x * x).scatter_reduce(1, Tensor(PLACES), y * y, "sum"),
        (X, Y[:, :2]),
    ),
    "scatter_reduce mean": (
        lambda x, y: (x * x).scatter_reduce(1, Tensor(PLACES), y * y, "mean"),
        (X, Y[:, :2]),
    ),
    "scatter_add": (
        lambda x, y: (x * x).scatter_add(1, Tensor(PLACES), y * y),
        (X, Y[:, :2]),
    ),
    "masked_fill": (of_square("masked_fill", Tensor([True, False, True]), 0.0), (X,)),
    "masked_select": (of_square("masked_select", Tensor([[True, False, True]] * 2)), (X,)),
    "where": (lambda x, y: Tensor([True, False, True]).where(x * x, y * y), (X, Y)),
}

BENT: Rows = {  # second derivatives are zero, or too large a graph for differences
    "abs": (of("abs"), (X,)),
    "relu": (of("relu"), (X,)),
    "relu6": (of("relu6"), (X * 4,)),
    "hardtanh": (of("hardtanh"), (X,)),
    "hardsigmoid": (of("hardsigmoid"), (X * 2,)),
    "hardswish": (of("hardswish"), (X * 2,)),
    "leaky_relu": (of("leaky_relu"), (X,)),
    "elu": (of("elu"), (X,)),
    "celu": (of("celu", 2.0), (X,)),
    "selu": (of("selu"), (X,)),
    "softsign": (of("softsign"), (X,)),
    "maximum": (lambda x, y: x.maximum(y), (X, Y)),
    "minimum": (lambda x, y: x.minimum(y), (X, Y)),
    "clamp": (of("clamp", -1, 1.5), (X,)),
    "clip": (of("clip", max_=0.9), (X,)),
    "clamp_": (lambda x: (x * 1).clamp_(-1, 1.5), (X,)),
    "amax": (of("amax", 1), (X,)),
    "amin": (of("amin"), (X,)),
    "remainder": (of("remainder", 0.7), (X,)),
    "max": (of("max", 1), (X,)),
    "min": (of("min"), (X,)),
    "cummax": (lambda x: x.cummax(1)[0], (X,)),
    "cummin": (lambda x: x.cummin(0)[0], (X,)),
    "mod": (lambda x: x.mod(0.7), (X,)),
    "fmod": (lambda x: x.fmod(0.7), (X,)),
    "copysign": (lambda x: x.copysign(Tensor(Y)), (X,)),
    "max_pool2d": (of("max_pool2d", 2), (IMAGE,)),
    "max_unpool2d": (
        lambda x: (x * x).max_unpool2d(Tensor([[[[0, 3], [9, 14]]]])),
        (distinct((1, 1, 2, 2)),),
    ),
    "conv2d": (lambda x, w: x.conv2d(w, padding=1, stride=2), (IMAGE, KERNEL)),
    "conv_transpose2d": (
        lambda x, w: x.conv_transpose2d(w, stride=2),
        (IMAGE[..., :2, :2], KERNEL),
    ),
    "sort": (lambda x: x.sort(1)[0], (X,)),
    "topk": (lambda x: x.topk(2, 1)[0], (X,)),
    "scatter_reduce amax": (
        lambda x, y: x.scatter_reduce(1, Tensor(PLACES), y, "amax"),
        (X, Y[:, :2]),
    ),
    "scatter_reduce prod": (
        lambda x, y: x.scatter_reduce(1, Tensor(PLACES), y, "prod"),
        (X, Y[:, :2]),
    ),
    "qr": (lambda x: x.qr()[1].abs(), (SQUARE,)),
    "svd": (lambda x: x.svd()[1], (SQUARE,)),
}

FLAT = {  # the derivative is zero wherever there is one
    "all", "allclose", "any", "argmax", "argmin", "argsort", "ceil", "eq", "floor",
    "floor_divide", "ge", "gt", "isclose", "isfinite", "isinf", "isnan", "le", "logical_not", "lt",
    "multinomial", "ne", "nonzero", "one_hot", "round", "sign", "trunc", "detach",
}  # fmt: skip
WHOLE = {  # ints only, or ints come out
    "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "bool", "int", "long", "lshift",
    "rshift", "short", "threefry", "bitcast", "random_bits", "randint", "randperm",
}  # fmt: skip
NARROW = {"bfloat16", "half", "float"}  # differences of float64 would be rounded away; tested below
RANDOM = {"dropout"}  # tested below
MADE = {  # tensors out of nothing
    "arange", "const", "const_like", "empty", "empty_like", "eye", "from_blob", "from_dlpack",
    "from_memory", "from_url", "full", "full_like", "glorot_uniform", "kaiming_normal",
    "kaiming_uniform", "linspace", "normal", "ones", "ones_like", "rand", "rand_like", "randn",
    "randn_like", "scaled_uniform", "uniform", "zeros", "zeros_like", "ufix",
}  # fmt: skip
FACTS = {  # no tensors, or this one
    "assign", "backward", "data", "device", "dim", "dtype", "element_size", "grad", "gradient",
    "is_floating_point", "is_param", "is_param_", "item", "lazydata", "linear_with_vars",
    "manual_seed", "max_numel", "max_shape", "nbytes", "ndim", "nelement", "numel", "numpy",
    "realize", "replace", "requires_grad", "requires_grad_", "schedule", "schedule_linear",
    "schedule_with_vars", "shape", "size", "test", "to_", "tolist", "train", "uop",
}  # fmt: skip


def test_every_method_is_in_one_of_the_lists() -> None:
    rows = {name.partition(" ")[0] for name in (*SMOOTH, *BENT)}
    listed = [rows, FLAT, WHOLE, NARROW, RANDOM, MADE, FACTS]
    public = {name for name in dir(Tensor) if not name.startswith("_")}
    missing = public - set().union(*listed)
    assert not missing, f"methods without a row: {sorted(missing)}"
    assert set().union(*listed) <= public
    assert sum(map(len, listed)) == len(set().union(*listed))


@pytest.mark.parametrize("name", [*SMOOTH, *BENT])
def test_gradients_match_finite_differences_to_second_order_where_smooth(
    name: str, backend: str
) -> None:
    function, arrays = (SMOOTH | BENT)[name]
    check(function, *arrays)
    if name in SMOOTH and backend == "interpreted":  # the same graphs, and many of them
        check_second(function, arrays)


def check_second(function: Function, arrays: tuple[np.ndarray, ...]) -> None:
    def derivative(*xs: Tensor) -> Tensor:
        return sum((weighted(g) for g in weighted(function(*xs)).gradient(*xs)), Tensor(0.0))

    inputs = [Tensor(array) for array in arrays]
    # Adding 0 times each input gives a gradient to those that the derivative does not depend on.
    value = weighted(derivative(*inputs)) + sum(((x * 0).sum() for x in inputs), Tensor(0.0))
    for which, found in enumerate(value.gradient(*inputs)):
        wanted = finite_differences(derivative, list(arrays), which)
        np.testing.assert_allclose(found.numpy(), wanted, rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("name", sorted(FLAT - {"nonzero", "allclose", "isclose"}))
def test_flat_methods_give_no_gradient(name: str) -> None:
    x = Tensor(np.abs(X[0]))
    numbers = {"eq", "ge", "gt", "le", "lt", "ne", "multinomial", "floor_divide"}
    arguments = {"one_hot": (3,)}.get(name, (1,) if name in numbers else ())
    source = x.cast("int32") if name == "one_hot" else x
    found = getattr(source, name)(*arguments).cast("float64").sum() + (x * 2).sum()
    assert found.gradient(x)[0].tolist() == [2.0] * 3


@pytest.mark.parametrize("name", sorted(NARROW))
def test_gradients_pass_casts_in_the_dtype_of_the_source(name: str) -> None:
    x = Tensor(X)
    derivative = (getattr(x, name)().double() * 3).sum().gradient(x)[0]
    assert derivative.dtype is x.dtype
    assert derivative.tolist() == [[3.0] * 3] * 2


def test_dropped_elements_have_no_gradient_and_kept_ones_a_larger_one() -> None:
    x = Tensor.ones(64, dtype="float64").contiguous().realize()
    with Context(TRAINING=1):
        y = x.dropout(0.25)
    derivative = y.sum().gradient(x)[0].numpy()
    np.testing.assert_allclose(derivative, y.numpy())
    assert 0 < (derivative == 0).sum() < 64
