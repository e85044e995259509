"""Small random models, saved by transformers and loaded here, have the logits of transformers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.oracle import oracle

from glassgrad import Tensor
from glassgrad.nn.gpt import Decoder
from glassgrad.nn.gpt.load import load
from glassgrad.nn.tokenizer import Tokenizer

Json = dict[str, Any]
IDS = np.random.default_rng(0).integers(0, 50, (1, 41))
READ = 37  # tokens at once; the others one at a time
GPT2: Json = {"vocab_size": 50, "n_positions": 64, "n_layer": 3, "n_head": 2, "n_embd": 16}
LLAMA: Json = {
    "vocab_size": 50, "max_position_embeddings": 64, "num_hidden_layers": 3,
    "num_attention_heads": 4, "num_key_value_heads": 2, "hidden_size": 32, "intermediate_size": 24,
}  # fmt: skip
YARN: Json = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16}
LLAMA3: Json = {
    "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
}  # fmt: skip
ROPES: list[Json] = [
    {"rope_parameters": {"rope_theta": 1000.0, **scaling}}
    for scaling in (
        {"rope_type": "default"}, {"rope_type": "linear", "factor": 4.0}, LLAMA3, YARN,
        {**YARN, "mscale": 0.7, "mscale_all_dim": 0.4, "truncate": False},
        {"rope_type": "dynamic", "factor": 4.0},
    )
]  # fmt: skip
WINDOW: Json = {"use_sliding_window": True, "sliding_window": 5}
SLIDING, FULL = "sliding_attention", "full_attention"
VARIANTS: dict[str, list[Json]] = {
    "gpt2": [
        {}, {"activation_function": "relu"}, {"activation_function": "gelu"},
        {"scale_attn_by_inverse_layer_idx": True}, {"scale_attn_weights": False},
        {"tie_word_embeddings": False}, {"n_inner": 20}, {"reorder_and_upcast_attn": True},
    ],
    "llama": [
        {}, *ROPES, {"hidden_act": "gelu"}, {"attention_bias": True}, {"mlp_bias": True},
        {"tie_word_embeddings": True}, {"head_dim": 6},
    ],
    "mistral": [{}, ROPES[3], {"sliding_window": 5}, {"sliding_window": None}, {"head_dim": 12}],
    "qwen2": [
        {}, *ROPES[:3], {**WINDOW, "max_window_layers": 1}, {**WINDOW, "max_window_layers": 0},
        {**WINDOW, "layer_types": [SLIDING, FULL, SLIDING]}, {"tie_word_embeddings": True},
    ],
}  # fmt: skip
CASES = [(kind, changes) for kind, variants in VARIANTS.items() for changes in variants]


@pytest.mark.parametrize(("kind", "changes"), CASES, ids=lambda value: str(value)[:60])
def test_logits_are_those_of_transformers(kind: str, changes: Json, tmp_path: Path) -> None:
    torch = oracle("torch")
    transformers = oracle("transformers")
    torch.manual_seed(1)
    config = transformers.CONFIG_MAPPING[kind](**{**(GPT2 if kind == "gpt2" else LLAMA), **changes})
    theirs = transformers.AutoModelForCausalLM.from_config(config).eval()
    with torch.no_grad():
        for weight in theirs.parameters():
            weight.normal_(0, 0.3)  # large enough for every part to matter
        wanted = theirs(torch.tensor(IDS)).logits.numpy()[0]
    theirs.save_pretrained(tmp_path)
    Tokenizer.train(["the cat"] * 2, 260).save(tmp_path / "tokenizer.json")
    model = load(tmp_path).model
    logits = model(Tensor(IDS.astype(np.int32))).numpy()[0]
    np.testing.assert_allclose(logits, wanted, atol=2e-5)
    decoder = Decoder(model)
    last = decoder.read([IDS[0, :READ].tolist()])
    for token in IDS[0, READ:]:
        last = decoder.step([int(token)])
    np.testing.assert_allclose(last[0], wanted[-1], atol=2e-5)
