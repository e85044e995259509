from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.files.gguf import gguf_file, quantised
from support.files.gguf_models import (
    Arrays,
    gguf_weights,
    interleaved,
    metadata_of,
    split_qkv_weights,
    weights_of,
)
from support.files.torch import torch_file
from support.references.gpt import TINY, tiny

from glassgrad import Tensor
from glassgrad.base.errors import FormatError
from glassgrad.nn.files.gguf_dequantise import FORMATS
from glassgrad.nn.gpt import GPT, Config, Sampler, generate_ids
from glassgrad.nn.gpt.load import load
from glassgrad.nn.quantised import QuantisedEmbedding, QuantisedLinear
from glassgrad.nn.state import get_state_dict, safe_save
from glassgrad.nn.tokenizer import Tokenizer

TOKENS = Tensor([[3, 1, 4, 1, 5]])


def gpt2_weights(model: GPT) -> Arrays:
    """As in GPT-2's checkpoints: weights are (in, out), and a causal mask is stored."""
    pairs = (
        ("tokens", "wte"), ("places", "wpe"), ("layers", "h"), ("attention_norm", "ln_1"),
        ("feed_norm", "ln_2"), ("attention.qkv", "attn.c_attn"), ("attention.out", "attn.c_proj"),
        ("feed.up", "mlp.c_fc"), ("feed.down", "mlp.c_proj"),
    )  # fmt: skip
    found = {}
    for name, array in weights_of(model).items():
        for ours, theirs in pairs:
            name = name.replace(ours, theirs)
        name = name.replace("norm.", "ln_f.") if name.startswith("norm.") else name
        stored = array.T if name.startswith("h.") and array.ndim == 2 else array
        found[f"transformer.{name}"] = np.ascontiguousarray(stored)
    found["transformer.h.0.attn.bias"] = np.ones((1, 1, 4, 4), np.float32)
    found["lm_head.weight"] = found["transformer.wte.weight"]
    return found


def llama_weights(model: GPT) -> Arrays:
    pairs = (
        ("tokens", "model.embed_tokens"), ("layers", "model.layers"), ("head", "lm_head"),
        ("attention_norm", "input_layernorm"), ("feed_norm", "post_attention_layernorm"),
        ("attention.out", "self_attn.o_proj"), ("feed.", "mlp."), ("mlp.gate", "mlp.gate_proj"),
        ("mlp.up", "mlp.up_proj"), ("mlp.down", "mlp.down_proj"),
    )  # fmt: skip
    return split_qkv_weights(model, pairs, "attention", "self_attn", "{}_proj", "model.norm")


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
NAMES = {"gpt2": gpt2_weights, "llama": llama_weights}


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
    given = gguf_weights(model)
    if name == "gpt2":
        given = {
            key.replace(f"attn_{letter}.", "attn_qkv."): array
            for key, array in given.items()
            for letter in ["q"]
            if "attn_k." not in key and "attn_v." not in key
        }
        whole = weights_of(model)
        for key in [key for key in given if "attn_qkv" in key]:
            ours = key.replace("blk", "layers").replace("attn_qkv", "attention.qkv")
            given[key] = whole[ours]
    else:
        for key in list(given):
            if "attn_q." in key or "attn_k." in key:
                heads = config.heads if "attn_q." in key else config.kv_heads
                given[key] = interleaved(given[key], heads)
    (tmp_path / "x.gguf").write_bytes(gguf_file(metadata_of(config, name), given))
    found = load(tmp_path / "x.gguf")
    assert found.model.config == config
    assert np.array_equal(found.model(TOKENS).numpy(), model(TOKENS).numpy())
    assert found.tokenizer.encode("the") == [257]
    assert found.stop == (258,)


@pytest.mark.parametrize("kind", [8, 2])
def test_quantised_matrices_stay_quantised(kind: int, tmp_path: Path) -> None:
    shape = {"width": 64, "layers": 2, "heads": 4, "kv_heads": 2, "hidden": 96, "context": 40}
    config = Config(family="llama", vocab_size=50, is_tied=True, **shape)
    Tensor.manual_seed(1)
    given, plain = {}, GPT(config)
    numbers = {}
    for name, array in gguf_weights(plain).items():
        if array.ndim == 2:
            blocks = quantised(kind, array)
            given[name] = (kind, array.shape, blocks.tobytes())
            numbers[name] = FORMATS[kind].dequantise(blocks.reshape(-1, blocks.shape[-1]))
            numbers[name] = numbers[name].reshape(array.shape).astype(np.float32)
        else:
            given[name] = numbers[name] = array
    metadata = metadata_of(config, "llama")
    (tmp_path / "quantised.gguf").write_bytes(gguf_file(metadata, given))
    (tmp_path / "floats.gguf").write_bytes(gguf_file(metadata, numbers))
    quantised_model, float_model = (
        load(tmp_path / "quantised.gguf").model,
        load(tmp_path / "floats.gguf").model,
    )
    assert isinstance(quantised_model.tokens, QuantisedEmbedding)
    assert all(isinstance(layer.attention.qkv, QuantisedLinear) for layer in quantised_model.layers)
    assert all(tensor.ndim == 1 for tensor in get_state_dict(quantised_model).values())
    expected = float_model(TOKENS).numpy()
    np.testing.assert_allclose(quantised_model(TOKENS).numpy(), expected, rtol=1e-4, atol=1e-5)
    read = [
        [tokens for (tokens,) in generate_ids(model, [[1, 2, 3]], 8, Sampler(temperature=0))]
        for model in (quantised_model, float_model)
    ]
    assert read[0] == read[1]


def test_blocks_of_another_shape_are_refused(tmp_path: Path) -> None:
    config = Config(family="llama", vocab_size=50, width=64, layers=1, heads=2, context=40)
    given: dict[str, Any] = dict(gguf_weights(GPT(config)))
    wrong = quantised(8, np.ones((32, 64), np.float32))
    given["blk.0.ffn_up.weight"] = (8, (32, 64), wrong.tobytes())
    (tmp_path / "x.gguf").write_bytes(gguf_file(metadata_of(config, "llama"), given))
    with pytest.raises(FormatError, match=r"feed\.up has shape \(32, 64\) instead of"):
        load(tmp_path / "x.gguf")


def test_a_tensor_of_another_model_is_refused(tmp_path: Path) -> None:
    model = tiny("gpt2")
    (tmp_path / "config.json").write_text(json.dumps(CONFIGS["gpt2"]))
    tokenizer().save(tmp_path / "tokenizer.json")
    given = {name: Tensor(array) for name, array in gpt2_weights(model).items()}
    safe_save({**given, "pooler.weight": Tensor([1.0])}, tmp_path / "model.safetensors")
    with pytest.raises(FormatError, match=r"pooler\.weight is not part of a supported model"):
        load(tmp_path)


def test_missing_key_and_value_weights_are_named(tmp_path: Path) -> None:
    given = llama_weights(tiny("llama"))
    del given["model.layers.1.self_attn.v_proj.weight"]
    (tmp_path / "config.json").write_text(json.dumps(CONFIGS["llama"]))
    tokenizer().save(tmp_path / "tokenizer.json")
    safe_save({name: Tensor(array) for name, array in given.items()}, tmp_path / "m.safetensors")
    with pytest.raises(FormatError, match=r"but not layers\.1\.attention\.v\.weight"):
        load(tmp_path)


def test_more_layers_than_tensors_are_refused(tmp_path: Path) -> None:
    metadata = metadata_of(TINY["gpt2"], "gpt2") | {"gpt2.block_count": ("u32", 1 << 23)}
    tokens = np.zeros((50, 16), np.float32)
    (tmp_path / "x.gguf").write_bytes(gguf_file(metadata, {"token_embd.weight": tokens}))
    with pytest.raises(FormatError, match="config has 8388608 layers, the file 1 tensors"):
        load(tmp_path / "x.gguf")


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({"general.architecture": ("str", "bert")}, "unsupported architecture 'bert'"),
        ({"general.architecture": ("str", "llama")}, "has no token embedding"),
    ],
)
def test_gguf_files_of_other_models_are_refused(
    metadata: dict[str, Any], message: str, tmp_path: Path
) -> None:
    (tmp_path / "x.gguf").write_bytes(gguf_file(metadata, {}))
    with pytest.raises(FormatError, match=message):
        load(tmp_path / "x.gguf")


def test_a_path_of_no_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"is neither a folder nor a \.gguf file"):
        load(tmp_path / "nothing")


def hugging_face_folder(path: Path, config: dict[str, Any] | None = None) -> Path:
    """A model of Llama's family in a folder of Hugging Face."""
    (path / "config.json").write_text(json.dumps(CONFIGS["llama"] | (config or {})))
    tokenizer().save(path / "tokenizer.json")
    given = {name: Tensor(array) for name, array in llama_weights(tiny("llama")).items()}
    safe_save(given, path / "model.safetensors")
    return path


@pytest.mark.parametrize(
    ("config", "generation", "stop"),
    [
        ({}, None, (269,)),  # <|endoftext|> of the tokenizer
        ({"eos_token_id": 7}, None, (7,)),
        ({"eos_token_id": [7, 8]}, {}, (7, 8)),
        ({"eos_token_id": 7}, {"eos_token_id": [3, 4]}, (3, 4)),
        ({"eos_token_id": 7}, {"eos_token_id": 5}, (5,)),
    ],
)
def test_stop_tokens_are_read_from_the_files(
    config: dict[str, Any], generation: Any, stop: tuple[int, ...], tmp_path: Path
) -> None:
    hugging_face_folder(tmp_path, config)
    if generation is not None:
        (tmp_path / "generation_config.json").write_text(json.dumps(generation))
    found = load(tmp_path)
    assert found.stop == stop


def test_an_eos_token_id_that_is_no_int_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="eos_token_id must be an int or a list of ints, not 'x'"):
        load(hugging_face_folder(tmp_path, {"eos_token_id": "x"}))


def test_int_weights_are_refused(tmp_path: Path) -> None:
    hugging_face_folder(tmp_path)
    given = {name: Tensor(array) for name, array in llama_weights(tiny("llama")).items()}
    name = "model.layers.1.mlp.up_proj.weight"
    safe_save({**given, name: given[name].cast("int8")}, tmp_path / "model.safetensors")
    with pytest.raises(FormatError, match=r"layers\.1\.feed\.up\.weight has dtype int8"):
        load(tmp_path)


def test_untied_weights_of_gpt2_are_loaded(tmp_path: Path) -> None:
    model = GPT(Config(vocab_size=50, context=40, layers=2, heads=2, width=16, is_tied=False))
    given = gpt2_weights(model)
    given["lm_head.weight"] = weights_of(model)["head.weight"]
    del given["transformer.head.weight"]
    config = CONFIGS["gpt2"] | {"tie_word_embeddings": False}
    (tmp_path / "config.json").write_text(json.dumps(config))
    tokenizer().save(tmp_path / "tokenizer.json")
    safe_save({name: Tensor(array) for name, array in given.items()}, tmp_path / "m.safetensors")
    found = load(tmp_path).model
    assert np.array_equal(found(TOKENS).numpy(), model(TOKENS).numpy())
