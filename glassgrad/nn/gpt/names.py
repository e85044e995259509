"""tensors by the names of Hugging Face's or GGUF's files -> tensors by the names of our model."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple, TypeVar

import numpy as np

from glassgrad.base.errors import FormatError
from glassgrad.nn.gpt.config import Config
from glassgrad.nn.quantised import Blocks
from glassgrad.tensor.tensor import Tensor

Weight = TypeVar("Weight", Tensor, Tensor | Blocks)


class Style(NamedTuple):
    """How somebody names the parts of a model. Names that are mapped to "" are left out."""

    prefix: str  # may stand before every name
    layer: str  # before the number of a layer
    outside: Mapping[str, str]
    inside: Mapping[str, str]  # of a layer
    has_turned_weights: bool = False  # (in, out) instead of (out, in)


Q, K, V = "attention.q", "attention.k", "attention.v"  # joined into attention.qkv
GPT2 = Style(
    "transformer.",
    "h.",
    {"wte": "tokens", "wpe": "places", "ln_f": "norm", "lm_head": "head"},
    {
        "ln_1": "attention_norm",
        "attn.c_attn": "attention.qkv",
        "attn.c_proj": "attention.out",
        "ln_2": "feed_norm",
        "mlp.c_fc": "feed.up",
        "mlp.c_proj": "feed.down",
        "attn": "",  # its bias is the causal mask
        "attn.masked_bias": "",
    },
    has_turned_weights=True,
)
LLAMA = Style(
    "model.",
    "layers.",
    {"embed_tokens": "tokens", "norm": "norm", "lm_head": "head"},
    {
        "input_layernorm": "attention_norm",
        "self_attn.q_proj": Q,
        "self_attn.k_proj": K,
        "self_attn.v_proj": V,
        "self_attn.o_proj": "attention.out",
        "post_attention_layernorm": "feed_norm",
        "mlp.gate_proj": "feed.gate",
        "mlp.up_proj": "feed.up",
        "mlp.down_proj": "feed.down",
        "self_attn.rotary_emb.inv_freq": "",
    },
)
GGUF = Style(
    "",
    "blk.",
    {
        "token_embd": "tokens",
        "position_embd": "places",
        "output_norm": "norm",
        "output": "head",
        "rope_freqs": "",
    },
    {
        "attn_norm": "attention_norm",
        "attn_qkv": "attention.qkv",
        "attn_q": Q,
        "attn_k": K,
        "attn_v": V,
        "attn_output": "attention.out",
        "ffn_norm": "feed_norm",
        "ffn_gate": "feed.gate",
        "ffn_up": "feed.up",
        "ffn_down": "feed.down",
    },
)


def renamed(
    given: Mapping[str, Weight], style: Style, config: Config
) -> dict[str, Tensor | Blocks]:
    """The same tensors under our names; queries, keys and values are joined."""
    found: dict[str, Tensor | Blocks] = {}
    for name, tensor in given.items():
        ours = _our_name(name, style)
        if ours is None or (ours.startswith("head.") and config.is_tied):
            continue
        is_matrix = name.endswith(".weight") and tensor.ndim == 2
        is_turned = style.has_turned_weights and is_matrix and ours.startswith("layers.")
        if is_turned and isinstance(tensor, Tensor):
            found[ours] = tensor.transpose().contiguous()  # once, not at every product
        else:
            found[ours] = tensor
    return _joined(found)


def _our_name(name: str, style: Style) -> str | None:
    """None if the model has no use for it."""
    path, _, kind = name.removeprefix(style.prefix).rpartition(".")
    match = re.fullmatch(rf"{re.escape(style.layer)}(\d{{1,6}})\.(.+)", path)
    table, inner = (style.inside, match.group(2)) if match else (style.outside, path)
    known = table.get(inner)
    if known is None and (known := table.get(f"{inner}.{kind}")) is None:
        raise FormatError(f"the tensor {name:.80} belongs to no model that is known here")
    if not known:
        return None
    return f"layers.{int(match.group(1))}.{known}.{kind}" if match else f"{known}.{kind}"


def _joined(found: dict[str, Tensor | Blocks]) -> dict[str, Tensor | Blocks]:
    """attention.q, .k, .v  ->  attention.qkv"""
    for name in [name for name in found if f"{Q}." in name]:
        parts = [name.replace(Q, part) for part in (Q, K, V)]
        if not all(part in found for part in parts):
            raise FormatError(f"{name:.80} comes without its keys and values")
        found[name.replace(Q, "attention.qkv")] = _stacked([found.pop(part) for part in parts])
    return found


def _stacked(parts: list[Tensor | Blocks]) -> Tensor | Blocks:
    """Rows below each other; as they are, if all are blocks of one format."""
    blocks = [part for part in parts if isinstance(part, Blocks)]
    if len(blocks) == len(parts) and len({(b.kind, b.shape[1]) for b in blocks}) == 1:
        return blocks[0].cat(*blocks[1:])
    tensors = [part.numbers() if isinstance(part, Blocks) else part for part in parts]
    return tensors[0].cat(*tensors[1:])


def unpaired(x: Tensor | Blocks, heads: int, rotary_width: int) -> Tensor | Blocks:
    """Rows a0 b0 a1 b1 … c of each head  ->  a0 a1 … b0 b1 … c

    GGUF files of Llama turn neighbours; our rotations turn two halves. Rows c are not rotated.
    """
    rows = np.arange(x.shape[0]).reshape(heads, -1)
    turned = rows[:, :rotary_width].reshape(heads, -1, 2).swapaxes(1, 2).reshape(heads, -1)
    order = np.concatenate([turned, rows[:, rotary_width:]], 1).reshape(-1)
    if isinstance(x, Blocks):
        return x.arranged(order)
    return x[Tensor(order.astype(np.int32), requires_grad=False)]
