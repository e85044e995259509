"""facts of a GGUF file -> Config: each is honoured, known not to matter, or refused by name."""

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

Facts = Mapping[str, Any]
FAMILIES = {"gpt2": "gpt2", "llama": "llama", "qwen2": "llama"}  # of GGUF's architectures
ROPE_FREQS = "rope_freqs.weight"  # a tensor of divisors, one for each frequency
# Behind the name of the architecture and a dot:
GPT2 = frozenset(
    (
        "attention.head_count", "attention.head_count_kv", "attention.layer_norm_epsilon",
        "block_count", "context_length", "embedding_length", "feed_forward_length",
    )
)  # fmt: skip
LLAMA = frozenset(
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
HONOURED = {"gpt2": GPT2, "llama": LLAMA}
IGNORED = frozenset(("rope.scaling.finetuned", "tensor_data_layout", "vocab_size"))
# With other values a model computes something that is not supported.
REQUIRED: dict[str, tuple[Any, ...]] = {
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
# Only these say what a model is (tokenizer/gguf.py reads the tokenizer's); tools note other things.
REFUSED_PREFIXES = ("adapter.", "clip.", "diffusion.", "xielu.")


def gguf_config(facts: Facts, tensors: Mapping[str, Tensor | Blocks]) -> Config:
    """The model that a file describes."""
    kind = facts.get("general.architecture")
    if not isinstance(kind, str) or kind not in FAMILIES:
        raise FormatError(f"models of the kind {kind!r:.40} are unknown", ", ".join(FAMILIES))
    table = tensors.get("token_embd.weight")
    if table is None or table.ndim != 2:
        raise FormatError("the file has no table of tokens")
    _check_facts(facts, kind)
    shape = _shape(facts, kind)
    shape.update(vocab_size=int(table.shape[0]), is_tied="output.weight" not in tensors)
    if FAMILIES[kind] == "gpt2":
        return Config(**shape, eps=_fact(facts, f"{kind}.attention.layer_norm_epsilon", 1e-5))
    return _llama(facts, kind, tensors, shape)


def _check_facts(facts: Facts, kind: str) -> None:
    if not _is_one_of(facts.get("general.type", "model"), ("model",)):
        raise FormatError(f"this file is of the type {facts['general.type']!r:.40}, and no model")
    family = FAMILIES[kind]
    for name, value in facts.items():
        key = name.removeprefix(f"{kind}.")
        if key == name:
            if name.startswith(REFUSED_PREFIXES):
                raise FormatError(f"the file says {name:.60}, which is not supported")
            continue
        if key in IGNORED or key in HONOURED[family]:
            continue
        if not _is_one_of(value, REQUIRED.get(key, ())):
            raise FormatError(
                f"the file says {name:.60}: {value!r:.40}, which is not understood here",
                hint="the model would compute something else",
            )


def _is_one_of(value: Any, allowed: tuple[Any, ...]) -> bool:
    return isinstance(value, (str, int, float)) and value in allowed


def _fact(facts: Facts, name: str, usual: Any = None) -> Any:
    found = facts.get(name, usual)
    if found is None:
        raise FormatError(f"the file does not say {name}")
    if isinstance(found, np.ndarray):  # one value for each layer
        values = set(found.reshape(-1).tolist())
        if len(values) != 1:
            raise FormatError(f"layers that differ are not supported: {name:.60}")
        return values.pop()
    return found


def _shape(facts: Facts, kind: str) -> dict[str, Any]:
    return {
        "family": FAMILIES[kind],
        "context": _fact(facts, f"{kind}.context_length"),
        "layers": _fact(facts, f"{kind}.block_count"),
        "heads": _fact(facts, f"{kind}.attention.head_count"),
        "kv_heads": _fact(facts, f"{kind}.attention.head_count_kv", 0),
        "width": _fact(facts, f"{kind}.embedding_length"),
        "head_width": _fact(facts, f"{kind}.attention.key_length", 0),
        "hidden": _fact(facts, f"{kind}.feed_forward_length"),
    }


def _llama(
    facts: Facts, kind: str, tensors: Mapping[str, Tensor | Blocks], shape: dict[str, Any]
) -> Config:
    plain = Config(
        **shape,
        eps=_fact(facts, f"{kind}.attention.layer_norm_rms_epsilon", 1e-5),
        has_qkv_bias="blk.0.attn_q.bias" in tensors,
        has_out_bias="blk.0.attn_output.bias" in tensors,
        has_feed_bias="blk.0.ffn_up.bias" in tensors,
        theta=_fact(facts, f"{kind}.rope.freq_base", 10000.0),
        rotary_width=_fact(facts, f"{kind}.rope.dimension_count", 0),
    )
    if _fact(facts, f"{kind}.attention.value_length", plain.head_width) != plain.head_width:
        raise FormatError("heads whose keys and values differ in width are not supported")
    scaling = _scaling(facts, kind, plain.rope)
    window = _fact(facts, f"{kind}.attention.sliding_window", 0)
    return _with_parts(plain, scaling, tensors.get(ROPE_FREQS), window)


def _with_parts(
    config: Config, scaling: Scaling, freqs: Tensor | Blocks | None, window: int
) -> Config:
    """The config with these divisors of frequencies and this window of all layers."""
    divisors = scaling.divisors
    if freqs is not None:
        numbers = (freqs.numbers() if isinstance(freqs, Blocks) else freqs).float().numpy()
        if numbers.shape != (config.rotary_width // 2,):
            raise FormatError(f"{ROPE_FREQS} has the shape {numbers.shape}")
        given = numbers.tolist()
        divisors = tuple(a * b for a, b in zip(divisors or (1.0,) * len(given), given, strict=True))
    windows = (window,) * config.layers if window else ()
    return replace(config, divisors=divisors, rotary_factor=scaling.factor, windows=windows)


def _scaling(facts: Facts, kind: str, rope: Rope) -> Scaling:
    def number(name: str, usual: float) -> float:
        found = _fact(facts, f"{kind}.rope.{name}", usual)
        if type(found) not in (int, float) or not 0 < found < float("inf"):
            raise FormatError(f"{kind}.rope.{name} must be a positive number, not {found!r:.40}")
        return float(found)

    factor = number("scaling.factor", number("scale_linear", 1.0))
    usual = "none" if factor == 1 else "linear"
    way = _fact(facts, f"{kind}.rope.scaling.type", usual)
    attention = number("scaling.attn_factor", 1.0) * number("scaling.yarn_attn_factor", 1.0)
    if way == "none":
        return Scaling((), attention)
    if way == "linear":
        return Scaling(linear(factor, rope).divisors, attention)
    if way != "yarn":
        raise FormatError(f"unknown scaling of rotary embeddings: {way!r:.40}")
    beta = (number("scaling.yarn_beta_fast", 32.0), number("scaling.yarn_beta_slow", 1.0))
    found = yarn(factor, number("scaling.original_context_length", rope.context), rope, beta=beta)
    return Scaling(found.divisors, found.factor * attention)
