"""The commands, their options, and their help texts."""

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

  glassgrad train                         train on the source of Python's standard library
  glassgrad train novels/ --minutes 10    train on any text file or folder
  glassgrad generate run "class"          generate text with the trained model
  glassgrad explain "Tensor([1., -2.]).relu().sum()"
                                          show every stage from an expression to machine code
  glassgrad viz train.py                  run a script and show what it computed in a browser
"""
EPILOG = "See `glassgrad COMMAND --help`. Settings such as DEBUG=2 are read from the environment."


def parser() -> ArgumentParser:
    """The parser of the command line."""
    arguments = ArgumentParser(
        "glassgrad",
        description=ABOUT,
        epilog=EPILOG,
        formatter_class=RawDescriptionHelpFormatter,
    )
    arguments.add_argument("--version", action="version", version=f"glassgrad {__version__}")
    commands = arguments.add_subparsers(dest="command", metavar="COMMAND", required=True)

    def command(name: str, summary: str, details: str = "") -> ArgumentParser:
        return commands.add_parser(
            name,
            help=summary,
            description=f"{summary[0].upper()}{summary[1:]}.\n\n{details}".rstrip(),
            formatter_class=RawDescriptionHelpFormatter,
        )

    _train(command("train", "train a small GPT on text", TRAIN))
    _generate(command("generate", "generate text with a model", GENERATE))
    _explain(command("explain", "show every stage of one expression", EXPLAIN))
    _viz(command("viz", "show what a script or an expression computes, in a browser", VIZ))
    command("devices", "list the available devices")
    bench = command("bench", "benchmark this machine, compared with NumPy")
    bench.add_argument("--quick", action="store_true", help="less precise, takes a few seconds")
    _cache(command("cache", "show, prune or clear the cache of compiled kernels"))
    return arguments


TRAIN = """\
Trains a byte-pair tokenizer and a model that predicts the next token. Everything is written to one
folder. Ctrl-C saves and stops; `glassgrad train --resume run` continues."""


def _train(arguments: ArgumentParser) -> None:
    arguments.add_argument(
        "text", nargs="*", type=Path, help="files or folders (default: Python's standard library)"
    )
    arguments.add_argument(
        "--files",
        default="*",
        metavar="PATTERN",
        help="pattern of the files to read in folders, such as '*.txt'",
    )
    arguments.add_argument(
        "--out", type=Path, default=Path("run"), help="output folder (default: run)"
    )
    arguments.add_argument("--resume", type=Path, metavar="FOLDER", help="continue an earlier run")
    arguments.add_argument(
        "--model", default="nano", help="model size: nano, llama-nano, small, gpt2 (default: nano)"
    )
    arguments.add_argument(
        "--vocab", type=_positive_int, default=1024, help="vocabulary size (default: 1024)"
    )
    arguments.add_argument(
        "--context", type=_positive_int, help="context length in tokens (default: the model's)"
    )
    arguments.add_argument(
        "--layers", type=_positive_int, help="number of layers (default: the model's)"
    )
    length = arguments.add_mutually_exclusive_group()
    length.add_argument("--steps", type=_positive_int, help="number of steps (default: 1000)")
    length.add_argument("--minutes", type=_positive_float, help="training time in minutes")
    arguments.add_argument("--batch", type=_positive_int, default=8, help="batch size (default: 8)")
    arguments.add_argument(
        "--rate", type=_positive_float, default=3e-3, help="learning rate (default: 0.003)"
    )
    arguments.add_argument(
        "--seed", type=_nonnegative_int, default=0, help="random seed (default: 0)"
    )
    arguments.add_argument(
        "--prompt",
        type=_nonempty,
        default="def",
        help="at the end, print a sample that starts with this text",
    )


GENERATE = """\
The model is a folder written by `glassgrad train`, a folder from Hugging Face (config.json,
*.safetensors, tokenizer.json), or a .gguf file of the GPT-2 or Llama family."""


def _generate(arguments: ArgumentParser) -> None:
    arguments.add_argument("model", type=Path, help="a folder, or a .gguf file")
    arguments.add_argument(
        "prompt", nargs="?", type=_nonempty, default="def", help="start of the text (default: def)"
    )
    arguments.add_argument(
        "--tokens",
        type=_positive_int,
        default=200,
        help="number of tokens to generate (default: 200)",
    )
    arguments.add_argument(
        "--temperature",
        type=_nonnegative_float,
        default=0.7,
        help="sampling temperature; 0 is greedy (default: 0.7)",
    )
    arguments.add_argument(
        "--top-k", type=_positive_int, help="sample from the k most likely tokens"
    )
    arguments.add_argument(
        "--top-p",
        type=_nonnegative_float,
        help="sample from the most likely tokens with this total probability",
    )
    arguments.add_argument(
        "--seed", type=_nonnegative_int, help="random seed, for reproducible text"
    )
    arguments.add_argument("--tokenizer", type=Path, help="path of another tokenizer.json")


EXPLAIN = """\
The expression is evaluated as Python code with the names Tensor, dtypes and np, so pass only code
that you trust. Prints its graph, and for each kernel the loops, the loop moves, the program, the
source and the machine code."""
STAGES = ("graph", "kernel", "nest", "program", "source", "machine")


def _explain(arguments: ArgumentParser) -> None:
    arguments.add_argument(
        "expression",
        help="Python code such as '(Tensor.rand(64, 64) @ Tensor.rand(64, 64)).sum()'",
    )
    arguments.add_argument(
        "--only",
        nargs="+",
        choices=STAGES,
        default=list(STAGES),
        metavar="STAGE",
        help=f"print only these stages: {', '.join(STAGES)}",
    )
    arguments.add_argument("--device", help="the device to compile for: CPU, CLANG, PYTHON")


VIZ = """\
The page shows each graph with the source lines that created it, its kernels with their times, and
for each kernel the formula, the loops, the passes, the program, the source and the machine code. It
is a self-contained file. With VIZ=1 in the environment, any program writes such a page at exit.
Options must precede the name of a script; what follows it is passed to the script."""


def _viz(arguments: ArgumentParser) -> None:
    arguments.add_argument(
        "--out", type=Path, metavar="FILE", help="write the page to a file instead of serving it"
    )
    arguments.add_argument(
        "--port", type=_port, default=0, help="port of the server (default: any free port)"
    )
    arguments.add_argument("what", help="a Python file, or an expression as for explain")
    arguments.add_argument("words", nargs=REMAINDER, help="arguments of the script (sys.argv)")


def _cache(arguments: ArgumentParser) -> None:
    arguments.add_argument("action", nargs="?", choices=("show", "prune", "clear"), default="show",
                      help="show (default), prune to the size of --most, or clear")  # fmt: skip
    arguments.add_argument("--most", type=_megabytes, default=_megabytes("200"), metavar="MB",
                      help="size in megabytes after prune (default: 200)")  # fmt: skip


def _positive_int(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def _nonnegative_float(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 <= found < float("inf"):
        raise ArgumentTypeError(f"{text!r} is not a number of at least 0")
    return found


def _positive_float(text: str) -> float:
    if not (found := _nonnegative_float(text)):
        raise ArgumentTypeError(f"{text!r} is not a number above 0")
    return found


def _nonnegative_int(text: str) -> int:
    if not text.isdecimal():
        raise ArgumentTypeError(f"{text!r} is not a whole number of at least 0")
    return int(text)


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) >= 1 << 16:
        raise ArgumentTypeError(f"{text!r} is not a port, a number below 65536")
    return int(text)


def _nonempty(text: str) -> str:
    if not text:
        raise ArgumentTypeError("the prompt must not be empty")
    return text


def _megabytes(text: str) -> int:
    return int(_nonnegative_float(text) * 1e6)


def for_expression(options: Any) -> Any:
    """Options of `viz` after an expression, which takes no arguments of its own."""
    found = parser().parse_args(["viz", *options.words, "--", options.what])
    given = {name: getattr(options, name) for name in ("out", "port") if getattr(options, name)}
    return Namespace(**{**vars(found), **given})


def given_options(options: Any, *names: str) -> dict[str, Any]:
    """The options of these names that were given."""
    return {name: value for name in names if (value := getattr(options, name)) is not None}
