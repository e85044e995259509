"""config.json of Hugging Face -> Config: every key is used, ignored or an error.

An unknown key might change what the model computes, so it is an error that names it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from glassgrad.base.errors import FormatError
from glassgrad.nn.gpt.config import Config
from glassgrad.nn.gpt.rope import Rope, Scaling, read_scaling

# Keys that do not change inference.
IGNORED_KEYS = frozenset(
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
# Keys that are supported with these values only.
SUPPORTED_VALUES: dict[str, tuple[Any, ...]] = {
    "add_cross_attention": (False,),
    "is_encoder_decoder": (False,),
    "partial_rotary_factor": (1, 1.0),
    "pruned_heads": ({}, []),
    "rope_interleaved": (False,),
    "tie_encoder_decoder": (False,),
    "use_mrope": (False,),
}
GPT2_KEYS = frozenset(
    (
        "activation_function", "layer_norm_epsilon", "n_ctx", "n_embd", "n_head", "n_inner",
        "n_layer", "n_positions", "scale_attn_by_inverse_layer_idx", "scale_attn_weights",
        "tie_word_embeddings", "vocab_size",
    )
)  # fmt: skip
LLAMA_KEYS = frozenset(
    (
        "head_dim", "hidden_act", "hidden_size", "intermediate_size", "max_position_embeddings",
        "num_attention_heads", "num_hidden_layers", "num_key_value_heads",
        "original_max_position_embeddings", "rms_norm_eps", "rope_parameters", "rope_scaling",
        "rope_theta", "tie_word_embeddings", "vocab_size",
    )
)  # fmt: skip
USED_KEYS = {
    "gpt2": GPT2_KEYS,
    "llama": LLAMA_KEYS | {"attention_bias", "mlp_bias"},
    "mistral": LLAMA_KEYS | {"sliding_window"},
    "qwen2": LLAMA_KEYS
    | {"layer_types", "max_window_layers", "sliding_window", "use_sliding_window"},
}
MAX_SIZE = 1 << 16  # layers, or elements of a head; more are nonsense
DEFAULT_KV_HEADS = {"llama": 0, "mistral": 8, "qwen2": 32}  # 0: as many as query heads
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


def read_hugging_face(settings: Mapping[str, Any]) -> Config:
    """The Config that a config.json describes."""
    model_type = settings["model_type"]
    if not isinstance(model_type, str) or model_type not in USED_KEYS:
        raise FormatError(
            f"unsupported model_type {model_type!r:.40} in config.json",
            hint=f"supported are {', '.join(USED_KEYS)}",
        )
    _check_keys(settings, model_type)
    try:
        return _gpt2(settings) if model_type == "gpt2" else _llama(settings, model_type)
    except (KeyError, TypeError, ValueError, ArithmeticError) as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError(
            f"config.json of a {model_type!r:.40} model is incomplete or invalid: {error}"
        ) from None


def _check_keys(settings: Mapping[str, Any], model_type: str) -> None:
    for key, value in settings.items():
        if value is None or key in IGNORED_KEYS or key in USED_KEYS[model_type]:
            continue
        if key not in SUPPORTED_VALUES:
            raise FormatError(
                f"unknown key {key!r:.60}: {value!r:.60} in config.json of a {model_type} model",
                hint="the model may compute something else; remove the key if it does not matter",
            )
        if value not in SUPPORTED_VALUES[key]:
            raise FormatError(f"config.json has {key!r}: {value!r:.60}, which is not supported")


def _gpt2(settings: Mapping[str, Any]) -> Config:
    return Config(
        vocab_size=settings["vocab_size"],
        context=settings.get("n_positions") or settings["n_ctx"],
        layers=settings["n_layer"],
        heads=settings["n_head"],
        width=settings["n_embd"],
        hidden=settings.get("n_inner") or 0,
        eps=float(settings.get("layer_norm_epsilon", 1e-5)),
        is_tied=bool(settings.get("tie_word_embeddings", True)),
        activation=_activation(settings, "activation_function", "gelu_new"),
        has_scaled_scores=bool(settings.get("scale_attn_weights", True)),
        has_layer_scales=bool(settings.get("scale_attn_by_inverse_layer_idx", False)),
    )


def _llama(settings: Mapping[str, Any], model_type: str) -> Config:
    heads, width = settings["num_attention_heads"], settings["hidden_size"]
    head_width = settings.get("head_dim") or width // heads
    # These are lengths of lists: check them before any list is made.
    for name, size in (("head_dim", head_width), ("layers", settings["num_hidden_layers"])):
        if type(size) is not int or not 0 < size <= MAX_SIZE:
            raise FormatError(f"{name} must be a positive int, not {size!r:.40}")
    theta, scaling = _rope(settings, head_width)
    has_bias = bool(settings.get("attention_bias", False))
    return Config(
        family="llama",
        vocab_size=settings["vocab_size"],
        context=settings["max_position_embeddings"],
        layers=settings["num_hidden_layers"],
        heads=heads,
        kv_heads=settings.get("num_key_value_heads", DEFAULT_KV_HEADS[model_type]) or 0,
        width=width,
        head_width=head_width,
        hidden=settings["intermediate_size"],
        eps=float(settings.get("rms_norm_eps", 1e-6)),
        is_tied=bool(settings.get("tie_word_embeddings", False)),
        has_qkv_bias=model_type == "qwen2" or has_bias,
        has_out_bias=has_bias,
        has_feed_bias=bool(settings.get("mlp_bias", False)),
        activation=_activation(settings, "hidden_act", "silu"),
        windows=_windows(settings, model_type),
        theta=theta,
        divisors=scaling.divisors,
        rotary_factor=scaling.factor,
    )


def _activation(settings: Mapping[str, Any], key: str, default: str) -> str:
    name = settings.get(key) or default
    if not isinstance(name, str) or name not in ACTIVATIONS:
        raise FormatError(f"config.json has {key!r}: {name!r:.40}, which is not supported")
    return ACTIVATIONS[name]


def _rope(settings: Mapping[str, Any], width: int) -> tuple[float, Scaling]:
    """Theta and the scaling. Newer files have both in `rope_parameters`."""
    nested = settings.get("rope_scaling") or settings.get("rope_parameters") or {}
    if not isinstance(nested, Mapping):
        raise FormatError("rope_scaling and rope_parameters of config.json must be objects")
    rope = dict(nested)
    if rope.get("partial_rotary_factor", 1) not in (1, None):
        raise FormatError("a partial_rotary_factor is not supported")
    theta = rope.get("rope_theta")
    theta = settings.get("rope_theta") if theta is None else theta
    theta = 10000.0 if theta is None else float(theta)
    original = settings.get("original_max_position_embeddings")
    if original is not None:
        rope["original_max_position_embeddings"] = original
    return theta, read_scaling(rope, Rope(theta, width, settings["max_position_embeddings"]))


def _windows(settings: Mapping[str, Any], model_type: str) -> tuple[int, ...]:
    """The sliding window of each layer in tokens, 0 for full attention; () if all are full."""
    layers = settings["num_hidden_layers"]
    if model_type == "llama":
        return ()
    size = settings.get("sliding_window", 4096)
    if size is not None and (type(size) is not int or size < 1):
        raise FormatError(f"sliding_window must be a positive int, not {size!r:.40}")
    if model_type == "mistral":
        return () if size is None else (size,) * layers
    size = size if settings.get("use_sliding_window", False) else None
    types = settings.get("layer_types")
    if types is None:
        first = settings.get("max_window_layers", 28)
        are_sliding = [size is not None and layer >= first for layer in range(layers)]
        types = ["sliding_attention" if sliding else "full_attention" for sliding in are_sliding]
    for one in types:
        if one not in ("full_attention", "sliding_attention"):
            raise FormatError(f"layer_types of config.json has the unsupported type {one!r:.40}")
    if "sliding_attention" not in types:
        return ()
    if size is None:
        raise FormatError("layer_types has sliding_attention, but there is no sliding_window")
    return tuple(size if one == "sliding_attention" else 0 for one in types)
