"""Methods against the PyTorch methods of the same name: shapes, axes, edge cases, dtypes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.oracle import oracle

from glassgrad import Tensor

torch = oracle("torch")
F = torch.nn.functional
Both = Callable[[Any], Any]

SHAPES = [(), (0,), (1,), (3,), (2, 3), (3, 0), (2, 3, 4)]
EDGES = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1, -1, 1e30, -1e30, 1e-30, 3.5, 2.5, -2.5, 20.5, -20.5]
TOLERANCE = {"float16": 2e-3, "float32": 1e-5, "float64": 1e-12}


def array(*shape: int, dtype: str = "float32") -> np.ndarray:
    return np.random.default_rng(len(shape)).normal(size=shape).astype(dtype)


def assert_equal(found: Any, wanted: Any, rtol: float = 1e-5, atol: float = 1e-6) -> None:
    """Compare shapes, dtypes (any widths of ints are equal) and values; tuples item by item."""
    if isinstance(wanted, (tuple, list)):
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            assert_equal(one, other, rtol, atol)
        return
    got, want = found.numpy(), wanted.numpy()
    assert got.shape == want.shape
    is_same = got.dtype == want.dtype or got.dtype.kind == want.dtype.kind == "i"
    assert is_same, (got.dtype, want.dtype)
    np.testing.assert_allclose(got, want, rtol=rtol, atol=atol)


def exact_gelu(x: Any) -> Any:
    """F.gelu; for infinity PyTorch returns nan on processors with AVX-512."""
    return torch.where(x == math.inf, x, F.gelu(x))


METHODS = [  # of the same name in both libraries
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "ceil", "cos", "cosh", "erf", "exp",
    "exp2", "floor", "isfinite", "isinf", "isnan", "log", "log10", "log2", "logical_not", "neg",
    "reciprocal", "relu", "round", "rsqrt", "sigmoid", "sin", "sinh", "sqrt", "square", "tan",
    "tanh", "trunc",
]  # fmt: skip
FUNCTIONS = [
    "celu", "elu", "hardsigmoid", "hardswish", "hardtanh", "leaky_relu", "logsigmoid", "mish",
    "relu6", "silu", "softplus", "softsign",
]  # fmt: skip
UNARY: dict[str, tuple[Both, Both]] = {
    **{name: (getattr(Tensor, name), getattr(torch, name)) for name in METHODS},
    **{name: (getattr(Tensor, name), getattr(F, name)) for name in FUNCTIONS},
    "gelu": (Tensor.gelu, lambda x: F.gelu(x, approximate="tanh")),
    "exact gelu": (lambda x: x.gelu("none"), exact_gelu),
    "swish": (Tensor.swish, F.silu),
    "quick_gelu": (Tensor.quick_gelu, lambda x: x * torch.sigmoid(1.702 * x)),
}


@pytest.mark.parametrize("name", UNARY)
def test_unary_functions(name: str) -> None:
    ours, theirs = UNARY[name]
    for shape in SHAPES:
        x = array(*shape)
        assert_equal(ours(Tensor(x)), theirs(torch.tensor(x)))
    for dtype, tolerance in TOLERANCE.items():
        if name == "softplus" and dtype == "float64":
            continue  # PyTorch returns x above 20
        with np.errstate(over="ignore"):
            x = np.array(EDGES, dtype)
        tiny = 1e-7 if dtype == "float16" else 1e-200  # PyTorch's gelu cancels to 0
        assert_equal(ours(Tensor(x)), theirs(torch.tensor(x)), tolerance, tiny)


REDUCE = [
    "sum", "prod", "mean", "var", "std", "any", "all", "amax", "amin", "argmax", "argmin",
    "logsumexp",
]  # fmt: skip


@pytest.mark.parametrize("name", REDUCE)
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (2, 3, 4), (3, 1)])
def test_reductions_over_every_axis(name: str, shape: tuple[int, ...]) -> None:
    x = array(*shape)
    our_name = {"amax": "max", "amin": "min"}.get(name, name)
    pairs = [] if name in ("prod", "argmax", "argmin") or len(shape) < 2 else [(0, -1)]
    with pytest.warns(UserWarning) if shape in ((), (3, 1)) and name in ("var", "std") else quiet():
        for axis in [*range(-len(shape), len(shape)), *pairs]:
            for keepdim in (False, True):
                wanted = getattr(torch, name)(torch.tensor(x), dim=axis, keepdim=keepdim)
                assert_equal(getattr(Tensor(x), our_name)(axis, keepdim), wanted)
        if name != "logsumexp":
            assert_equal(getattr(Tensor(x), our_name)(), getattr(torch, name)(torch.tensor(x)))


class quiet:
    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64", "bool"])
def test_reductions_of_ints(dtype: str) -> None:
    x = np.random.default_rng(0).integers(0, 2 if dtype == "bool" else 100, (3, 4)).astype(dtype)
    positions = [] if dtype == "bool" else ["argmax", "argmin"]  # PyTorch lacks them for bools
    for name in ("sum", "prod", "any", "all", *positions):
        found = getattr(Tensor(x), name)(axis=1).tolist()
        assert found == getattr(torch.tensor(x), name)(dim=1).tolist(), name


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "logcumsumexp", "cummax", "cummin"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (2, 3, 5), (700,), (3, 600)])
def test_scans_along_every_axis(name: str, shape: tuple[int, ...]) -> None:
    x = np.round(array(*shape) * 2) / 2 if name.startswith("cumm") else array(*shape)
    for axis in range(-len(shape), len(shape)) or [0]:
        wanted = getattr(torch, name)(torch.tensor(x), axis)
        wanted = tuple(wanted) if name.startswith("cumm") else wanted
        assert_equal(getattr(Tensor(x), name)(axis), wanted, rtol=1e-4, atol=1e-5)


EXPRESSIONS: dict[str, Both] = {  # valid in both libraries
    "roll": lambda x: x.roll((1, -2), (0, 2)),
    "roll flat": lambda x: x.roll(7),
    "repeat": lambda x: x.repeat(2, 1, 1, 2),
    "repeat never": lambda x: x.repeat(0, 1, 1),
    "repeat_interleave": lambda x: x.repeat_interleave(3, 1),
    "repeat_interleave flat": lambda x: x.repeat_interleave(2),
    "split": lambda x: x.split(3, -1),
    "split sizes": lambda x: x.split([1, 3], 2),
    "chunk": lambda x: x.chunk(3, 2),
    "more chunks than elements": lambda x: x.chunk(7, 1),
    "unfold": lambda x: x.unfold(-2, 2, 1),
    "squeeze": lambda x: x.unsqueeze(-1).squeeze(-1),
    "squeeze a wide axis": lambda x: x.squeeze(1),
    "flatten": lambda x: x.flatten(-2, -1),
    "unflatten": lambda x: x.unflatten(-1, (2, -1)),
    "tril": lambda x: x.tril(1),
    "triu": lambda x: x.triu(-1),
    "diag": lambda x: x[0, 0].diag(),
    "diagonal": lambda x: x.diagonal(-1, -2, -1),
    "flip": lambda x: x.flip((0, -1)),
    "permute": lambda x: x.permute(-1, 0, 1),
    "transpose": lambda x: x.transpose(0, -1),
    "expand": lambda x: x[:, :1].expand(2, 5, -1),
    "masked_select": lambda x: x.masked_select(x > 0),
    "nonzero": lambda x: (x > 0).nonzero(),
    "masked_fill": lambda x: x.masked_fill(x > 0, -1.0),
    "clamp": lambda x: x.clamp(-0.1, 0.2),
    "lerp": lambda x: x.lerp(x * 2, 0.3),
    "isclose": lambda x: x.isclose(x + 1e-9),
    "copysign": lambda x: x.copysign(-x),
    "logaddexp": lambda x: x.logaddexp(-x),
    "fmod": lambda x: x.fmod(0.3),
    "remainder": lambda x: x % 0.3,
    "floor division": lambda x: x // 0.3,
    "floor quotient": lambda x: x.div(0.3, rounding_mode="floor"),
    "truncated quotient": lambda x: x.div(0.3, rounding_mode="trunc"),
    "powers": lambda x: (x**3, x**-1, x**-3, 2**x, x.abs() ** x, x.abs() ** 1.5, x**0),
    "numbers on the left": lambda x: (1 / x, 1 - x, 2 * x, 3 + x),
    "softmax": lambda x: (x.softmax(0), x.softmax(1), x.softmax(-1)),
    "log_softmax": lambda x: (x.log_softmax(0), x.log_softmax(-1)),
    "sort": lambda x: (*x.sort(1), *x.sort(-1, descending=True)),
    "argsort": lambda x: x.argsort(0),
    "topk": lambda x: (*x.topk(2, 1), *x.topk(2, -1, largest=False)),
    "sort of nothing": lambda x: tuple(x[:, :0].sort(1)),
    "products": lambda x: (
        x[0, 0] @ x[1, 0], x[0] @ x[1, 0], x[0, :, 0] @ x[1], x @ x.transpose(1, 2), x @ x[0, 0],
        x[0, :, 0] @ x, x @ x[0].T, x[:, :0].transpose(1, 2) @ x[:, :0],
    ),
    "slices": lambda x: (x[0], x[-1, 1:], x[..., 2], x[:, None, ::2], x[1, :, :2], x[:, 1:1]),
    "comparisons": lambda x: (x < 0, x >= x, x == x, x != 0, 0.5 > x),
    "std of one": lambda x: x[:1].var(0, correction=0),
    "statistics": lambda x: (x.var((0, 1), correction=0), x.std(1), x.mean((0, -1))),
}  # fmt: skip


@pytest.mark.parametrize("device", ["CPU", "PYTHON"])
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_expressions_have_equal_results(name: str, device: str) -> None:
    x = array(2, 3, 4)
    assert_equal(EXPRESSIONS[name](Tensor(x, device=device)), EXPRESSIONS[name](torch.tensor(x)))


IMAGE, WEIGHT, BIAS = array(2, 4, 7, 8), array(6, 2, 3, 3), array(6)
TRANSPOSED_WEIGHT = array(4, 3, 3, 3)


@pytest.mark.parametrize(
    "options",
    [
        {}, {"stride": 2}, {"padding": 1}, {"padding": (1, 2)}, {"dilation": 2},
        {"stride": (2, 1), "padding": 2, "dilation": (1, 2)},
    ],
    ids=str,
)  # fmt: skip
def test_convolutions_and_transposed_convolutions(options: dict[str, Any]) -> None:
    x, w, t, b = (Tensor(a) for a in (IMAGE, WEIGHT, TRANSPOSED_WEIGHT, BIAS))
    X, W, T, B = (torch.tensor(a) for a in (IMAGE, WEIGHT, TRANSPOSED_WEIGHT, BIAS))
    assert_equal(
        x.conv2d(w, b, groups=2, **options), F.conv2d(X, W, B, groups=2, **options), atol=1e-4
    )
    found = x.conv_transpose2d(t, b, groups=2, **options)
    assert_equal(found, F.conv_transpose2d(X, T, B, groups=2, **options), atol=1e-4)


@pytest.mark.parametrize("ceil_mode", [False, True])
@pytest.mark.parametrize(
    ("kernel", "stride", "padding"), [(2, 2, 0), (3, 2, 0), ((3, 2), 2, 1), (2, 3, 0)]
)
def test_pooling(kernel: Any, stride: int, padding: int, ceil_mode: bool) -> None:
    options = {"stride": stride, "padding": padding, "ceil_mode": ceil_mode}
    x, X = Tensor(IMAGE), torch.tensor(IMAGE)
    found = x.max_pool2d(kernel, **options, return_indices=True)
    assert_equal(found, tuple(F.max_pool2d(X, kernel, **options, return_indices=True)))
    for counts in (True, False):
        mean = x.avg_pool2d(kernel, **options, count_include_pad=counts)
        assert_equal(mean, F.avg_pool2d(X, kernel, **options, count_include_pad=counts))


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_losses(reduction: str) -> None:
    logits, soft = array(5, 4), np.random.default_rng(1).random((5, 4), np.float32)
    classes, some = np.array([0, 3, 1, 2, 2]), np.array([0, -1, 1, 2, -1])
    x, q, c, s = (Tensor(a) for a in (logits, soft, classes, some))
    X, Q, C, S = (torch.tensor(a) for a in (logits, soft, classes, some))
    how: dict[str, Any] = {"reduction": reduction}
    assert_equal(x.cross_entropy(c, **how), F.cross_entropy(X, C, **how))
    smooth = how | {"label_smoothing": 0.2}
    assert_equal(x.cross_entropy(c, **smooth), F.cross_entropy(X, C, **smooth))
    assert_equal(x.cross_entropy(q, **smooth), F.cross_entropy(X, Q, **smooth))
    wanted = F.cross_entropy(X, S, ignore_index=-1, **smooth)
    assert_equal(x.sparse_categorical_crossentropy(s, **smooth), wanted)
    wanted = F.nll_loss(X.log_softmax(-1), C, Q[0], ignore_index=2, **how)
    assert_equal(x.log_softmax().nll_loss(c, q[0], 2, **how), wanted)
    assert_equal(
        x.sigmoid().binary_crossentropy(q, **how), F.binary_cross_entropy(X.sigmoid(), Q, **how)
    )
    wanted = F.binary_cross_entropy_with_logits(X * 50, Q, pos_weight=Q[0], **how)
    assert_equal((x * 50).binary_crossentropy_logits(q, pos_weight=q[0], **how), wanted)


def test_the_loss_of_probabilities_0_and_1_is_finite() -> None:
    x, y = np.array([0.0, 1.0, 1.0], "float32"), np.array([0.0, 1.0, 0.0], "float32")
    wanted = F.binary_cross_entropy(torch.tensor(x), torch.tensor(y), reduction="none")
    assert_equal(Tensor(x).binary_crossentropy(Tensor(y), reduction="none"), wanted)


@pytest.mark.parametrize(
    "options", [{}, {"is_causal": True}, {"attn_mask": True}, {"enable_gqa": 1}]
)
def test_attention(options: dict[str, Any]) -> None:
    heads = 2 if "enable_gqa" in options else 4
    q, k, v = array(2, 4, 5, 8), array(2, heads, 6, 8), array(2, heads, 6, 8) + 1
    mask = np.arange(30).reshape(5, 6) % 3 != 1
    ours, theirs = dict(options), dict(options)
    if "attn_mask" in options:
        ours["attn_mask"], theirs["attn_mask"] = Tensor(mask), torch.tensor(mask)
    found = Tensor(q).scaled_dot_product_attention(Tensor(k), Tensor(v), **ours)
    theirs = {name: bool(x) if isinstance(x, int) else x for name, x in theirs.items()}
    wanted = F.scaled_dot_product_attention(*map(torch.tensor, (q, k, v)), **theirs)
    assert_equal(found, wanted, atol=1e-5)
