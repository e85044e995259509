from __future__ import annotations

import json
from typing import Any

import pytest

from glassgrad.base.errors import FormatError
from glassgrad.nn.gpt import CONFIGS, Config


@pytest.mark.parametrize("name", CONFIGS)
def test_json_round_trip(name: str) -> None:
    config = Config.named(name)
    assert Config.from_json(json.loads(json.dumps(config.to_json()))) == config


def test_gpt2_is_read_from_hugging_face() -> None:
    found = {
        "model_type": "gpt2", "vocab_size": 50257, "n_positions": 1024, "n_layer": 12, "n_head": 12,
        "n_embd": 768, "layer_norm_epsilon": 1e-5,
    }  # fmt: skip
    assert Config.from_json(found) == CONFIGS["gpt2"]


def test_llama_is_read_from_hugging_face() -> None:
    found = {
        "model_type": "llama", "vocab_size": 128256, "max_position_embeddings": 131072,
        "num_hidden_layers": 16, "num_attention_heads": 32, "num_key_value_heads": 8,
        "hidden_size": 2048, "intermediate_size": 8192, "rms_norm_eps": 1e-5, "rope_theta": 500000,
        "tie_word_embeddings": True,
        "rope_scaling": {
            "rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
            "original_max_position_embeddings": 8192,
        },
    }  # fmt: skip
    assert Config.from_json(found) == CONFIGS["llama-3.2-1b"]


def test_missing_sizes_are_derived() -> None:
    config = Config(heads=4, width=64)
    assert (config.kv_heads, config.head_width, config.hidden) == (4, 16, 256)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"family": "bert"}, "unknown model family 'bert'"),
        ({"layers": 0}, "layers must be a positive int"),
        ({"vocab_size": 1 << 40}, "vocab_size must be a positive int"),
        ({"heads": "x", "head_width": 2}, "heads must be a positive int"),
        ({"heads": 6, "kv_heads": 4}, "6 is not divisible"),
        ({"eps": "x"}, "eps must be a non-negative number"),
        ({"family": "llama", "head_width": 3}, "even head_width"),
        ({"family": "llama", "rotary_width": 3}, "rotary_width must be even and at most 64, not 3"),
        (
            {"family": "llama", "rotary_width": 66},
            "rotary_width must be even and at most 64, not 66",
        ),
        ({"family": "llama", "divisors": (1.0,)}, "1 divisors for 32 rotary frequencies"),
        ({"family": "llama", "divisors": (0.0,) * 32}, "must be positive numbers"),
        ({"family": "llama", "theta": 0.0}, "theta above 0"),
        ({"windows": (1,)}, "1 windows for 12 layers"),
        ({"windows": (-1,) * 12}, "windows must be non-negative"),
        ({"activation": "step"}, "unknown activation 'step'"),
    ],
)
def test_invalid_hyperparameters_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(FormatError, match=message):
        Config(**changes)


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ({"model_type": "bert"}, "unsupported model_type 'bert'"),
        ({"model_type": "gpt2"}, "is incomplete or invalid"),
        ({"stretch": [1]}, "four numbers"),
        ({"wdith": 3}, "unknown config field 'wdith'"),
    ],
)
def test_invalid_json_is_refused(found: dict[str, Any], message: str) -> None:
    with pytest.raises(FormatError, match=message):
        Config.from_json(found)


def test_rope_scaling_of_earlier_versions_is_read() -> None:
    config = Config.named("llama-3.2-1b")
    old = {**config.to_json(), "stretch": [32.0, 1.0, 4.0, 8192.0], "divisors": []}
    assert Config.from_json(old) == config


def test_the_error_for_an_unknown_model_lists_the_known_ones() -> None:
    with pytest.raises(FormatError, match="gpt2-medium"):
        Config.named("gpt5")
