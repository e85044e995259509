"""Attribute names of PyTorch and NumPy that do not exist here -> what to write instead."""

from __future__ import annotations

SUGGESTIONS = {
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


def suggestion(kind: type, name: str) -> str | None:
    """What to write instead of a missing attribute; None if that is unknown."""
    plain = name.removesuffix("_")
    if (
        name not in SUGGESTIONS
        and plain != name
        and not plain.endswith("_")
        and hasattr(kind, plain)
    ):
        return f"assign(x.{plain}(…)), which writes in place"
    return SUGGESTIONS.get(name)
