"""GPT models as GGUF files, and their weights under the names of other libraries."""

from __future__ import annotations

from typing import Any

import numpy as np

from glassgrad.nn.gpt import GPT, Config
from glassgrad.nn.state import get_state_dict
from glassgrad.nn.tokenizer.vocabulary import byte_characters
from support.files.gguf import gguf_file

Array = np.ndarray[Any, Any]
Arrays = dict[str, Array]
Metadata = dict[str, tuple[str, Any]]


def weights_of(model: GPT) -> Arrays:
    return {name: tensor.numpy() for name, tensor in get_state_dict(model).items()}


def gguf_weights(model: GPT) -> Arrays:
    pairs = (
        ("tokens", "token_embd"), ("layers", "blk"), ("head", "output"),
        ("attention_norm", "attn_norm"), ("feed_norm", "ffn_norm"), ("feed.", "ffn_"),
        ("attention.out", "attn_output"), ("places", "position_embd"),
    )  # fmt: skip
    return split_qkv_weights(model, pairs, "attention.", "attn_", "{}", "output_norm")


def split_qkv_weights(
    model: GPT, pairs: tuple[tuple[str, str], ...], old: str, new: str, form: str, norm: str
) -> Arrays:
    """Weights with separate queries, keys and values, renamed by `pairs` (ours, theirs)."""
    config, found = model.config, {}
    q, kv = (config.head_width * heads for heads in (config.heads, config.kv_heads))
    for name, array in weights_of(model).items():
        if name.startswith("norm."):
            found[name.replace("norm", norm)] = array
            continue
        if "qkv" in name:
            for letter, piece in zip("qkv", np.split(array, [q, q + kv]), strict=True):
                part = name.replace(old, new).replace("qkv", form.format(letter))
                found[renamed(part, pairs)] = np.ascontiguousarray(piece)
            continue
        found[renamed(name, pairs)] = array
    return found


def renamed(name: str, pairs: tuple[tuple[str, str], ...]) -> str:
    for ours, theirs in pairs:
        name = name.replace(ours, theirs)
    return name


def interleaved(array: Array, heads: int, rotary_width: int = 0) -> Array:
    """The halves of each head interleaved, as in GGUF files of Llama."""
    rows = array.reshape(heads, -1, *array.shape[1:])
    rotary = rows[:, : rotary_width or rows.shape[1]]
    halves = rotary.reshape(heads, 2, -1, *array.shape[1:]).swapaxes(1, 2).reshape(rotary.shape)
    whole = np.concatenate([halves, rows[:, rotary.shape[1] :]], 1)
    return np.ascontiguousarray(whole.reshape(array.shape))


def metadata_of(config: Config, architecture: str) -> dict[str, tuple[str, Any]]:
    byte_names = list(byte_characters())
    return {
        "general.architecture": ("str", architecture),
        f"{architecture}.context_length": ("u32", config.context),
        f"{architecture}.block_count": ("u32", config.layers),
        f"{architecture}.attention.head_count": ("u32", config.heads),
        f"{architecture}.attention.head_count_kv": ("u32", config.kv_heads),
        f"{architecture}.embedding_length": ("u32", config.width),
        f"{architecture}.feed_forward_length": ("u32", config.hidden),
        f"{architecture}.attention.layer_norm_{'' if architecture == 'gpt2' else 'rms_'}epsilon": (
            "f64",
            config.eps,
        ),
        "tokenizer.ggml.model": ("str", "gpt2"),
        "tokenizer.ggml.tokens": ("[str]", [*byte_names, "th", "the", "<|end|>"]),
        "tokenizer.ggml.token_type": ("[i32]", [1] * 258 + [3]),
        "tokenizer.ggml.merges": ("[str]", ["t h", "th e"]),
        "tokenizer.ggml.pre": ("str", "gpt-2"),
        "tokenizer.ggml.eos_token_id": ("u32", 258),
    }


def llama_file(
    model: GPT, metadata: Metadata, tensors: Arrays | None = None, architecture: str = "llama"
) -> bytes:
    """A file of Llama's family, with more metadata and tensors."""
    config, given = model.config, gguf_weights(model)
    for name in given if architecture == "llama" else ():
        if ".attn_q." in name or ".attn_k." in name:
            heads = config.heads if ".attn_q." in name else config.kv_heads
            given[name] = interleaved(given[name], heads, config.rotary_width)
    return gguf_file(
        {**metadata_of(config, architecture), **metadata}, {**given, **(tensors or {})}
    )
