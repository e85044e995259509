"""metadata of a GGUF file -> Config: every key is used, ignored or an error that names it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from glassgrad.base.errors import FormatError
from glassgrad.nn.gpt.config import Config
from glassgrad.nn.gpt.rope import Rope, Scaling, linear, yarn
from glassgrad.nn.quantised import Blocks
from glassgrad.tensor.tensor import Tensor

Metadata = Mapping[str, Any]
FAMILIES = {"gpt2": "gpt2", "llama": "llama", "qwen2": "llama"}  # by GGUF architecture
ROPE_FREQS = "rope_freqs.weight"  # a tensor: one divisor per rotary frequency
# Keys, without their prefix "{architecture}.".
GPT2_KEYS = frozenset(
    (
        "attention.head_count", "attention.head_count_kv", "attention.layer_norm_epsilon",
        "block_count", "context_length", "embedding_length", "feed_forward_length",
    )
)  # fmt: skip
LLAMA_KEYS = frozenset(
    (
        "attention.head_count", "attention.head_count_kv", "attention.key_length",
        "attention.layer_norm_rms_epsilon", "attention.sliding_window", "attention.value_length",
        "block_count", "context_length", "embedding_length", "feed_forward_length",
        "rope.dimension_count", "rope.freq_base", "rope.scale_linear", "rope.scaling.attn_factor",
        "rope.scaling.factor", "rope.scaling.original_context_length", "rope.scaling.type",
        "rope.scaling.yarn_attn_factor", "rope.scaling.yarn_beta_fast",
        "rope.scaling.yarn_beta_slow",
    )
)  # fmt: skip
USED_KEYS = {"gpt2": GPT2_KEYS, "llama": LLAMA_KEYS}
IGNORED_KEYS = frozenset(("rope.scaling.finetuned", "tensor_data_layout", "vocab_size"))
# Keys that are supported with these values only.
SUPPORTED_VALUES: dict[str, tuple[Any, ...]] = {
    "attention.causal": (True,),
    "attention.clamp_kqv": (0,),
    "attention.max_alibi_bias": (0,),
    "expert_count": (0,),
    "expert_used_count": (0,),
    "nextn_predict_layers": (0,),
    "pooling_type": (0,),
    "rope.scaling.yarn_ext_factor": (1, -1),
    "rope.scaling.yarn_log_multiplier": (0,),
    "use_parallel_residual": (False,),
}
# Keys outside of the architecture's namespace are notes of tools (tokenizer/gguf.py reads those of
# the tokenizer), but keys with these prefixes change what the model computes.
REFUSED_PREFIXES = ("adapter.", "clip.", "diffusion.", "xielu.")


def gguf_config(metadata: Metadata, tensors: Mapping[str, Tensor | Blocks]) -> Config:
    """The Config of the model in a GGUF file."""
    architecture = metadata.get("general.architecture")
    if not isinstance(architecture, str) or architecture not in FAMILIES:
        raise FormatError(
            f"unsupported architecture {architecture!r:.40} in general.architecture",
            hint=f"supported are {', '.join(FAMILIES)}",
        )
    embedding = tensors.get("token_embd.weight")
    if embedding is None or embedding.ndim != 2:
        raise FormatError("the file has no token embedding: token_embd.weight must be a matrix")
    _check_metadata(metadata, architecture)
    shape = _shape(metadata, architecture)
    shape.update(vocab_size=int(embedding.shape[0]), is_tied="output.weight" not in tensors)
    if FAMILIES[architecture] == "gpt2":
        eps = _value(metadata, f"{architecture}.attention.layer_norm_epsilon", 1e-5)
        return Config(**shape, eps=eps)
    return _llama(metadata, architecture, tensors, shape)


def _check_metadata(metadata: Metadata, architecture: str) -> None:
    if not _is_one_of(metadata.get("general.type", "model"), ("model",)):
        file_type = metadata["general.type"]
        raise FormatError(f"general.type of the file is {file_type!r:.40}, not 'model'")
    used = USED_KEYS[FAMILIES[architecture]]
    for name, value in metadata.items():
        key = name.removeprefix(f"{architecture}.")
        if key == name:
            if name.startswith(REFUSED_PREFIXES):
                raise FormatError(f"the file has {name:.60}, which is not supported")
            continue
        if key in IGNORED_KEYS or key in used:
            continue
        if not _is_one_of(value, SUPPORTED_VALUES.get(key, ())):
            raise FormatError(
                f"the file has {name:.60}: {value!r:.40}, which is not supported",
                hint="the model would compute something else",
            )


def _is_one_of(value: Any, allowed: tuple[Any, ...]) -> bool:
    return isinstance(value, (str, int, float)) and value in allowed


def _value(metadata: Metadata, name: str, default: Any = None) -> Any:
    value = metadata.get(name, default)
    if value is None:
        raise FormatError(f"the file has no {name}")
    if isinstance(value, np.ndarray):  # one value per layer
        values = set(value.reshape(-1).tolist())
        if len(values) != 1:
            raise FormatError(f"layers with different values are not supported: {name:.60}")
        return values.pop()
    return value


def _shape(metadata: Metadata, architecture: str) -> dict[str, Any]:
    return {
        "family": FAMILIES[architecture],
        "context": _value(metadata, f"{architecture}.context_length"),
        "layers": _value(metadata, f"{architecture}.block_count"),
        "heads": _value(metadata, f"{architecture}.attention.head_count"),
        "kv_heads": _value(metadata, f"{architecture}.attention.head_count_kv", 0),
        "width": _value(metadata, f"{architecture}.embedding_length"),
        "head_width": _value(metadata, f"{architecture}.attention.key_length", 0),
        "hidden": _value(metadata, f"{architecture}.feed_forward_length"),
    }


def _llama(
    metadata: Metadata,
    architecture: str,
    tensors: Mapping[str, Tensor | Blocks],
    shape: dict[str, Any],
) -> Config:
    unscaled = Config(
        **shape,
        eps=_value(metadata, f"{architecture}.attention.layer_norm_rms_epsilon", 1e-5),
        has_qkv_bias="blk.0.attn_q.bias" in tensors,
        has_out_bias="blk.0.attn_output.bias" in tensors,
        has_feed_bias="blk.0.ffn_up.bias" in tensors,
        theta=_value(metadata, f"{architecture}.rope.freq_base", 10000.0),
        rotary_width=_value(metadata, f"{architecture}.rope.dimension_count", 0),
    )
    width = unscaled.head_width
    if _value(metadata, f"{architecture}.attention.value_length", width) != width:
        raise FormatError("heads whose keys and values differ in width are not supported")
    scaling = _scaling(metadata, architecture, unscaled.rope)
    window = _value(metadata, f"{architecture}.attention.sliding_window", 0)
    return _with_scaling(unscaled, scaling, tensors.get(ROPE_FREQS), window)


def _with_scaling(
    config: Config, scaling: Scaling, rope_freqs: Tensor | Blocks | None, window: int
) -> Config:
    """The config with scaled rotary frequencies, and the same attention window in all layers."""
    divisors = scaling.divisors
    if rope_freqs is not None:
        tensor = rope_freqs.numbers() if isinstance(rope_freqs, Blocks) else rope_freqs
        array = tensor.float().numpy()
        if array.shape != (config.rotary_width // 2,):
            raise FormatError(
                f"{ROPE_FREQS} has shape {array.shape} instead of ({config.rotary_width // 2},)"
            )
        more = array.tolist()
        divisors = tuple(a * b for a, b in zip(divisors or (1.0,) * len(more), more, strict=True))
    windows = (window,) * config.layers if window else ()
    return replace(config, divisors=divisors, rotary_factor=scaling.factor, windows=windows)


def _scaling(metadata: Metadata, architecture: str, rope: Rope) -> Scaling:
    def number(name: str, default: float) -> float:
        value = _value(metadata, f"{architecture}.rope.{name}", default)
        if type(value) not in (int, float) or not 0 < value < float("inf"):
            raise FormatError(
                f"{architecture}.rope.{name} must be a positive number, not {value!r:.40}"
            )
        return float(value)

    factor = number("scaling.factor", number("scale_linear", 1.0))
    default = "none" if factor == 1 else "linear"
    kind = _value(metadata, f"{architecture}.rope.scaling.type", default)
    attention = number("scaling.attn_factor", 1.0) * number("scaling.yarn_attn_factor", 1.0)
    if kind == "none":
        return Scaling((), attention)
    if kind == "linear":
        return Scaling(linear(factor, rope).divisors, attention)
    if kind != "yarn":
        raise FormatError(f"unknown scaling of rotary embeddings: {kind!r:.40}")
    beta = (number("scaling.yarn_beta_fast", 32.0), number("scaling.yarn_beta_slow", 1.0))
    original = number("scaling.original_context_length", rope.context)
    scaling = yarn(factor, original, rope, beta=beta)
    return Scaling(scaling.divisors, scaling.factor * attention)
