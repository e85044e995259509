"""config.json of Hugging Face -> Config: every key is honoured, known not to matter, or refused.

A key that nobody here knows could change what the model computes, so it is an error that names it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from glassgrad.base.errors import FormatError
from glassgrad.nn.gpt.config import Config
from glassgrad.nn.gpt.rope import Rope, Scaling, read_scaling

# These change nothing that a model computes outside of training.
IGNORED = frozenset(
    (
        "_attn_implementation", "_name_or_path", "architectures", "attention_dropout",
        "attn_pdrop", "bos_token_id", "chunk_size_feed_forward", "decoder_start_token_id",
        "dtype", "embd_pdrop", "eos_token_id", "finetuning_task", "forced_bos_token_id",
        "forced_eos_token_id", "gradient_checkpointing", "id2label", "initializer_range",
        "is_decoder", "is_llama_config", "label2id", "model_type", "output_attentions",
        "output_hidden_states", "output_past", "pad_token_id", "prefix", "pretraining_tp",
        "problem_type", "reorder_and_upcast_attn", "resid_pdrop", "return_dict",
        "return_dict_in_generate", "sep_token_id", "summary_activation",
        "summary_first_dropout", "summary_proj_to_labels", "summary_type", "summary_use_proj",
        "task_specific_params", "tf_legacy_loss", "tokenizer_class", "torch_dtype",
        "torchscript", "transformers.js_config", "transformers_version", "unk_token_id",
        "unsloth_fixed", "unsloth_version", "use_bfloat16", "use_cache", "bad_words_ids",
        "begin_suppress_tokens", "diversity_penalty", "do_sample", "early_stopping",
        "encoder_no_repeat_ngram_size", "exponential_decay_length_penalty", "length_penalty",
        "max_length", "max_new_tokens", "min_length", "no_repeat_ngram_size", "num_beam_groups",
        "num_beams", "num_return_sequences", "output_scores", "remove_invalid_values",
        "repetition_penalty", "suppress_tokens", "temperature", "top_k", "top_p", "typical_p",
    )
)  # fmt: skip
# Models with other values compute something that is not supported.
REQUIRED: dict[str, tuple[Any, ...]] = {
    "add_cross_attention": (False,),
    "is_encoder_decoder": (False,),
    "partial_rotary_factor": (1, 1.0),
    "pruned_heads": ({}, []),
    "rope_interleaved": (False,),
    "tie_encoder_decoder": (False,),
    "use_mrope": (False,),
}
GPT2 = frozenset(
    (
        "activation_function", "layer_norm_epsilon", "n_ctx", "n_embd", "n_head", "n_inner",
        "n_layer", "n_positions", "scale_attn_by_inverse_layer_idx", "scale_attn_weights",
        "tie_word_embeddings", "vocab_size",
    )
)  # fmt: skip
COMMON = frozenset(
    (
        "head_dim", "hidden_act", "hidden_size", "intermediate_size", "max_position_embeddings",
        "num_attention_heads", "num_hidden_layers", "num_key_value_heads",
        "original_max_position_embeddings", "rms_norm_eps", "rope_parameters", "rope_scaling",
        "rope_theta", "tie_word_embeddings", "vocab_size",
    )
)  # fmt: skip
HONOURED = {
    "gpt2": GPT2,
    "llama": COMMON | {"attention_bias", "mlp_bias"},
    "mistral": COMMON | {"sliding_window"},
    "qwen2": COMMON | {"layer_types", "max_window_layers", "sliding_window", "use_sliding_window"},
}
MAX_SIZE = 1 << 16  # of layers, and of the numbers of a head
KV_HEADS = {"llama": 0, "mistral": 8, "qwen2": 32}  # where a file does not say; 0: as of queries
ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_accurate": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu_new": "gelu_tanh",
    "gelu_python": "gelu",
    "gelu_python_tanh": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "swish": "silu",
    **{
        name: name
        for name in (
            "hardswish", "leaky_relu", "linear", "mish", "quick_gelu", "relu", "relu2", "relu6",
            "sigmoid", "silu", "tanh",
        )
    },
}  # fmt: skip


def config_of(found: Mapping[str, Any]) -> Config:
    """The model that a config.json describes."""
    kind = found["model_type"]
    if not isinstance(kind, str) or kind not in HONOURED:
        known = ", ".join(HONOURED)
        raise FormatError(f"models of the kind {kind!r:.40} are unknown", known)
    _check_keys(found, kind)
    try:
        return _gpt2(found) if kind == "gpt2" else _llama(found, kind)
    except (KeyError, TypeError, ValueError, ArithmeticError) as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError(f"a config.json of {kind!r:.40} lacks something: {error}") from None


def _check_keys(found: Mapping[str, Any], kind: str) -> None:
    for key, value in found.items():
        if value is None or key in IGNORED or key in HONOURED[kind]:
            continue
        if key not in REQUIRED:
            raise FormatError(
                f"config.json says {key!r:.60}: {value!r:.60}, which is not understood here for "
                f"models of the kind {kind}",
                hint="the model may compute something else; delete the key if you know better",
            )
        if value not in REQUIRED[key]:
            raise FormatError(f"config.json says {key!r}: {value!r:.60}, which is not supported")


def _gpt2(found: Mapping[str, Any]) -> Config:
    return Config(
        vocab_size=found["vocab_size"],
        context=found.get("n_positions") or found["n_ctx"],
        layers=found["n_layer"],
        heads=found["n_head"],
        width=found["n_embd"],
        hidden=found.get("n_inner") or 0,
        eps=float(found.get("layer_norm_epsilon", 1e-5)),
        is_tied=bool(found.get("tie_word_embeddings", True)),
        activation=_activation(found, "activation_function", "gelu_new"),
        has_scaled_scores=bool(found.get("scale_attn_weights", True)),
        has_layer_scales=bool(found.get("scale_attn_by_inverse_layer_idx", False)),
    )


def _llama(found: Mapping[str, Any], kind: str) -> Config:
    heads, width = found["num_attention_heads"], found["hidden_size"]
    head_width = found.get("head_dim") or width // heads
    for name, size in (("head_dim", head_width), ("layers", found["num_hidden_layers"])):
        if type(size) is not int or not 0 < size <= MAX_SIZE:  # before there is one number for each
            raise FormatError(f"{name} must be a positive int, not {size!r:.40}")
    theta, scaling = _rope(found, head_width)
    has_bias = bool(found.get("attention_bias", False))
    return Config(
        family="llama",
        vocab_size=found["vocab_size"],
        context=found["max_position_embeddings"],
        layers=found["num_hidden_layers"],
        heads=heads,
        kv_heads=found.get("num_key_value_heads", KV_HEADS[kind]) or 0,
        width=width,
        head_width=head_width,
        hidden=found["intermediate_size"],
        eps=float(found.get("rms_norm_eps", 1e-6)),
        is_tied=bool(found.get("tie_word_embeddings", False)),
        has_qkv_bias=kind == "qwen2" or has_bias,
        has_out_bias=has_bias,
        has_feed_bias=bool(found.get("mlp_bias", False)),
        activation=_activation(found, "hidden_act", "silu"),
        windows=_windows(found, kind),
        theta=theta,
        divisors=scaling.divisors,
        rotary_factor=scaling.factor,
    )


def _activation(found: Mapping[str, Any], key: str, usual: str) -> str:
    name = found.get(key) or usual
    if not isinstance(name, str) or name not in ACTIVATIONS:
        raise FormatError(f"config.json says {key!r}: {name!r:.40}, which is not supported")
    return ACTIVATIONS[name]


def _rope(found: Mapping[str, Any], width: int) -> tuple[float, Scaling]:
    """Theta and the scaling; newer files say all of it in rope_parameters."""
    given = found.get("rope_scaling") or found.get("rope_parameters") or {}
    if not isinstance(given, Mapping):
        raise FormatError("rope_scaling and rope_parameters should be objects")
    settings = dict(given)
    if settings.get("partial_rotary_factor", 1) not in (1, None):
        raise FormatError("a partial_rotary_factor is not supported")
    theta = settings.get("rope_theta")
    theta = found.get("rope_theta") if theta is None else theta
    theta = 10000.0 if theta is None else float(theta)
    original = found.get("original_max_position_embeddings")
    if original is not None:
        settings["original_max_position_embeddings"] = original
    return theta, read_scaling(settings, Rope(theta, width, found["max_position_embeddings"]))


def _windows(found: Mapping[str, Any], kind: str) -> tuple[int, ...]:
    """How many tokens each layer sees; () where all of them see everything."""
    layers = found["num_hidden_layers"]
    if kind == "llama":
        return ()
    size = found.get("sliding_window", 4096)
    if size is not None and (type(size) is not int or size < 1):
        raise FormatError(f"config.json says 'sliding_window': {size!r:.40}, which is no size")
    if kind == "mistral":
        return () if size is None else (size,) * layers
    size = size if found.get("use_sliding_window", False) else None
    types = found.get("layer_types")
    if types is None:
        first = found.get("max_window_layers", 28)
        are_cut = [size is not None and number >= first for number in range(layers)]
        types = ["sliding_attention" if is_cut else "full_attention" for is_cut in are_cut]
    for one in types:
        if one not in ("full_attention", "sliding_attention"):
            raise FormatError(f"config.json has layers of the kind {one!r:.40} in 'layer_types'")
    if "sliding_attention" not in types:
        return ()
    if size is None:
        raise FormatError("config.json has windows in 'layer_types', and no 'sliding_window'")
    return tuple(size if one == "sliding_attention" else 0 for one in types)
