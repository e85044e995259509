from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.files.gguf import gguf_file, quantised
from support.files.gguf_models import Arrays, arrays, facts_of, gguf_names, paired, split_names
from support.files.torch import torch_file
from support.references.gpt import TINY, tiny

from glassgrad import Tensor
from glassgrad.base.errors import FormatError
from glassgrad.nn.files.quantised import FORMATS
from glassgrad.nn.gpt import GPT, Config, Sampler, generate_ids
from glassgrad.nn.gpt.load import load
from glassgrad.nn.quantised import QuantisedEmbedding, QuantisedLinear
from glassgrad.nn.state import get_state_dict, safe_save
from glassgrad.nn.tokenizer import Tokenizer

TOKENS = Tensor([[3, 1, 4, 1, 5]])


def gpt2_names(model: GPT) -> Arrays:
    """As GPT-2's checkpoints name them, with weights (in, out) and the masks of old ones."""
    pairs = (
        ("tokens", "wte"), ("places", "wpe"), ("layers", "h"), ("attention_norm", "ln_1"),
        ("feed_norm", "ln_2"), ("attention.qkv", "attn.c_attn"), ("attention.out", "attn.c_proj"),
        ("feed.up", "mlp.c_fc"), ("feed.down", "mlp.c_proj"),
    )  # fmt: skip
    found = {}
    for name, array in arrays(model).items():
        for ours, theirs in pairs:
            name = name.replace(ours, theirs)
        name = name.replace("norm.", "ln_f.") if name.startswith("norm.") else name
        turned = array.T if name.startswith("h.") and array.ndim == 2 else array
        found[f"transformer.{name}"] = np.ascontiguousarray(turned)
    found["transformer.h.0.attn.bias"] = np.ones((1, 1, 4, 4), np.float32)
    found["lm_head.weight"] = found["transformer.wte.weight"]
    return found


def llama_names(model: GPT) -> Arrays:
    pairs = (
        ("tokens", "model.embed_tokens"), ("layers", "model.layers"), ("head", "lm_head"),
        ("attention_norm", "input_layernorm"), ("feed_norm", "post_attention_layernorm"),
        ("attention.out", "self_attn.o_proj"), ("feed.", "mlp."), ("mlp.gate", "mlp.gate_proj"),
        ("mlp.up", "mlp.up_proj"), ("mlp.down", "mlp.down_proj"),
    )  # fmt: skip
    return split_names(model, pairs, "attention", "self_attn", "{}_proj", "model.norm")


def tokenizer(vocab_size: int = 300) -> Tokenizer:
    return Tokenizer.train(["the cat and the hat and the bat"] * 2, vocab_size)


CONFIGS = {
    "gpt2": {
        "model_type": "gpt2", "vocab_size": 50, "n_positions": 40, "n_layer": 2, "n_head": 2,
        "n_embd": 16,
    },
    "llama": {
        "model_type": "llama", "vocab_size": 50, "max_position_embeddings": 40,
        "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
        "hidden_size": 16, "intermediate_size": 24, "rms_norm_eps": 1e-5,
    },
}  # fmt: skip
NAMES = {"gpt2": gpt2_names, "llama": llama_names}


@pytest.mark.parametrize("kind", ["safetensors", "pickle"])
@pytest.mark.parametrize("name", CONFIGS)
def test_a_folder_of_hugging_face_is_loaded(name: str, kind: str, tmp_path: Path) -> None:
    model = tiny(name)
    given = NAMES[name](model)
    (tmp_path / "config.json").write_text(json.dumps(CONFIGS[name]))
    tokenizer().save(tmp_path / "tokenizer.json")
    if kind == "pickle":
        (tmp_path / "pytorch_model.bin").write_bytes(torch_file(given))
    else:
        halves = [dict(list(given.items())[i::2]) for i in range(2)]
        for number, half in enumerate(halves):
            tensors = {name: Tensor(array) for name, array in half.items()}
            safe_save(tensors, tmp_path / f"model-{number}.safetensors")
    found = load(tmp_path)
    assert found.model.config == TINY[name]
    assert np.array_equal(found.model(TOKENS).numpy(), model(TOKENS).numpy())
    assert found.tokenizer.decode(found.tokenizer.encode("the hat")) == "the hat"


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_a_gguf_file_is_loaded_with_its_tokenizer(name: str, tmp_path: Path) -> None:
    model = tiny(name)
    config = model.config
    given = gguf_names(model)
    if name == "gpt2":
        given = {
            key.replace(f"attn_{letter}.", "attn_qkv."): array
            for key, array in given.items()
            for letter in ["q"]
            if "attn_k." not in key and "attn_v." not in key
        }
        whole = arrays(model)
        for key in [key for key in given if "attn_qkv" in key]:
            ours = key.replace("blk", "layers").replace("attn_qkv", "attention.qkv")
            given[key] = whole[ours]
    else:
        for key in list(given):
            if "attn_q." in key or "attn_k." in key:
                heads = config.heads if "attn_q." in key else config.kv_heads
                given[key] = paired(given[key], heads)
    (tmp_path / "x.gguf").write_bytes(gguf_file(facts_of(config, name), given))
    found = load(tmp_path / "x.gguf")
    assert found.model.config == config
    assert np.array_equal(found.model(TOKENS).numpy(), model(TOKENS).numpy())
    assert found.tokenizer.encode("the") == [257]
    assert found.stop == (258,)


@pytest.mark.parametrize("kind", [8, 2])
def test_matrices_of_few_bits_stay_as_they_are(kind: int, tmp_path: Path) -> None:
    shape = {"width": 64, "layers": 2, "heads": 4, "kv_heads": 2, "hidden": 96, "context": 40}
    config = Config(family="llama", vocab_size=50, is_tied=True, **shape)
    Tensor.manual_seed(1)
    given, plain = {}, GPT(config)
    numbers = {}
    for name, array in gguf_names(plain).items():
        if array.ndim == 2:
            blocks = quantised(kind, array)
            given[name] = (kind, array.shape, blocks.tobytes())
            numbers[name] = FORMATS[kind].read(blocks.reshape(-1, blocks.shape[-1]))
            numbers[name] = numbers[name].reshape(array.shape).astype(np.float32)
        else:
            given[name] = numbers[name] = array
    facts = facts_of(config, "llama")
    (tmp_path / "few.gguf").write_bytes(gguf_file(facts, given))
    (tmp_path / "many.gguf").write_bytes(gguf_file(facts, numbers))
    few, many = load(tmp_path / "few.gguf").model, load(tmp_path / "many.gguf").model
    assert isinstance(few.tokens, QuantisedEmbedding)
    assert all(isinstance(layer.attention.qkv, QuantisedLinear) for layer in few.layers)
    assert all(tensor.ndim == 1 for tensor in get_state_dict(few).values())
    expected = many(TOKENS).numpy()
    np.testing.assert_allclose(few(TOKENS).numpy(), expected, rtol=1e-4, atol=1e-5)
    read = [
        [tokens for (tokens,) in generate_ids(model, [[1, 2, 3]], 8, Sampler(temperature=0))]
        for model in (few, many)
    ]
    assert read[0] == read[1]


def test_blocks_of_another_shape_are_refused(tmp_path: Path) -> None:
    config = Config(family="llama", vocab_size=50, width=64, layers=1, heads=2, context=40)
    given: dict[str, Any] = dict(gguf_names(GPT(config)))
    wrong = quantised(8, np.ones((32, 64), np.float32))
    given["blk.0.ffn_up.weight"] = (8, (32, 64), wrong.tobytes())
    (tmp_path / "x.gguf").write_bytes(gguf_file(facts_of(config, "llama"), given))
    with pytest.raises(FormatError, match=r"feed\.up is \(32, 64\) instead of"):
        load(tmp_path / "x.gguf")


def test_a_tensor_of_another_model_is_refused(tmp_path: Path) -> None:
    model = tiny("gpt2")
    (tmp_path / "config.json").write_text(json.dumps(CONFIGS["gpt2"]))
    tokenizer().save(tmp_path / "tokenizer.json")
    given = {name: Tensor(array) for name, array in gpt2_names(model).items()}
    safe_save({**given, "pooler.weight": Tensor([1.0])}, tmp_path / "model.safetensors")
    with pytest.raises(FormatError, match=r"pooler\.weight belongs to no model"):
        load(tmp_path)


def test_missing_keys_and_values_are_named(tmp_path: Path) -> None:
    given = llama_names(tiny("llama"))
    del given["model.layers.1.self_attn.v_proj.weight"]
    (tmp_path / "config.json").write_text(json.dumps(CONFIGS["llama"]))
    tokenizer().save(tmp_path / "tokenizer.json")
    safe_save({name: Tensor(array) for name, array in given.items()}, tmp_path / "m.safetensors")
    with pytest.raises(FormatError, match="comes without its keys and values"):
        load(tmp_path)


def test_more_layers_than_tensors_are_refused(tmp_path: Path) -> None:
    facts = facts_of(TINY["gpt2"], "gpt2") | {"gpt2.block_count": ("u32", 1 << 23)}
    tokens = np.zeros((50, 16), np.float32)
    (tmp_path / "x.gguf").write_bytes(gguf_file(facts, {"token_embd.weight": tokens}))
    with pytest.raises(FormatError, match="8388608 layers cannot be made of 1 tensors"):
        load(tmp_path / "x.gguf")


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"general.architecture": ("str", "bert")}, "'bert' are unknown"),
        ({"general.architecture": ("str", "llama")}, "no table of tokens"),
    ],
)
def test_gguf_files_of_other_models_are_refused(
    facts: dict[str, Any], message: str, tmp_path: Path
) -> None:
    (tmp_path / "x.gguf").write_bytes(gguf_file(facts, {}))
    with pytest.raises(FormatError, match=message):
        load(tmp_path / "x.gguf")


def test_what_is_no_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"is no folder and no \.gguf file"):
        load(tmp_path / "nothing")


def folder(path: Path, config: dict[str, Any] | None = None) -> Path:
    """A model of Llama's family in a folder of Hugging Face."""
    (path / "config.json").write_text(json.dumps(CONFIGS["llama"] | (config or {})))
    tokenizer().save(path / "tokenizer.json")
    given = {name: Tensor(array) for name, array in llama_names(tiny("llama")).items()}
    safe_save(given, path / "model.safetensors")
    return path


@pytest.mark.parametrize(
    ("config", "generation", "stop"),
    [
        ({}, None, (269,)),  # as the tokenizer's tokens are named
        ({"eos_token_id": 7}, None, (7,)),
        ({"eos_token_id": [7, 8]}, {}, (7, 8)),
        ({"eos_token_id": 7}, {"eos_token_id": [3, 4]}, (3, 4)),
        ({"eos_token_id": 7}, {"eos_token_id": 5}, (5,)),
    ],
)
def test_the_tokens_that_end_a_text_are_those_of_the_files(
    config: dict[str, Any], generation: Any, stop: tuple[int, ...], tmp_path: Path
) -> None:
    folder(tmp_path, config)
    if generation is not None:
        (tmp_path / "generation_config.json").write_text(json.dumps(generation))
    found = load(tmp_path)
    assert found.stop == stop


def test_an_end_that_is_no_token_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="'eos_token_id': 'x' is no number"):
        load(folder(tmp_path, {"eos_token_id": "x"}))


def test_weights_of_ints_are_refused(tmp_path: Path) -> None:
    folder(tmp_path)
    given = {name: Tensor(array) for name, array in llama_names(tiny("llama")).items()}
    name = "model.layers.1.mlp.up_proj.weight"
    safe_save({**given, name: given[name].cast("int8")}, tmp_path / "model.safetensors")
    with pytest.raises(FormatError, match=r"layers\.1\.feed\.up\.weight holds int8"):
        load(tmp_path)


def test_untied_weights_of_gpt2_are_loaded(tmp_path: Path) -> None:
    model = GPT(Config(vocab_size=50, context=40, layers=2, heads=2, width=16, is_tied=False))
    given = gpt2_names(model)
    given["lm_head.weight"] = arrays(model)["head.weight"]
    del given["transformer.head.weight"]
    config = CONFIGS["gpt2"] | {"tie_word_embeddings": False}
    (tmp_path / "config.json").write_text(json.dumps(config))
    tokenizer().save(tmp_path / "tokenizer.json")
    safe_save({name: Tensor(array) for name, array in given.items()}, tmp_path / "m.safetensors")
    found = load(tmp_path).model
    assert np.array_equal(found(TOKENS).numpy(), model(TOKENS).numpy())
