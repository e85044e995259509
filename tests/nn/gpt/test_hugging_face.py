"""Every key of a config.json is used, ignored or an error that names it."""

from __future__ import annotations

from typing import Any

import pytest
from support.oracle import oracle

from glassgrad.base.errors import FormatError
from glassgrad.nn.gpt import Config
from glassgrad.nn.gpt.hugging_face import ACTIVATIONS, IGNORED_KEYS, SUPPORTED_VALUES, USED_KEYS

Json = dict[str, Any]
# Keys that the config classes of transformers 5 and of earlier versions write.
COMMON: Json = {
    "transformers_version": "5.0.0", "architectures": ["X"], "output_hidden_states": False,
    "return_dict": True, "dtype": "float32", "torch_dtype": "float32", "id2label": {"0": "A"},
    "chunk_size_feed_forward": 0, "is_encoder_decoder": False, "label2id": {"A": 0},
    "problem_type": "x", "_name_or_path": "x", "output_attentions": False, "use_cache": True,
    "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 3, "initializer_range": 0.02,
    "tie_word_embeddings": True, "vocab_size": 50,
}  # fmt: skip
LLAMA: Json = {
    **COMMON,
    "hidden_size": 32, "intermediate_size": 24, "num_hidden_layers": 3, "num_attention_heads": 4,
    "num_key_value_heads": 2, "hidden_act": "silu", "max_position_embeddings": 64,
    "rms_norm_eps": 1e-6, "attention_dropout": 0.0, "head_dim": 8,
    "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"},
}  # fmt: skip
CONFIGS: dict[str, Json] = {
    "gpt2": {
        **COMMON,
        "n_positions": 64, "n_embd": 16, "n_layer": 3, "n_head": 2, "n_inner": 20,
        "activation_function": "gelu_new", "resid_pdrop": 0.1, "embd_pdrop": 0.1,
        "attn_pdrop": 0.1, "layer_norm_epsilon": 1e-5, "summary_type": "cls_index",
        "summary_use_proj": True, "summary_activation": "x", "summary_proj_to_labels": True,
        "summary_first_dropout": 0.1, "scale_attn_weights": True,
        "scale_attn_by_inverse_layer_idx": False, "reorder_and_upcast_attn": False,
        "add_cross_attention": False,
    },
    "llama": {**LLAMA, "pretraining_tp": 1, "attention_bias": False, "mlp_bias": False},
    "mistral": {**LLAMA, "sliding_window": 16},
    "qwen2": {
        **LLAMA, "use_sliding_window": True, "sliding_window": 16, "max_window_layers": 1,
        "layer_types": ["full_attention", "sliding_attention", "sliding_attention"],
    },
}  # fmt: skip
OTHER_VALUES: Json = {  # where another valid value cannot be derived from the first
    "activation_function": "relu", "hidden_act": "relu", "head_dim": 4, "num_key_value_heads": 4,
    "rope_parameters": {"rope_theta": 500.0, "rope_type": "default"},
    "layer_types": ["full_attention"] * 3, "num_attention_heads": 8,
}  # fmt: skip
ALL_KEYS = [(kind, key) for kind, config in CONFIGS.items() for key in config]


def read(kind: str, **changes: Any) -> Config:
    return Config.from_json({"model_type": kind, **CONFIGS[kind], **changes})


def another_value(key: str, value: Any) -> Any:
    if key in OTHER_VALUES:
        return OTHER_VALUES[key]
    if isinstance(value, bool):
        return not value
    return value * 2 if isinstance(value, (int, float)) else "another"


@pytest.mark.parametrize(("kind", "key"), ALL_KEYS)
def test_every_key_changes_the_config_or_is_ignored_or_refused(kind: str, key: str) -> None:
    # layer_types takes precedence over these keys.
    is_overridden = key in ("max_window_layers", "use_sliding_window")
    rest = {"layer_types": None} if is_overridden else {}
    changed = {**rest, key: another_value(key, CONFIGS[kind][key])}
    if key in IGNORED_KEYS:
        assert read(kind, **changed) == read(kind)
    elif key in SUPPORTED_VALUES:
        with pytest.raises(FormatError, match=f"{key}.*is not supported"):
            read(kind, **changed)
    elif key == "num_hidden_layers" and kind == "qwen2":
        with pytest.raises(FormatError, match="3 windows for 6 layers"):
            read(kind, **changed)
    else:
        assert key in USED_KEYS[kind]
        assert read(kind, **changed) != read(kind, **rest)


@pytest.mark.parametrize("kind", CONFIGS)
def test_the_config_classes_of_transformers_have_no_other_keys(kind: str) -> None:
    transformers = oracle("transformers")
    keys = transformers.CONFIG_MAPPING[kind]().to_dict().keys()
    assert keys <= USED_KEYS[kind] | IGNORED_KEYS | SUPPORTED_VALUES.keys()


@pytest.mark.parametrize(
    ("kind", "changes", "message"),
    [
        ("llama", {"new_thing": 1}, "unknown key 'new_thing': 1 in config.json of a llama"),
        ("llama", {"quantization_config": {"bits": 4}}, "'quantization_config': {'bits': 4}"),
        ("llama", {"auto_map": {"AutoModel": "x.X"}}, "'auto_map'"),
        ("llama", {"sliding_window": 8}, "unknown key 'sliding_window': 8"),
        ("gpt2", {"hidden_act": "relu"}, "'hidden_act'"),
        ("gpt2", {"activation_function": "xielu"}, "'activation_function': 'xielu', which is not"),
        ("llama", {"hidden_act": ["silu"]}, "'hidden_act'"),
        ("llama", {"num_attention_heads": 0, "head_dim": None}, "division"),
        ("mistral", {"num_hidden_layers": 1 << 50}, "layers must be a positive int"),
        ("llama", {"head_dim": 1 << 50}, "head_dim must be a positive int"),
        (
            "llama",
            {"rope_parameters": {"rope_type": "longrope"}},
            "unknown scaling of rotary embeddings: 'longrope'",
        ),
        ("llama", {"rope_parameters": {"partial_rotary_factor": 0.5}}, "partial_rotary_factor"),
        ("llama", {"rope_parameters": [1]}, "must be objects"),
        ("llama", {"partial_rotary_factor": 0.5}, "'partial_rotary_factor': 0.5, which is not"),
        ("mistral", {"sliding_window": "x"}, "sliding_window must be a positive int, not 'x'"),
        ("mistral", {"sliding_window": 0}, "sliding_window must be a positive int, not 0"),
        ("qwen2", {"layer_types": ["linear_attention"] * 3}, "'linear_attention'"),
        ("qwen2", {"use_sliding_window": False}, "but there is no sliding_window"),
    ],
)
def test_unsupported_settings_are_named(kind: str, changes: Json, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        read(kind, **changes)


def test_null_keys_are_ignored() -> None:
    assert read("llama", new_thing=None) == read("llama")


def test_sliding_windows_per_layer() -> None:
    assert read("mistral").windows == (16, 16, 16)
    assert read("mistral", sliding_window=None).windows == ()
    assert read("qwen2").windows == (0, 16, 16)
    assert read("qwen2", layer_types=None, max_window_layers=2).windows == (0, 0, 16)
    assert read("qwen2", layer_types=None, use_sliding_window=False).windows == ()


def test_missing_keys_take_the_defaults_of_transformers() -> None:
    def without(kind: str, *keys: str) -> Config:
        remaining = {key: value for key, value in CONFIGS[kind].items() if key not in keys}
        return Config.from_json({"model_type": kind, **remaining})

    assert without("mistral", "sliding_window").windows == (4096,) * 3
    assert without("llama", "num_key_value_heads").kv_heads == 4
    assert without("llama", "rope_parameters").theta == 10000.0
    assert without("llama", "tie_word_embeddings").is_tied is False
    assert without("gpt2", "tie_word_embeddings").is_tied is True
    with pytest.raises(FormatError, match="heads 4 is not divisible by kv_heads 8"):
        without("mistral", "num_key_value_heads")


def test_rope_settings_are_read_from_old_and_new_keys() -> None:
    scaling = {"rope_type": "linear", "factor": 4.0}
    new = read("llama", rope_parameters={**scaling, "rope_theta": 500.0})
    old = read("llama", rope_parameters=None, rope_scaling=scaling, rope_theta=500)
    assert new == old
    assert (new.theta, new.divisors) == (500.0, (4.0,) * 4)


def test_biases_follow_the_config() -> None:
    biased = read("llama", attention_bias=True, mlp_bias=True)
    assert (biased.has_qkv_bias, biased.has_out_bias, biased.has_feed_bias) == (True,) * 3
    assert (read("qwen2").has_qkv_bias, read("qwen2").has_out_bias) == (True, False)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_every_activation_makes_a_config(name: str) -> None:
    assert read("gpt2", activation_function=name).activation == ACTIVATIONS[name]


@pytest.mark.parametrize(("kind", "key"), ALL_KEYS)
def test_invalid_values_raise_nothing_but_format_errors(kind: str, key: str) -> None:
    values: list[Any] = ["x", -1, 0, 1 << 80, float("nan"), True, [], ["x"], {}, {"x": 1}, None]
    for value in values:
        try:
            read(kind, **{key: value})
        except FormatError:
            pass
