"""What a GGUF file says of its model is honoured, known not to matter, or refused by name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.files.gguf_models import Arrays, Facts, facts_of, llama_file
from support.references.gpt import TINY, logits_of, tiny

from glassgrad import Tensor
from glassgrad.base.errors import FormatError
from glassgrad.nn.gpt import GPT, Config
from glassgrad.nn.gpt.gguf_config import FAMILIES, HONOURED, IGNORED, REQUIRED, gguf_config
from glassgrad.nn.gpt.load import load
from glassgrad.nn.gpt.rope import Rope, linear, yarn

IDS = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8]
PLAIN = replace(TINY["llama"], theta=500.0)  # heads of 4 numbers, 2 frequencies
ROPE = Rope(500.0, 4, 40)
YARN = yarn(4.0, 10.0, ROPE)
F32 = np.float32


def filled(config: Config) -> GPT:
    """A model with large weights."""
    TINY["of a test"] = config
    try:
        return tiny("of a test")
    finally:
        del TINY["of a test"]


THETA: Facts = {"llama.rope.freq_base": ("f32", 500.0)}
CASES: dict[str, tuple[Config, Facts, Arrays]] = {
    "theta": (PLAIN, THETA, {}),
    "rope_freqs": (
        replace(PLAIN, divisors=(1.0, 8.0)), THETA,
        {"rope_freqs.weight": np.array([1.0, 8.0], F32)},
    ),
    "linear scaling": (
        replace(PLAIN, divisors=linear(4.0, ROPE).divisors),
        {**THETA, "llama.rope.scaling.type": ("str", "linear"),
         "llama.rope.scaling.factor": ("f32", 4.0)}, {},
    ),
    "linear scaling, as older files say it": (
        replace(PLAIN, divisors=linear(4.0, ROPE).divisors),
        {**THETA, "llama.rope.scale_linear": ("f32", 4.0)}, {},
    ),
    "yarn": (
        replace(PLAIN, divisors=YARN.divisors, rotary_factor=YARN.factor * 1.5),
        {**THETA, "llama.rope.scaling.type": ("str", "yarn"),
         "llama.rope.scaling.factor": ("f32", 4.0),
         "llama.rope.scaling.attn_factor": ("f32", 1.5),
         "llama.rope.scaling.original_context_length": ("u32", 10)}, {},
    ),
    "yarn and rope_freqs": (
        replace(PLAIN, divisors=(YARN.divisors[0], YARN.divisors[1] * 2),
                rotary_factor=YARN.factor),
        {**THETA, "llama.rope.scaling.type": ("str", "yarn"),
         "llama.rope.scaling.factor": ("f32", 4.0),
         "llama.rope.scaling.original_context_length": ("u32", 10)},
        {"rope_freqs.weight": np.array([1.0, 2.0], F32)},
    ),
    "partial rotation": (
        replace(PLAIN, width=32, head_width=8, rotary_width=4),
        {**THETA, "llama.rope.dimension_count": ("u32", 4)}, {},
    ),
    "wide heads": (
        replace(PLAIN, head_width=6, rotary_width=6),
        {**THETA, "llama.attention.key_length": ("u32", 6),
         "llama.attention.value_length": ("u32", 6), "llama.rope.dimension_count": ("u32", 6)}, {},
    ),
    "a window": (
        replace(PLAIN, windows=(5, 5)),
        {**THETA, "llama.attention.sliding_window": ("u32", 5)}, {},
    ),
    "biases": (
        replace(PLAIN, has_qkv_bias=True, has_out_bias=True, has_feed_bias=True), THETA, {},
    ),
    "tied": (replace(PLAIN, is_tied=True), THETA, {}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_file_of_llama_computes_what_it_says(name: str, tmp_path: Path) -> None:
    config, facts, tensors = CASES[name]
    model = filled(config)
    (tmp_path / "x.gguf").write_bytes(llama_file(model, facts, tensors))
    found = load(tmp_path / "x.gguf").model
    assert found.config == config
    logits = found(Tensor([IDS])).numpy()[0]
    np.testing.assert_allclose(logits, logits_of(model, IDS), rtol=1e-4, atol=1e-4)


def test_files_of_qwen_rotate_halves(tmp_path: Path) -> None:
    config = replace(PLAIN, width=32, head_width=8, rotary_width=4, has_qkv_bias=True)
    model = filled(config)
    facts: Facts = {
        "qwen2.rope.freq_base": ("f32", 500.0), "qwen2.rope.dimension_count": ("u32", 4),
    }  # fmt: skip
    (tmp_path / "x.gguf").write_bytes(llama_file(model, facts, kind="qwen2"))
    found = load(tmp_path / "x.gguf").model
    assert found.config == config
    logits = found(Tensor([IDS])).numpy()[0]
    np.testing.assert_allclose(logits, logits_of(model, IDS), rtol=1e-4, atol=1e-4)


# ---------------------------------------------------------------------- every fact

# What llama.cpp's gguf package knows of any model, behind the name of the architecture.
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


def plain_facts(config: Config, kind: str) -> dict[str, Any]:
    return {name: value for name, (_, value) in facts_of(config, kind).items()}


@pytest.mark.parametrize("kind", FAMILIES)
@pytest.mark.parametrize("key", KEYS)
def test_a_fact_is_honoured_or_does_not_matter_or_is_refused(key: str, kind: str) -> None:
    config = TINY["gpt2" if kind == "gpt2" else "llama"]
    tensors: Any = {"token_embd.weight": Tensor.empty(50, 16)}
    facts = plain_facts(config, kind)
    usual = gguf_config(facts, tensors)
    if kind != "gpt2":  # so that the other facts about scaling are looked at
        facts.update({f"{kind}.rope.scaling.type": "yarn", f"{kind}.rope.scaling.factor": 4.0})
    if key in HONOURED[FAMILIES[kind]]:
        facts[f"{kind}.{key}"] = "nonsense"
        with pytest.raises(FormatError):
            gguf_config(facts, tensors)
        return
    facts[f"{kind}.{key}"] = 77
    if key in IGNORED:
        assert replace(gguf_config(facts, tensors), divisors=(), rotary_factor=1.0) == usual
        return
    with pytest.raises(FormatError, match=rf"{kind}\.{key}: 77, which is not understood"):
        gguf_config(facts, tensors)
    if key in REQUIRED:
        facts[f"{kind}.{key}"] = REQUIRED[key][0]
        assert replace(gguf_config(facts, tensors), divisors=(), rotary_factor=1.0) == usual


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"general.type": "adapter"}, "of the type 'adapter', and no model"),
        ({"adapter.lora.alpha": 1.0}, r"adapter\.lora\.alpha, which is not supported"),
        (
            {"llama.rope.scaling.type": "longrope"},
            "unknown scaling of rotary embeddings: 'longrope'",
        ),
        ({"llama.rope.scaling.factor": -1.0}, "a positive number, not -1.0"),
        ({"llama.attention.value_length": 8}, "keys and values differ in width"),
        ({"llama.attention.head_count_kv": np.array([1, 2])}, "layers that differ"),
        ({"llama.rope.dimension_count": 6}, "rotary_width must be even and at most 4, not 6"),
    ],
)
def test_what_is_not_supported_is_named(facts: dict[str, Any], message: str) -> None:
    tensors: Any = {"token_embd.weight": Tensor.empty(50, 16)}
    with pytest.raises(FormatError, match=message):
        gguf_config({**plain_facts(PLAIN, "llama"), **facts}, tensors)


def test_frequencies_of_another_number_are_refused() -> None:
    tensors: Any = {
        "token_embd.weight": Tensor.empty(50, 16), "rope_freqs.weight": Tensor.ones(3),
    }  # fmt: skip
    with pytest.raises(FormatError, match=r"rope_freqs\.weight has the shape \(3,\)"):
        gguf_config(plain_facts(PLAIN, "llama"), tensors)


def test_equal_layers_may_be_listed_one_by_one() -> None:
    facts = plain_facts(PLAIN, "llama") | {"llama.attention.head_count_kv": np.array([2, 2])}
    tensors: Any = {"token_embd.weight": Tensor.empty(50, 16)}
    assert gguf_config(facts, tensors).kv_heads == 2


ODD: list[Any] = ["x", -1, 0, 1 << 40, float("nan"), True, [], ["x"], np.zeros(0), np.array([1, 2])]


@pytest.mark.parametrize("key", [*KEYS, "general.type", "general.architecture"])
def test_odd_values_are_refused_or_read(key: str) -> None:
    name = key if key.startswith("general.") else f"llama.{key}"
    tensors: Any = {"token_embd.weight": Tensor.empty(50, 16)}
    for value in ODD:
        try:
            gguf_config({**plain_facts(PLAIN, "llama"), name: value}, tensors)
        except FormatError:
            pass
