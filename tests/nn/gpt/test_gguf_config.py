"""Every metadata key of a GGUF model is used, ignored or an error that names it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.files.gguf_models import Arrays, Metadata, llama_file, metadata_of
from support.references.gpt import TINY, logits_of, tiny

from glassgrad import Tensor
from glassgrad.base.errors import FormatError
from glassgrad.nn.gpt import GPT, Config
from glassgrad.nn.gpt.gguf_config import (
    FAMILIES,
    IGNORED_KEYS,
    SUPPORTED_VALUES,
    USED_KEYS,
    gguf_config,
)
from glassgrad.nn.gpt.load import load
from glassgrad.nn.gpt.rope import Rope, linear, yarn

IDS = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8]
UNSCALED = replace(TINY["llama"], theta=500.0)  # 4 elements per head: 2 frequencies
ROPE = Rope(500.0, 4, 40)
YARN = yarn(4.0, 10.0, ROPE)
F32 = np.float32


def random_model(config: Config) -> GPT:
    """A model with large random weights."""
    TINY["of a test"] = config
    try:
        return tiny("of a test")
    finally:
        del TINY["of a test"]


THETA: Metadata = {"llama.rope.freq_base": ("f32", 500.0)}
CASES: dict[str, tuple[Config, Metadata, Arrays]] = {
    "theta": (UNSCALED, THETA, {}),
    "rope_freqs": (
        replace(UNSCALED, divisors=(1.0, 8.0)), THETA,
        {"rope_freqs.weight": np.array([1.0, 8.0], F32)},
    ),
    "linear scaling": (
        replace(UNSCALED, divisors=linear(4.0, ROPE).divisors),
        {**THETA, "llama.rope.scaling.type": ("str", "linear"),
         "llama.rope.scaling.factor": ("f32", 4.0)}, {},
    ),
    "linear scaling in older files": (
        replace(UNSCALED, divisors=linear(4.0, ROPE).divisors),
        {**THETA, "llama.rope.scale_linear": ("f32", 4.0)}, {},
    ),
    "yarn": (
        replace(UNSCALED, divisors=YARN.divisors, rotary_factor=YARN.factor * 1.5),
        {**THETA, "llama.rope.scaling.type": ("str", "yarn"),
         "llama.rope.scaling.factor": ("f32", 4.0),
         "llama.rope.scaling.attn_factor": ("f32", 1.5),
         "llama.rope.scaling.original_context_length": ("u32", 10)}, {},
    ),
    "yarn and rope_freqs": (
        replace(UNSCALED, divisors=(YARN.divisors[0], YARN.divisors[1] * 2),
                rotary_factor=YARN.factor),
        {**THETA, "llama.rope.scaling.type": ("str", "yarn"),
         "llama.rope.scaling.factor": ("f32", 4.0),
         "llama.rope.scaling.original_context_length": ("u32", 10)},
        {"rope_freqs.weight": np.array([1.0, 2.0], F32)},
    ),
    "partial rotary embedding": (
        replace(UNSCALED, width=32, head_width=8, rotary_width=4),
        {**THETA, "llama.rope.dimension_count": ("u32", 4)}, {},
    ),
    "wide heads": (
        replace(UNSCALED, head_width=6, rotary_width=6),
        {**THETA, "llama.attention.key_length": ("u32", 6),
         "llama.attention.value_length": ("u32", 6), "llama.rope.dimension_count": ("u32", 6)}, {},
    ),
    "sliding window": (
        replace(UNSCALED, windows=(5, 5)),
        {**THETA, "llama.attention.sliding_window": ("u32", 5)}, {},
    ),
    "biases": (
        replace(UNSCALED, has_qkv_bias=True, has_out_bias=True, has_feed_bias=True), THETA, {},
    ),
    "tied": (replace(UNSCALED, is_tied=True), THETA, {}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_logits_of_llama_files_follow_the_metadata(name: str, tmp_path: Path) -> None:
    config, metadata, tensors = CASES[name]
    model = random_model(config)
    (tmp_path / "x.gguf").write_bytes(llama_file(model, metadata, tensors))
    found = load(tmp_path / "x.gguf").model
    assert found.config == config
    logits = found(Tensor([IDS])).numpy()[0]
    np.testing.assert_allclose(logits, logits_of(model, IDS), rtol=1e-4, atol=1e-4)


def test_rows_of_qwen_files_are_not_interleaved(tmp_path: Path) -> None:
    config = replace(UNSCALED, width=32, head_width=8, rotary_width=4, has_qkv_bias=True)
    model = random_model(config)
    metadata: Metadata = {
        "qwen2.rope.freq_base": ("f32", 500.0), "qwen2.rope.dimension_count": ("u32", 4),
    }  # fmt: skip
    (tmp_path / "x.gguf").write_bytes(llama_file(model, metadata, architecture="qwen2"))
    found = load(tmp_path / "x.gguf").model
    assert found.config == config
    logits = found(Tensor([IDS])).numpy()[0]
    np.testing.assert_allclose(logits, logits_of(model, IDS), rtol=1e-4, atol=1e-4)


# ---------------------------------------------------------------------- every key

# Keys of any architecture in llama.cpp's gguf package, without the prefix "{architecture}.".
KEYS = """
    vocab_size context_length embedding_length embedding_length_out features_length block_count
    leading_dense_block_count feed_forward_length expert_feed_forward_length use_parallel_residual
    tensor_data_layout expert_count expert_used_count expert_shared_count expert_group_count
    expert_weights_scale expert_weights_norm expert_gating_func moe_every_n_layers
    nextn_predict_layers pooling_type logit_scale decoder_start_token_id decoder_block_count
    attn_logit_softcapping router_logit_softcapping final_logit_softcapping swin_norm
    residual_scale embedding_scale token_shift_count interleave_moe_layer_step
    full_attention_interval activation_sparsity_scale attention.head_count attention.head_count_kv
    attention.max_alibi_bias attention.clamp_kqv attention.key_length attention.value_length
    attention.layer_norm_epsilon attention.layer_norm_rms_epsilon attention.group_norm_epsilon
    attention.causal attention.q_lora_rank attention.kv_lora_rank attention.sliding_window
    attention.scale attention.output_scale attention.temperature_length
    attention.key_length_mla attention.key_length_swa attention.shared_kv_layers
    attention.sliding_window_pattern attention.temperature_scale rope.dimension_count
    rope.dimension_count_swa rope.dimension_sections rope.freq_base rope.freq_base_swa
    rope.scale_linear rope.scaling.type rope.scaling.factor rope.scaling.alpha
    rope.scaling.attn_factor rope.scaling.original_context_length rope.scaling.finetuned
    rope.scaling.yarn_log_multiplier rope.scaling.yarn_ext_factor rope.scaling.yarn_attn_factor
    rope.scaling.yarn_beta_fast rope.scaling.yarn_beta_slow ssm.conv_kernel something.new
""".split()  # noqa: SIM905


def metadata_values(config: Config, kind: str) -> dict[str, Any]:
    return {name: value for name, (_, value) in metadata_of(config, kind).items()}


@pytest.mark.parametrize("kind", FAMILIES)
@pytest.mark.parametrize("key", KEYS)
def test_every_key_is_used_or_ignored_or_refused(key: str, kind: str) -> None:
    config = TINY["gpt2" if kind == "gpt2" else "llama"]
    tensors: Any = {"token_embd.weight": Tensor.empty(50, 16)}
    metadata = metadata_values(config, kind)
    unchanged = gguf_config(metadata, tensors)
    if kind != "gpt2":  # so that keys of YaRN are read
        metadata.update({f"{kind}.rope.scaling.type": "yarn", f"{kind}.rope.scaling.factor": 4.0})
    if key in USED_KEYS[FAMILIES[kind]]:
        metadata[f"{kind}.{key}"] = "nonsense"
        with pytest.raises(FormatError):
            gguf_config(metadata, tensors)
        return
    metadata[f"{kind}.{key}"] = 77
    if key in IGNORED_KEYS:
        assert replace(gguf_config(metadata, tensors), divisors=(), rotary_factor=1.0) == unchanged
        return
    with pytest.raises(FormatError, match=rf"{kind}\.{key}: 77, which is not supported"):
        gguf_config(metadata, tensors)
    if key in SUPPORTED_VALUES:
        metadata[f"{kind}.{key}"] = SUPPORTED_VALUES[key][0]
        assert replace(gguf_config(metadata, tensors), divisors=(), rotary_factor=1.0) == unchanged


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({"general.type": "adapter"}, "is 'adapter', not 'model'"),
        ({"adapter.lora.alpha": 1.0}, r"adapter\.lora\.alpha, which is not supported"),
        (
            {"llama.rope.scaling.type": "longrope"},
            "unknown scaling of rotary embeddings: 'longrope'",
        ),
        ({"llama.rope.scaling.factor": -1.0}, "a positive number, not -1.0"),
        ({"llama.attention.value_length": 8}, "keys and values differ in width"),
        ({"llama.attention.head_count_kv": np.array([1, 2])}, "layers with different values"),
        ({"llama.rope.dimension_count": 6}, "rotary_width must be even and at most 4, not 6"),
    ],
)
def test_unsupported_metadata_is_named(metadata: dict[str, Any], message: str) -> None:
    tensors: Any = {"token_embd.weight": Tensor.empty(50, 16)}
    with pytest.raises(FormatError, match=message):
        gguf_config({**metadata_values(UNSCALED, "llama"), **metadata}, tensors)


def test_rope_freqs_of_another_shape_are_refused() -> None:
    tensors: Any = {
        "token_embd.weight": Tensor.empty(50, 16), "rope_freqs.weight": Tensor.ones(3),
    }  # fmt: skip
    with pytest.raises(FormatError, match=r"rope_freqs\.weight has shape \(3,\)"):
        gguf_config(metadata_values(UNSCALED, "llama"), tensors)


def test_equal_values_of_all_layers_may_be_an_array() -> None:
    metadata = metadata_values(UNSCALED, "llama") | {
        "llama.attention.head_count_kv": np.array([2, 2])
    }
    tensors: Any = {"token_embd.weight": Tensor.empty(50, 16)}
    assert gguf_config(metadata, tensors).kv_heads == 2


INVALID: list[Any] = [
    "x",
    -1,
    0,
    1 << 40,
    float("nan"),
    True,
    [],
    ["x"],
    np.zeros(0),
    np.array([1, 2]),
]


@pytest.mark.parametrize("key", [*KEYS, "general.type", "general.architecture"])
def test_invalid_values_raise_nothing_but_format_errors(key: str) -> None:
    name = key if key.startswith("general.") else f"llama.{key}"
    tensors: Any = {"token_embd.weight": Tensor.empty(50, 16)}
    for value in INVALID:
        try:
            gguf_config({**metadata_values(UNSCALED, "llama"), name: value}, tensors)
        except FormatError:
            pass
