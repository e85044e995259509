"""Config: the numbers that say what a model looks like; known ones by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from math import inf
from typing import Any

from glassgrad.base.errors import FormatError

FAMILIES = ("gpt2", "llama")
MOST = 1 << 24  # what no size of a model reaches


@dataclass(frozen=True, kw_only=True, slots=True)
class Config:
    """A model's shape.

    GPT-2's family has learned places, layer norms, GELU and biases; Llama's has rotations for
    places, RMS norms and a gated unit without biases.

    >>> Config.named("gpt2").width
    768
    """

    family: str = "gpt2"
    vocab_size: int = 50257
    context: int = 1024  # the most tokens it sees at once
    layers: int = 12
    heads: int = 12
    kv_heads: int = 0  # heads of keys and values; 0: as many as of queries
    width: int = 768
    head_width: int = 0  # 0: width / heads
    hidden: int = 0  # 0: 4 widths
    eps: float = 1e-5
    is_tied: bool = True  # the tokens' table gives the logits, too
    has_qkv_bias: bool = False  # in Llama's family, as Qwen has
    theta: float = 10000.0  # rotations: the slowest takes 2π theta places
    stretch: tuple[float, float, float, float] | None = (
        None  # of rotations: Llama 3.1's four numbers
    )
    dropout: float = 0.0

    def __post_init__(self) -> None:
        if self.family not in FAMILIES:
            raise FormatError(f"there is no family {self.family!r:.40}", f"one of {FAMILIES}")
        self._check_sizes("vocab_size", "context", "layers", "heads", "width")
        usual = {
            "kv_heads": self.heads,
            "head_width": self.width // self.heads,
            "hidden": 4 * self.width,
        }
        for name, size in usual.items():
            if not getattr(self, name):
                object.__setattr__(self, name, size)
        self._check_sizes(*usual)
        self._check_numbers()

    def _check_sizes(self, *names: str) -> None:
        for name in names:
            size = getattr(self, name)
            if type(size) is not int or not 0 < size < MOST:
                raise FormatError(f"a model's {name} is a whole number above 0, not {size!r:.40}")

    def _check_numbers(self) -> None:
        for name in ("eps", "theta", "dropout"):
            if type(number := getattr(self, name)) not in (int, float) or not 0 <= number < inf:
                raise FormatError(f"a model's {name} is a number from 0 on, not {number!r:.40}")
        if self.heads % self.kv_heads:
            raise FormatError(
                f"{self.kv_heads} heads of keys do not divide {self.heads} of queries"
            )
        if self.is_rotary and self.head_width % 2:
            raise FormatError(f"rotations need an even width of heads, not {self.head_width}")

    @property
    def is_rotary(self) -> bool:
        return self.family == "llama"

    @property
    def has_bias(self) -> bool:
        return self.family == "gpt2"

    @classmethod
    def named(cls, name: str, **changes: Any) -> Config:
        """A known shape, with some numbers changed."""
        if name not in CONFIGS:
            raise FormatError(
                f"there is no model named {name!r:.40}", f"one of {', '.join(CONFIGS)}"
            )
        return replace(CONFIGS[name], **changes)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Config:
        """What to_json wrote, or a config.json of Hugging Face."""
        if "model_type" in found:
            return _from_hugging_face(found)
        known = {field.name for field in fields(cls)}
        stretch = found.get("stretch")
        given = {name: value for name, value in found.items() if name in known}
        return cls(**{**given, "stretch": None if stretch is None else _four(stretch)})


def _from_hugging_face(found: Mapping[str, Any]) -> Config:
    kind = found["model_type"]
    try:
        if kind == "gpt2":
            return Config(
                vocab_size=found["vocab_size"],
                context=found.get("n_positions") or found["n_ctx"],
                layers=found["n_layer"],
                heads=found["n_head"],
                width=found["n_embd"],
                hidden=found.get("n_inner") or 0,
                eps=float(found.get("layer_norm_epsilon", 1e-5)),
            )
        if kind in ("llama", "mistral", "qwen2"):
            return Config(
                family="llama",
                vocab_size=found["vocab_size"],
                context=found["max_position_embeddings"],
                layers=found["num_hidden_layers"],
                heads=found["num_attention_heads"],
                kv_heads=found.get("num_key_value_heads") or 0,
                width=found["hidden_size"],
                head_width=found.get("head_dim") or 0,
                hidden=found["intermediate_size"],
                eps=float(found.get("rms_norm_eps", 1e-6)),
                is_tied=bool(found.get("tie_word_embeddings", False)),
                has_qkv_bias=kind == "qwen2" or bool(found.get("attention_bias", False)),
                theta=float(found.get("rope_theta", 10000.0)),
                stretch=_stretch(found.get("rope_scaling")),
            )
    except (KeyError, TypeError) as error:
        raise FormatError(f"a config.json of {kind!r:.40} lacks something: {error}") from None
    raise FormatError(f"models of the kind {kind!r:.40} are unknown", "gpt2, llama, mistral, qwen2")


def _stretch(scaling: Any) -> tuple[float, float, float, float] | None:
    """How Llama 3.1 slows its rotations down: factor, low and high frequency, old context."""
    if scaling is None:
        return None
    if not isinstance(scaling, Mapping):
        raise FormatError("rope_scaling should be an object")
    kind = scaling.get("rope_type", scaling.get("type"))
    if kind == "default":
        return None
    if kind != "llama3":
        raise FormatError(f"rotations are scaled in an unknown way: {kind!r:.40}")
    names = ("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings")
    return _four([scaling[name] for name in names])


def _four(numbers: Any) -> tuple[float, float, float, float]:
    if not isinstance(numbers, (list, tuple)) or len(numbers) != 4:
        raise FormatError("stretched rotations have four numbers")
    a, b, c, d = (float(number) for number in numbers)
    return a, b, c, d


CONFIGS = {
    "nano": Config(vocab_size=1024, context=128, layers=4, heads=4, width=128),
    "llama-nano": Config(
        family="llama",
        vocab_size=1024,
        context=128,
        layers=4,
        heads=4,
        kv_heads=2,
        width=128,
        hidden=352,
    ),
    "small": Config(vocab_size=4096, context=256, layers=6, heads=6, width=384),
    "gpt2": Config(),
    "gpt2-medium": Config(layers=24, heads=16, width=1024),
    "gpt2-large": Config(layers=36, heads=20, width=1280),
    "gpt2-xl": Config(layers=48, heads=25, width=1600),
    "smollm-135m": Config(
        family="llama",
        vocab_size=49152,
        context=2048,
        layers=30,
        heads=9,
        kv_heads=3,
        width=576,
        hidden=1536,
    ),
    "llama-3.2-1b": Config(
        family="llama",
        vocab_size=128256,
        context=131072,
        layers=16,
        heads=32,
        kv_heads=8,
        width=2048,
        hidden=8192,
        theta=500000.0,
        stretch=(32.0, 1.0, 4.0, 8192.0),
    ),
}
