"""Loading: a folder of glassgrad or Hugging Face, or a GGUF file -> a model and its tokenizer."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from glassgrad.base.errors import FormatError
from glassgrad.nn.checkpoint import Checkpoints
from glassgrad.nn.files.gguf import read_gguf
from glassgrad.nn.files.pytorch import torch_load
from glassgrad.nn.gpt.config import Config
from glassgrad.nn.gpt.gguf_config import gguf_config
from glassgrad.nn.gpt.model import GPT
from glassgrad.nn.gpt.names import (
    GGUF,
    GPT2,
    LLAMA,
    NamingScheme,
    deinterleave_rows,
    rename_weights,
)
from glassgrad.nn.gpt.training import CONFIG, read_config
from glassgrad.nn.linear import Linear
from glassgrad.nn.quantised import FORMATS, Blocks, QuantisedEmbedding, QuantisedLinear
from glassgrad.nn.state import load_state_dict, safe_load
from glassgrad.nn.tokenizer import Tokenizer
from glassgrad.nn.tokenizer.foreign import ForeignTokenizer
from glassgrad.nn.tokenizer.gguf import gguf_stop_tokens, gguf_tokenizer
from glassgrad.nn.tokenizer.tokenizer import Coder
from glassgrad.nn.tokenizer.vocabulary import read_json
from glassgrad.tensor.tensor import Tensor

# Names of tokens that end a text, in order of preference, for files that do not specify one.
STOP_TOKENS = ("<|endoftext|>", "<|end_of_text|>", "<|im_end|>", "</s>")


class Loaded(NamedTuple):
    """A model, its tokenizer, and the tokens that end a text."""

    model: GPT
    tokenizer: Coder
    stop: tuple[int, ...]


def load(path: Path, tokenizer: Path | None = None) -> Loaded:
    """The model in a folder or a GGUF file, with its own tokenizer or the one of another path."""
    if path.suffix == ".gguf":
        return _load_gguf(path, tokenizer)
    if not path.is_dir():
        raise FormatError(f"{path} is neither a folder nor a .gguf file")
    coder = _load_tokenizer(tokenizer or path)
    settings = read_json(path / CONFIG)
    if "model_type" in settings:
        config = Config.from_json(settings)
        model = _build_model(config, _read_weights(path), LLAMA if config.is_rotary else GPT2)
    else:
        model = GPT(read_config(path)[0])
        newest = Checkpoints(path).newest()
        if newest is None:
            raise FormatError(f"{path} has no checkpoint", hint="train the model first")
        saved = safe_load(newest)
        prefix = "model."
        weights = {n.removeprefix(prefix): t for n, t in saved.items() if n.startswith(prefix)}
        load_state_dict(model, weights)
    return Loaded(model, coder, _specified_stop(path, settings) or _default_stop(coder))


def _specified_stop(folder: Path, config: Mapping[str, Any]) -> tuple[int, ...]:
    """`eos_token_id` of generation_config.json, else of config.json."""
    file = folder / "generation_config.json"
    for settings in (read_json(file) if file.exists() else {}, config):
        eos = settings.get("eos_token_id")
        ids = eos if isinstance(eos, list) else [] if eos is None else [eos]
        if not all(type(token) is int for token in ids):
            raise FormatError(f"eos_token_id must be an int or a list of ints, not {eos!r:.40}")
        if ids:
            return tuple(ids)
    return ()


def _read_weights(folder: Path) -> dict[str, Tensor]:
    """All tensors of a Hugging Face folder; safetensors files are preferred to pickles."""
    weights: dict[str, Tensor] = {}
    for pattern in ("*.safetensors", "pytorch_model*.bin"):
        for file in sorted(folder.glob(pattern)):
            content = safe_load(file) if file.suffix == ".safetensors" else torch_load(file)
            if not isinstance(content, dict):
                raise FormatError(f"{file} is not a dict of tensors")
            weights.update(content)
        if weights:
            return weights
    raise FormatError(
        f"{folder} has no weights", hint="expected *.safetensors or pytorch_model.bin"
    )


def _build_model(
    config: Config, weights: Mapping[str, Tensor | Blocks], scheme: NamingScheme
) -> GPT:
    """A model with these weights; layers with a quantised matrix compute with it as it is."""
    if config.layers > len(weights):  # check before allocating that many layers
        raise FormatError(f"the config has {config.layers} layers, the file {len(weights)} tensors")
    model = GPT(config)
    renamed = rename_weights(weights, scheme, config)
    for name, weight in renamed.items():
        if isinstance(weight, Blocks):
            _set_quantised(model, name.removesuffix(".weight"), weight)
        elif weight.dtype.kind != "float":
            raise FormatError(
                f"{name:.80} has dtype {weight.dtype.name}: this kind of quantisation is not "
                "supported",
                hint="load the unquantised model, or a GGUF file",
            )
    load_state_dict(model, {n: t for n, t in renamed.items() if isinstance(t, Tensor)})
    return model


def _set_quantised(model: GPT, name: str, blocks: Blocks) -> None:
    """Replace the layer of this name by one with a quantised matrix."""
    *path, last = name.split(".")
    owner: Any = model
    for step in path:
        if isinstance(owner, list) and int(step) >= len(owner):
            raise FormatError(f"{name:.80} belongs to a layer that the model does not have")
        owner = owner[int(step)] if isinstance(owner, list) else getattr(owner, step)
    layer = getattr(owner, last, None)
    if layer is None or layer.weight.shape != blocks.shape:
        expected = None if layer is None else layer.weight.shape
        raise FormatError(f"{name:.80} has shape {blocks.shape} instead of {expected}")
    is_linear = isinstance(layer, Linear)
    quantised = QuantisedLinear(blocks, layer.bias) if is_linear else QuantisedEmbedding(blocks)
    setattr(owner, last, quantised)


def _load_tokenizer(path: Path) -> Coder:
    """Our own tokenizer for byte-pair encoding; the package tokenizers for other kinds."""
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


def _default_stop(coder: Coder) -> tuple[int, ...]:
    """The first special token whose name is known to end a text."""
    specials = coder.specials if isinstance(coder, Tokenizer) else {}
    return tuple(specials[name] for name in STOP_TOKENS if name in specials)[:1]


# ---------------------------------------------------------------------- GGUF


def _load_gguf(path: Path, tokenizer: Path | None) -> Loaded:
    metadata, tensors = read_gguf(path, FORMATS)
    config = gguf_config(metadata, tensors)
    if metadata.get("general.architecture") == "llama":
        for name, tensor in tensors.items():
            part = name.rpartition(".")[0].rpartition(".")[2]
            heads = {"attn_q": config.heads, "attn_k": config.kv_heads}.get(part)
            if heads is not None and tensor.shape[0] == heads * config.head_width:
                tensors[name] = deinterleave_rows(tensor, heads, config.rotary_width)
    model = _build_model(config, tensors, GGUF)
    coder = _load_tokenizer(tokenizer) if tokenizer else gguf_tokenizer(metadata)
    return Loaded(model, coder, gguf_stop_tokens(metadata) or _default_stop(coder))
