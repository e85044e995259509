"""names of PyTorch's and NumPy's tensors that are not here -> what to write instead."""

from __future__ import annotations

INSTEAD = {
    "absolute": "abs()",
    "argwhere": "nonzero()",
    "astype": "cast(dtype)",
    "cuda": 'to("CUDA")',
    "divide": "div(y)",
    "is_contiguous": "contiguous(), which gives it memory of its own",
    "multiply": "mul(y)",
    "negative": "neg()",
    "power": "pow(y)",
    "subtract": "sub(y)",
    "true_divide": "x / y",
    "type": "cast(dtype)",
}


def instead(kind: type, name: str) -> str | None:
    """What to write for a name that a class of tensors has not; None if we do not know."""
    plain = name.removesuffix("_")
    if name not in INSTEAD and plain != name and not plain.endswith("_") and hasattr(kind, plain):
        return f"assign(x.{plain}(…)), which writes in place"
    return INSTEAD.get(name)
