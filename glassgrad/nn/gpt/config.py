"""Config: the numbers that say what a model looks like; known ones by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from math import inf, sqrt
from typing import Any

from glassgrad.base.errors import FormatError
from glassgrad.nn.gpt.rope import Rope, llama3

FAMILIES = ("gpt2", "llama")
ACTIVATIONS = (  # gpt/activation.py has the functions
    "gelu", "gelu_tanh", "hardswish", "leaky_relu", "linear", "mish", "quick_gelu", "relu", "relu2",
    "relu6", "sigmoid", "silu", "tanh",
)  # fmt: skip
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
    has_qkv_bias: bool = False  # in Llama's family, as Qwen has; GPT-2's has all biases
    has_out_bias: bool = False  # behind attention
    has_feed_bias: bool = False
    activation: str = ""  # "": gelu_tanh in GPT-2's family, silu in Llama's
    windows: tuple[int, ...] = ()  # tokens that each layer sees, itself included; 0: all of them
    has_scaled_scores: bool = True  # by 1 / sqrt(head_width)
    has_layer_scales: bool = False  # scores of layer i are divided by i + 1
    theta: float = 10000.0  # rotary embeddings: the slowest turn takes 2π theta places
    rotary_width: int = 0  # numbers of a head that are rotated; 0: all
    divisors: tuple[float, ...] = ()  # of the frequencies, one for each pair; (): 1
    rotary_factor: float = 1.0  # of cosines and sines
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
        self._fill(usual)
        self._check_sizes(*usual)
        self._fill({"rotary_width": self.head_width})
        self._fill({"activation": "silu" if self.is_rotary else "gelu_tanh"})
        self._check_numbers()
        self._check_rotary()
        self._check_layers()

    def _fill(self, usual: Mapping[str, Any]) -> None:
        """What is not given has its usual value."""
        for name, value in usual.items():
            if not getattr(self, name):
                object.__setattr__(self, name, value)

    def _check_sizes(self, *names: str) -> None:
        for name in names:
            size = getattr(self, name)
            if type(size) is not int or not 0 < size < MOST:
                raise FormatError(f"a model's {name} is a whole number above 0, not {size!r:.40}")

    def _check_numbers(self) -> None:
        for name in ("eps", "theta", "rotary_factor", "dropout"):
            if type(number := getattr(self, name)) not in (int, float) or not 0 <= number < inf:
                raise FormatError(f"a model's {name} is a number from 0 on, not {number!r:.40}")
        if self.heads % self.kv_heads:
            raise FormatError(
                f"{self.kv_heads} heads of keys do not divide {self.heads} of queries"
            )

    def _check_rotary(self) -> None:
        if not self.is_rotary:
            return
        if self.head_width % 2:
            raise FormatError(f"rotations need an even width of heads, not {self.head_width}")
        if not self.theta > 0:
            raise FormatError(f"rotations need a theta above 0, not {self.theta}")
        width = self.rotary_width
        if type(width) is not int or width % 2 or not 0 < width <= self.head_width:
            raise FormatError(f"{width!r:.40} of {self.head_width} numbers cannot be rotated")
        if self.divisors and len(self.divisors) != width // 2:
            raise FormatError(f"{len(self.divisors)} divisors do not fit {width // 2} frequencies")
        if not all(type(one) in (int, float) and 0 < one < inf for one in self.divisors):
            raise FormatError("divisors of frequencies are numbers above 0")

    def _check_layers(self) -> None:
        if self.activation not in ACTIVATIONS:
            raise FormatError(
                f"there is no activation {self.activation!r:.40}", f"one of {ACTIVATIONS}"
            )
        if self.windows and len(self.windows) != self.layers:
            raise FormatError(f"{len(self.windows)} windows do not fit {self.layers} layers")
        if not all(type(window) is int and window >= 0 for window in self.windows):
            raise FormatError("windows are whole numbers from 0 on")

    def window(self, layer: int) -> int:
        """How many tokens a layer sees; 0: all of them."""
        return self.windows[layer] if self.windows else 0

    def score_factor(self, layer: int) -> float:
        """What a layer's scores are multiplied by, apart from 1 / sqrt(head_width)."""
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
            from glassgrad.nn.gpt.hugging_face import config_of

            return config_of(found)
        return _read_own(found)


def _read_own(found: Mapping[str, Any]) -> Config:
    """What to_json wrote, now or in an earlier version."""
    given = dict(found)
    stretch = given.pop("stretch", None)  # how Llama 3's scaling was written once
    for name in given.keys() - {field.name for field in fields(Config)}:
        raise FormatError(f"a model's config has no {name!r:.40}")
    for name in ("windows", "divisors"):
        if isinstance(given.get(name), list):
            given[name] = tuple(given[name])
    config = Config(**given)
    if stretch is None:
        return config
    if not isinstance(stretch, (list, tuple)) or len(stretch) != 4:
        raise FormatError("stretched rotations have four numbers")
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
