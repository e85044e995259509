"""names of PyTorch's and NumPy's tensors that are not here -> what to write instead."""

from __future__ import annotations

INSTEAD = {
    "absolute": "abs()",
    "addmm": "x + a @ b",
    "amax": "max(axis)",
    "amin": "min(axis)",
    "argwhere": "nonzero()",
    "astype": "cast(dtype)",
    "bmm": "x @ y",
    "copy_": "assign(y)",
    "cpu": 'to("CPU")',
    "cuda": 'to("CUDA")',
    "divide": "div(y)",
    "expand_as": "expand(y.shape)",
    "fill_": "assign(number)",
    "floor_divide": "x // y",
    "ge": "x >= y",
    "gt": "x > y",
    "index_select": "x[indices], or x[:, indices]",
    "is_contiguous": "contiguous(), which costs nothing where rows lie one behind the other",
    "le": "x <= y",
    "lt": "x < y",
    "mT": "transpose(-2, -1)",
    "mm": "x @ y",
    "moveaxis": "permute(order)",
    "movedim": "permute(order)",
    "multiply": "mul(y)",
    "mv": "x @ y",
    "narrow": "x[start:stop]",
    "negative": "neg()",
    "nelement": "numel()",
    "norm": "square().sum().sqrt()",
    "outer": "x.unsqueeze(1) * y",
    "power": "pow(y)",
    "ravel": "flatten()",
    "remainder": "x % y",
    "reshape_as": "reshape(y.shape)",
    "scatter_add": 'scatter_reduce(dim, index, src, "sum")',
    "select": "x[index]",
    "subtract": "sub(y)",
    "swapaxes": "transpose(a, b)",
    "swapdims": "transpose(a, b)",
    "t": "T, or transpose()",
    "tile": "repeat(times)",
    "true_divide": "x / y",
    "type": "cast(dtype)",
    "type_as": "cast(y.dtype)",
    "unbind": "a loop, or x[0], x[1], …",
    "view_as": "reshape(y.shape)",
    "zero_": "assign(0)",
}


def instead(kind: type, name: str) -> str | None:
    """What to write for a name that a class of tensors has not; None if we do not know."""
    plain = name.removesuffix("_")
    if name not in INSTEAD and plain != name and not plain.endswith("_") and hasattr(kind, plain):
        return f"assign(x.{plain}(…)), which writes in place"
    return INSTEAD.get(name)
