"""The commands and their options, and the help that explains them."""

from __future__ import annotations

from argparse import (
    REMAINDER,
    ArgumentParser,
    ArgumentTypeError,
    Namespace,
    RawDescriptionHelpFormatter,
)
from pathlib import Path
from typing import Any

from glassgrad.base.version import __version__

ABOUT = """\
glassgrad: a deep-learning tensor compiler that you can see through.

  glassgrad train                         learn to write Python from the standard library's source
  glassgrad train novels/ --minutes 10    learn from any text file or folder
  glassgrad generate run "class"          let the trained model write
  glassgrad explain "Tensor([1., -2.]).relu().sum()"
                                          follow one expression down to its machine code
  glassgrad viz train.py                  run a script, and look at all it did in a browser
"""
LAST_WORDS = (
    "`glassgrad COMMAND --help` says more. Settings such as DEBUG=2 are read from the environment."
)


def parser() -> ArgumentParser:
    """What is understood."""
    made = ArgumentParser(
        "glassgrad",
        description=ABOUT,
        epilog=LAST_WORDS,
        formatter_class=RawDescriptionHelpFormatter,
    )
    made.add_argument("--version", action="version", version=f"glassgrad {__version__}")
    commands = made.add_subparsers(dest="command", metavar="COMMAND", required=True)

    def command(name: str, says: str, more: str = "") -> ArgumentParser:
        return commands.add_parser(
            name,
            help=says,
            description=f"{says[0].upper()}{says[1:]}.\n\n{more}".rstrip(),
            formatter_class=RawDescriptionHelpFormatter,
        )

    _train(command("train", "train a small GPT on text", TRAIN))
    _generate(command("generate", "let a model write", GENERATE))
    _explain(command("explain", "show every stage of one expression", EXPLAIN))
    _viz(command("viz", "look at what a script or an expression does, in a browser", VIZ))
    command("devices", "list what can compute here")
    bench = command("bench", "time a few things on this machine, beside NumPy")
    bench.add_argument("--quick", action="store_true", help="less exact, in a few seconds")
    _cache(command("cache", "show, shrink or empty the folder of compiled kernels"))
    return made


TRAIN = """\
Text becomes tokens (byte pairs, learned here), and a model learns which token comes next. All of it
is kept in one folder. Ctrl-C saves; `glassgrad train --resume run` goes on where it stopped."""


def _train(made: ArgumentParser) -> None:
    made.add_argument(
        "text", nargs="*", type=Path, help="files or folders; none: Python's standard library"
    )
    made.add_argument(
        "--files", default="*", metavar="PATTERN", help="which files of folders: '*.txt'"
    )
    made.add_argument("--out", type=Path, default=Path("run"), help="the folder (run)")
    made.add_argument("--resume", type=Path, metavar="FOLDER", help="go on with an earlier run")
    made.add_argument(
        "--model", default="nano", help="the shape: nano, llama-nano, small, gpt2 (nano)"
    )
    made.add_argument("--vocab", type=_whole, default=1024, help="tokens (1024)")
    made.add_argument("--context", type=_whole, help="tokens seen at once (the model's)")
    made.add_argument("--layers", type=_whole, help="layers (the model's)")
    length = made.add_mutually_exclusive_group()
    length.add_argument("--steps", type=_whole, help="how long, in steps (1000)")
    length.add_argument("--minutes", type=_positive, help="how long, by the clock")
    made.add_argument("--batch", type=_whole, default=8, help="texts learned from at once (8)")
    made.add_argument("--rate", type=_positive, default=3e-3, help="learning rate (0.003)")
    made.add_argument("--seed", type=_seed, default=0, help="of all random numbers (0)")
    made.add_argument(
        "--prompt", type=_some, default="def", help="a sample of what follows it ends the run"
    )


GENERATE = """\
The model is a folder that `glassgrad train` made, a folder from Hugging Face (config.json,
*.safetensors, tokenizer.json), or a .gguf file of GPT-2's or Llama's family."""


def _generate(made: ArgumentParser) -> None:
    made.add_argument("model", type=Path, help="a folder, or a .gguf file")
    made.add_argument(
        "prompt", nargs="?", type=_some, default="def", help="what the text begins with (def)"
    )
    made.add_argument("--tokens", type=_whole, default=200, help="how many (200)")
    made.add_argument("--temperature", type=_number, default=0.7, help="0: the likeliest (0.7)")
    made.add_argument("--top-k", type=_whole, help="draw from so many of the likeliest")
    made.add_argument("--top-p", type=_number, help="draw from the likeliest of this probability")
    made.add_argument("--seed", type=_seed, help="the same text each time")
    made.add_argument("--tokenizer", type=Path, help="a tokenizer.json from elsewhere")


EXPLAIN = """\
The expression is evaluated as Python code, with Tensor, dtypes and np at hand: do not pass what you
would not run. Shown are its graph, and for each kernel the loops, what shapes them, the program,
the source and the machine code."""
STAGES = ("graph", "kernel", "nest", "program", "source", "machine")


def _explain(made: ArgumentParser) -> None:
    made.add_argument(
        "expression",
        help="Python code such as '(Tensor.rand(64, 64) @ Tensor.rand(64, 64)).sum()'",
    )
    made.add_argument("--only", nargs="+", choices=STAGES, default=list(STAGES), metavar="STAGE",
                      help=f"some of {', '.join(STAGES)}")  # fmt: skip
    made.add_argument("--device", help="for another device: CPU, CLANG, PYTHON")


VIZ = """\
The page shows each graph with the lines that made it, its kernels with their times, and for each
kernel the formula, the loops, the passes, the program, the source and the machine code. It is one
file that needs nothing else. VIZ=1 in the environment writes one for any program when that ends.
Options stand before a script's name: what follows it is the script's."""


def _viz(made: ArgumentParser) -> None:
    made.add_argument("--out", type=Path, metavar="FILE", help="write the page; serve nothing")
    made.add_argument("--port", type=_port, default=0, help="where to serve it (any that is free)")
    made.add_argument("what", help="a Python file, or an expression as for explain")
    made.add_argument("words", nargs=REMAINDER, help="what the file finds in sys.argv")


def _cache(made: ArgumentParser) -> None:
    made.add_argument("action", nargs="?", choices=("show", "prune", "clear"), default="show",
                      help="show (default), prune to --most, or clear")  # fmt: skip
    made.add_argument("--most", type=_megabytes, default=_megabytes("200"), metavar="MB",
                      help="megabytes that prune leaves (200)")  # fmt: skip


def _whole(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise ArgumentTypeError(f"{text!r} is no whole number above 0")
    return int(text)


def _number(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 <= found < float("inf"):
        raise ArgumentTypeError(f"{text!r} is no number from 0 on")
    return found


def _positive(text: str) -> float:
    if not (found := _number(text)):
        raise ArgumentTypeError(f"{text!r} is no number above 0")
    return found


def _seed(text: str) -> int:
    if not text.isdecimal():
        raise ArgumentTypeError(f"{text!r} is no whole number from 0 on")
    return int(text)


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) >= 1 << 16:
        raise ArgumentTypeError(f"{text!r} is no port, a number below 65536")
    return int(text)


def _some(text: str) -> str:
    if not text:
        raise ArgumentTypeError("a prompt has at least one character")
    return text


def _megabytes(text: str) -> int:
    return int(_number(text) * 1e6)


def for_expression(options: Any) -> Any:
    """Options of `viz` that stand behind an expression, which cannot be meant for anything else."""
    found = parser().parse_args(["viz", *options.words, "--", options.what])
    given = {name: getattr(options, name) for name in ("out", "port") if getattr(options, name)}
    return Namespace(**{**vars(found), **given})


def wanted(options: Any, *names: str) -> dict[str, Any]:
    """The options of these names that were given."""
    return {name: value for name in names if (value := getattr(options, name)) is not None}
