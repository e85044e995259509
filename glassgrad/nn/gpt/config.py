"""Config: the hyperparameters of a model, and known models by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from math import inf, sqrt
from typing import Any

from glassgrad.base.errors import FormatError
from glassgrad.nn.gpt.rope import Rope, llama3

FAMILIES = ("gpt2", "llama")
ACTIVATIONS = (  # the functions are in gpt/activation.py
    "gelu", "gelu_tanh", "hardswish", "leaky_relu", "linear", "mish", "quick_gelu", "relu", "relu2",
    "relu6", "sigmoid", "silu", "tanh",
)  # fmt: skip
MAX_SIZE = 1 << 24  # larger than any size of a real model


@dataclass(frozen=True, kw_only=True, slots=True)
class Config:
    """The hyperparameters of a model.

    GPT-2's family has learned position embeddings, LayerNorm, GELU and biases; Llama's has rotary
    embeddings, RMSNorm and a gated feed-forward network without biases.

    >>> Config.named("gpt2").width
    768
    """

    family: str = "gpt2"
    vocab_size: int = 50257
    context: int = 1024  # maximum number of tokens
    layers: int = 12
    heads: int = 12
    kv_heads: int = 0  # key and value heads; 0: as many as query heads
    width: int = 768
    head_width: int = 0  # 0: width / heads
    hidden: int = 0  # of the feed-forward network; 0: 4 * width
    eps: float = 1e-5
    is_tied: bool = True  # the token embedding is also the output projection
    has_qkv_bias: bool = False  # in Llama's family, as in Qwen; GPT-2's has all biases
    has_out_bias: bool = False  # of the attention output
    has_feed_bias: bool = False
    activation: str = ""  # "": gelu_tanh in GPT-2's family, silu in Llama's
    # Attention window of each layer in tokens, the query's own included; 0: all tokens.
    windows: tuple[int, ...] = ()
    has_scaled_scores: bool = True  # by 1 / sqrt(head_width)
    has_layer_scales: bool = False  # scores of layer i are divided by i + 1
    theta: float = 10000.0  # base of the rotary frequencies
    rotary_width: int = 0  # rotated elements of a head; 0: all
    divisors: tuple[float, ...] = ()  # of the rotary frequencies, one per pair; (): 1
    rotary_factor: float = 1.0  # scale of cosines and sines
    dropout: float = 0.0

    def __post_init__(self) -> None:
        if self.family not in FAMILIES:
            raise FormatError(f"unknown model family {self.family!r:.40}", f"one of {FAMILIES}")
        self._check_sizes("vocab_size", "context", "layers", "heads", "width")
        defaults = {
            "kv_heads": self.heads,
            "head_width": self.width // self.heads,
            "hidden": 4 * self.width,
        }
        self._fill(defaults)
        self._check_sizes(*defaults)
        self._fill({"rotary_width": self.head_width})
        self._fill({"activation": "silu" if self.is_rotary else "gelu_tanh"})
        self._check_numbers()
        self._check_rotary()
        self._check_layers()

    def _fill(self, defaults: Mapping[str, Any]) -> None:
        """Set fields that were not given to their defaults."""
        for name, value in defaults.items():
            if not getattr(self, name):
                object.__setattr__(self, name, value)

    def _check_sizes(self, *names: str) -> None:
        for name in names:
            size = getattr(self, name)
            if type(size) is not int or not 0 < size < MAX_SIZE:
                raise FormatError(f"{name} must be a positive int, not {size!r:.40}")

    def _check_numbers(self) -> None:
        for name in ("eps", "theta", "rotary_factor", "dropout"):
            if type(number := getattr(self, name)) not in (int, float) or not 0 <= number < inf:
                raise FormatError(f"{name} must be a non-negative number, not {number!r:.40}")
        if self.heads % self.kv_heads:
            raise FormatError(f"heads {self.heads} is not divisible by kv_heads {self.kv_heads}")

    def _check_rotary(self) -> None:
        if not self.is_rotary:
            return
        if self.head_width % 2:
            raise FormatError(f"rotary embeddings need an even head_width, not {self.head_width}")
        if not self.theta > 0:
            raise FormatError(f"rotary embeddings need a theta above 0, not {self.theta}")
        width = self.rotary_width
        if type(width) is not int or width % 2 or not 0 < width <= self.head_width:
            raise FormatError(
                f"rotary_width must be even and at most {self.head_width}, not {width!r:.40}"
            )
        if self.divisors and len(self.divisors) != width // 2:
            raise FormatError(f"{len(self.divisors)} divisors for {width // 2} rotary frequencies")
        if not all(type(one) in (int, float) and 0 < one < inf for one in self.divisors):
            raise FormatError("divisors of rotary frequencies must be positive numbers")

    def _check_layers(self) -> None:
        if self.activation not in ACTIVATIONS:
            raise FormatError(
                f"unknown activation {self.activation!r:.40}", f"one of {ACTIVATIONS}"
            )
        if self.windows and len(self.windows) != self.layers:
            raise FormatError(f"{len(self.windows)} windows for {self.layers} layers")
        if not all(type(window) is int and window >= 0 for window in self.windows):
            raise FormatError("windows must be non-negative ints")

    def window(self, layer: int) -> int:
        """The attention window of a layer in tokens; 0: all."""
        return self.windows[layer] if self.windows else 0

    def score_factor(self, layer: int) -> float:
        """The factor of a layer's scores, besides 1 / sqrt(head_width)."""
        plain = 1.0 if self.has_scaled_scores else sqrt(self.head_width)
        return plain / (layer + 1) if self.has_layer_scales else plain

    @property
    def rope(self) -> Rope:
        return Rope(self.theta, self.rotary_width, self.context)

    @property
    def is_rotary(self) -> bool:
        return self.family == "llama"

    @property
    def is_gated(self) -> bool:
        return self.family == "llama"

    @property
    def has_bias(self) -> bool:
        return self.family == "gpt2"

    @classmethod
    def named(cls, name: str, **changes: Any) -> Config:
        """The config of a known model, with some fields changed."""
        if name not in CONFIGS:
            raise FormatError(f"unknown model {name!r:.40}", f"one of {', '.join(CONFIGS)}")
        return replace(CONFIGS[name], **changes)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Config:
        """Read what to_json wrote, or a config.json of Hugging Face."""
        if "model_type" in found:
            from glassgrad.nn.gpt.hugging_face import read_hugging_face

            return read_hugging_face(found)
        return _read_own(found)


def _read_own(found: Mapping[str, Any]) -> Config:
    """Read what to_json wrote, in this or an earlier version."""
    given = dict(found)
    stretch = given.pop("stretch", None)  # how earlier versions wrote Llama 3's scaling
    for name in given.keys() - {field.name for field in fields(Config)}:
        raise FormatError(f"unknown config field {name!r:.40}")
    for name in ("windows", "divisors"):
        if isinstance(given.get(name), list):
            given[name] = tuple(given[name])
    config = Config(**given)
    if stretch is None:
        return config
    if not isinstance(stretch, (list, tuple)) or len(stretch) != 4:
        raise FormatError("stretch must have four numbers")
    factor, low, high, original = (float(number) for number in stretch)
    scaling = llama3(factor, low, high, original, config.rope)
    return replace(config, divisors=scaling.divisors)


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
        divisors=llama3(32.0, 1.0, 4.0, 8192.0, Rope(500000.0, 64, 131072)).divisors,
    ),
}
