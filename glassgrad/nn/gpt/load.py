"""a folder or a file -> a model and its tokenizer: trained here, from Hugging Face, or GGUF."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from glassgrad.base.errors import FormatError
from glassgrad.nn.checkpoint import Checkpoints
from glassgrad.nn.files.gguf import gguf_parts
from glassgrad.nn.files.pytorch import torch_load
from glassgrad.nn.gpt.config import Config
from glassgrad.nn.gpt.model import GPT
from glassgrad.nn.gpt.names import GGUF, GPT2, LLAMA, Style, renamed, unpaired
from glassgrad.nn.gpt.training import CONFIG, read_config
from glassgrad.nn.linear import Linear
from glassgrad.nn.quantised import KEPT, Blocks, QuantisedEmbedding, QuantisedLinear
from glassgrad.nn.state import load_state_dict, safe_load
from glassgrad.nn.tokenizer import Tokenizer
from glassgrad.nn.tokenizer.foreign import ForeignTokenizer
from glassgrad.nn.tokenizer.tables import checked, read_json
from glassgrad.nn.tokenizer.tokenizer import Coder
from glassgrad.nn.tokenizer.words import GPT2_PATTERN
from glassgrad.tensor.tensor import Tensor

ENDS = ("<|endoftext|>", "<|end_of_text|>", "<|im_end|>", "</s>")
CONTROL = 3  # the kind of special tokens in GGUF files
FAMILIES = {"gpt2": "gpt2", "llama": "llama", "qwen2": "llama"}  # of GGUF's architectures


class Loaded(NamedTuple):
    """A model, how it reads and writes, and the token that ends a text."""

    model: GPT
    tokenizer: Coder
    stop: int | None


def load(path: Path, tokenizer: Path | None = None) -> Loaded:
    """Whatever the path holds."""
    if path.suffix == ".gguf":
        return _from_gguf(path, tokenizer)
    if not path.is_dir():
        raise FormatError(f"{path} is no folder and no .gguf file")
    coder = _tokenizer(tokenizer or path)
    found = read_json(path / CONFIG)
    if "model_type" in found:
        config = Config.from_json(found)
        model = _filled(config, _weights(path), LLAMA if config.is_rotary else GPT2)
    else:
        model = GPT(read_config(path)[0])
        newest = Checkpoints(path).newest()
        if newest is None:
            raise FormatError(f"{path} holds no saved step", hint="train it first")
        saved = safe_load(newest)
        prefix = "model."
        chosen = {n.removeprefix(prefix): t for n, t in saved.items() if n.startswith(prefix)}
        load_state_dict(model, chosen)
    return Loaded(model, coder, _stop(coder))


def _weights(folder: Path) -> dict[str, Tensor]:
    """All tensors of a folder from Hugging Face, safetensors before pickles."""
    found: dict[str, Tensor] = {}
    for pattern in ("*.safetensors", "pytorch_model*.bin"):
        for file in sorted(folder.glob(pattern)):
            read = safe_load(file) if file.suffix == ".safetensors" else torch_load(file)
            if not isinstance(read, dict):
                raise FormatError(f"{file} holds no tensors by name")
            found.update(read)
        if found:
            return found
    raise FormatError(f"{folder} holds no weights", hint="*.safetensors or pytorch_model.bin")


def _filled(config: Config, given: Mapping[str, Tensor | Blocks], style: Style) -> GPT:
    """A model that holds these tensors; layers whose matrix has few bits compute with these."""
    if config.layers > len(given):  # before a model of so many is made
        raise FormatError(f"{config.layers} layers cannot be made of {len(given)} tensors")
    model = GPT(config)
    found = renamed(given, style, config)
    for name, blocks in found.items():
        if isinstance(blocks, Blocks):
            _quantise(model, name.removesuffix(".weight"), blocks)
    load_state_dict(model, {n: t for n, t in found.items() if isinstance(t, Tensor)})
    return model


def _quantise(model: GPT, name: str, blocks: Blocks) -> None:
    """Put a layer with these blocks into the place of the one with this name."""
    *path, last = name.split(".")
    owner: Any = model
    for step in path:
        if isinstance(owner, list) and int(step) >= len(owner):
            raise FormatError(f"{name:.80} belongs to a layer that the model lacks")
        owner = owner[int(step)] if isinstance(owner, list) else getattr(owner, step)
    layer = getattr(owner, last, None)
    if layer is None or layer.weight.shape != blocks.shape:
        wanted = None if layer is None else layer.weight.shape
        raise FormatError(f"{name:.80} is {blocks.shape} instead of {wanted}")
    is_linear = isinstance(layer, Linear)
    made = QuantisedLinear(blocks, layer.bias) if is_linear else QuantisedEmbedding(blocks)
    setattr(owner, last, made)


def _tokenizer(path: Path) -> Coder:
    """Byte pairs of our own; other kinds through the package tokenizers."""
    try:
        return Tokenizer.load(path)
    except FormatError as error:
        file = path / "tokenizer.json" if path.is_dir() else path
        if not file.exists():
            raise
        try:
            return ForeignTokenizer(file)
        except FormatError as other:
            raise FormatError(f"{error.message}; and {other.message}", other.hint) from None


def _stop(coder: Coder) -> int | None:
    known = coder.specials if isinstance(coder, Tokenizer) else {}
    return next((known[name] for name in ENDS if name in known), None)


# ---------------------------------------------------------------------- GGUF


def _from_gguf(path: Path, tokenizer: Path | None) -> Loaded:
    facts, tensors = gguf_parts(path, KEPT)
    config = gguf_config(facts, tensors)
    if facts.get("general.architecture") == "llama":
        for name, tensor in tensors.items():
            part = name.removesuffix(".weight").rpartition(".")[2]
            heads = {"attn_q": config.heads, "attn_k": config.kv_heads}.get(part)
            if heads is not None and tensor.shape[0] % (2 * heads) == 0:
                tensors[name] = unpaired(tensor, heads)
    model = _filled(config, tensors, GGUF)
    coder = _tokenizer(tokenizer) if tokenizer else gguf_tokenizer(facts)
    stop = facts.get("tokenizer.ggml.eos_token_id")
    return Loaded(model, coder, stop if isinstance(stop, int) else _stop(coder))


def gguf_config(facts: Mapping[str, Any], tensors: Mapping[str, Tensor | Blocks]) -> Config:
    """The shape of the model that a file describes."""
    kind = facts.get("general.architecture")
    if not isinstance(kind, str) or kind not in FAMILIES:
        raise FormatError(f"models of the kind {kind!r:.40} are unknown", ", ".join(FAMILIES))
    table = tensors.get("token_embd.weight")
    if table is None or table.ndim != 2:
        raise FormatError("the file has no table of tokens")

    def fact(name: str, usual: Any = None) -> Any:
        found = facts.get(f"{kind}.{name}", usual)
        if found is None:
            raise FormatError(f"the file does not say {kind}.{name}")
        return found

    is_llama = FAMILIES[kind] == "llama"
    norm = "layer_norm_rms_epsilon" if is_llama else "layer_norm_epsilon"
    return Config(
        family=FAMILIES[kind],
        vocab_size=int(table.shape[0]),
        context=fact("context_length"),
        layers=fact("block_count"),
        heads=fact("attention.head_count"),
        kv_heads=fact("attention.head_count_kv", 0),
        width=fact("embedding_length"),
        head_width=fact("attention.key_length", 0),
        hidden=fact("feed_forward_length"),
        eps=fact(f"attention.{norm}", 1e-5),
        is_tied="output.weight" not in tensors,
        has_qkv_bias=is_llama and "blk.0.attn_q.bias" in tensors,
        theta=fact("rope.freq_base", 10000.0),
    )


def gguf_tokenizer(facts: Mapping[str, Any]) -> Tokenizer:
    """The tokenizer inside of a file, if it is one of byte pairs."""
    names, merges = facts.get("tokenizer.ggml.tokens"), facts.get("tokenizer.ggml.merges")
    is_known = facts.get("tokenizer.ggml.model") == "gpt2"
    if not is_known or not isinstance(names, list) or not isinstance(merges, list):
        raise FormatError(
            "the file has no tokenizer of byte pairs", hint="pass one with --tokenizer"
        )
    if not all(isinstance(name, str) for name in names):
        raise FormatError("a token of this file is no text")
    kinds = facts.get("tokenizer.ggml.token_type")
    kinds = kinds.tolist() if isinstance(kinds, np.ndarray) else []
    pairs = zip(names, enumerate(kinds), strict=False)
    specials = {name: number for name, (number, kind) in pairs if kind == CONTROL}
    vocab = {name: number for number, name in enumerate(names)}
    return Tokenizer(*checked(vocab, merges, specials, GPT2_PATTERN))
