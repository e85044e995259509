"""a folder or a file -> a model and its tokenizer: trained here, from Hugging Face, or GGUF."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from glassgrad.base.errors import FormatError
from glassgrad.nn.checkpoint import Checkpoints
from glassgrad.nn.files.gguf import gguf_parts
from glassgrad.nn.files.pytorch import torch_load
from glassgrad.nn.gpt.config import Config
from glassgrad.nn.gpt.gguf_config import gguf_config
from glassgrad.nn.gpt.model import GPT
from glassgrad.nn.gpt.names import GGUF, GPT2, LLAMA, Style, renamed, unpaired
from glassgrad.nn.gpt.training import CONFIG, read_config
from glassgrad.nn.linear import Linear
from glassgrad.nn.quantised import FORMATS, Blocks, QuantisedEmbedding, QuantisedLinear
from glassgrad.nn.state import load_state_dict, safe_load
from glassgrad.nn.tokenizer import Tokenizer
from glassgrad.nn.tokenizer.foreign import ForeignTokenizer
from glassgrad.nn.tokenizer.gguf import gguf_ends, gguf_tokenizer
from glassgrad.nn.tokenizer.tables import read_json
from glassgrad.nn.tokenizer.tokenizer import Coder
from glassgrad.tensor.tensor import Tensor

ENDS = ("<|endoftext|>", "<|end_of_text|>", "<|im_end|>", "</s>")


class Loaded(NamedTuple):
    """A model, how it reads and writes, and the tokens that end a text."""

    model: GPT
    tokenizer: Coder
    stop: tuple[int, ...]


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
    return Loaded(model, coder, _ends(path, found) or _ends_of(coder))


def _ends(folder: Path, config: Mapping[str, Any]) -> tuple[int, ...]:
    """The tokens that end a text, as generation_config.json or config.json says."""
    file = folder / "generation_config.json"
    for found in (read_json(file) if file.exists() else {}, config):
        given = found.get("eos_token_id")
        ends = given if isinstance(given, list) else [] if given is None else [given]
        if not all(type(end) is int for end in ends):
            raise FormatError(f"'eos_token_id': {given!r:.40} is no number of a token")
        if ends:
            return tuple(ends)
    return ()


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
    for name, weight in found.items():
        if isinstance(weight, Blocks):
            _quantise(model, name.removesuffix(".weight"), weight)
        elif weight.dtype.kind != "float":
            raise FormatError(
                f"{name:.80} holds {weight.dtype.name}: weights that were quantised in this way "
                "are not understood",
                hint="load the model that was not quantised, or a GGUF file",
            )
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


def _ends_of(coder: Coder) -> tuple[int, ...]:
    """Where no file says what ends a text, the names of tokens do."""
    known = coder.specials if isinstance(coder, Tokenizer) else {}
    return tuple(known[name] for name in ENDS if name in known)[:1]


# ---------------------------------------------------------------------- GGUF


def _from_gguf(path: Path, tokenizer: Path | None) -> Loaded:
    facts, tensors = gguf_parts(path, FORMATS)
    config = gguf_config(facts, tensors)
    if facts.get("general.architecture") == "llama":
        for name, tensor in tensors.items():
            part = name.rpartition(".")[0].rpartition(".")[2]
            heads = {"attn_q": config.heads, "attn_k": config.kv_heads}.get(part)
            if heads is not None and tensor.shape[0] == heads * config.head_width:
                tensors[name] = unpaired(tensor, heads, config.rotary_width)
    model = _filled(config, tensors, GGUF)
    coder = _tokenizer(tokenizer) if tokenizer else gguf_tokenizer(facts)
    return Loaded(model, coder, gguf_ends(facts) or _ends_of(coder))
