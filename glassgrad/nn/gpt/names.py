"""Weight names: state dicts of Hugging Face checkpoints and GGUF files -> the state dict of GPT."""

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


class NamingScheme(NamedTuple):
    """How a family of files names the weights. Names that are mapped to "" are skipped."""

    prefix: str  # optional, before every name
    layer_prefix: str  # before the index of a layer
    model_names: Mapping[str, str]
    layer_names: Mapping[str, str]
    is_transposed: bool = False  # weights of layers are (in, out) instead of (out, in)


Q, K, V = "attention.q", "attention.k", "attention.v"  # concatenated to attention.qkv
GPT2 = NamingScheme(
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
    is_transposed=True,
)
LLAMA = NamingScheme(
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
GGUF = NamingScheme(
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


def rename_weights(
    weights: Mapping[str, Weight], scheme: NamingScheme, config: Config
) -> dict[str, Tensor | Blocks]:
    """Rename weights to the names of GPT, and concatenate those of queries, keys and values."""
    renamed: dict[str, Tensor | Blocks] = {}
    for name, weight in weights.items():
        ours = _our_name(name, scheme)
        if ours is None or (ours.startswith("head.") and config.is_tied):
            continue
        is_matrix = name.endswith(".weight") and weight.ndim == 2
        is_transposed = scheme.is_transposed and is_matrix and ours.startswith("layers.")
        if is_transposed and isinstance(weight, Tensor):
            renamed[ours] = weight.transpose().contiguous()  # once, not in every product
        else:
            renamed[ours] = weight
    return _merge_qkv(renamed)


def _our_name(name: str, scheme: NamingScheme) -> str | None:
    """The name of a weight in GPT; None to skip it."""
    path, _, kind = name.removeprefix(scheme.prefix).rpartition(".")
    match = re.fullmatch(rf"{re.escape(scheme.layer_prefix)}(\d{{1,6}})\.(.+)", path)
    table, key = (scheme.layer_names, match.group(2)) if match else (scheme.model_names, path)
    ours = table.get(key)
    if ours is None and (ours := table.get(f"{key}.{kind}")) is None:
        raise FormatError(f"the tensor {name:.80} is not part of a supported model")
    if not ours:
        return None
    return f"layers.{int(match.group(1))}.{ours}.{kind}" if match else f"{ours}.{kind}"


def _merge_qkv(weights: dict[str, Tensor | Blocks]) -> dict[str, Tensor | Blocks]:
    """attention.q, attention.k, attention.v  ->  attention.qkv"""
    for name in [name for name in weights if f"{Q}." in name]:
        parts = [name.replace(Q, part) for part in (Q, K, V)]
        missing = [part for part in parts if part not in weights]
        if missing:
            raise FormatError(f"the file has {name:.80}, but not {', '.join(missing):.160}")
        merged = _concatenate([weights.pop(part) for part in parts])
        weights[name.replace(Q, "attention.qkv")] = merged
    return weights


def _concatenate(parts: list[Tensor | Blocks]) -> Tensor | Blocks:
    """Concatenate matrices along rows; quantised ones of one format stay quantised."""
    blocks = [part for part in parts if isinstance(part, Blocks)]
    if len(blocks) == len(parts) and len({(b.kind, b.shape[1]) for b in blocks}) == 1:
        return blocks[0].cat(*blocks[1:])
    tensors = [part.numbers() if isinstance(part, Blocks) else part for part in parts]
    return tensors[0].cat(*tensors[1:])


def deinterleave_rows(x: Tensor | Blocks, heads: int, rotary_width: int) -> Tensor | Blocks:
    """Rows a0 b0 a1 b1 … c of each head  ->  a0 a1 … b0 b1 … c

    GGUF files of Llama rotate adjacent elements; glassgrad, like Hugging Face, rotates two halves.
    Rows c are not rotated.
    """
    rows = np.arange(x.shape[0]).reshape(heads, -1)
    pairs = rows[:, :rotary_width].reshape(heads, -1, 2)
    halves = pairs.swapaxes(1, 2).reshape(heads, -1)
    order = np.concatenate([halves, rows[:, rotary_width:]], 1).reshape(-1)
    if isinstance(x, Blocks):
        return x.arranged(order)
    return x[Tensor(order.astype(np.int32), requires_grad=False)]
