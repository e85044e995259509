"""`glassgrad …` or `python -m glassgrad …`: parses the command line and runs a command."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from io import TextIOWrapper

from glassgrad.base.errors import GlassgradError
from glassgrad.cli.arguments import parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # terminals without a character show another one
            stream.reconfigure(errors="replace")
    options = parser().parse_args(argv)
    try:
        # Commands are imported on demand, so `--help` is fast.
        command = import_module(f"glassgrad.cli.{options.command}")
        return int(command.run(options))
    except GlassgradError as error:
        hint = f"\n  hint: {error.hint}" if error.hint else ""
        print(f"glassgrad: {error.message}{hint}", file=sys.stderr)
    except FileNotFoundError as error:
        print(f"glassgrad: no such file or folder: {error.filename}", file=sys.stderr)
    except BrokenPipeError:  # the reader of our output has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        print(f"glassgrad: {error.filename or 'the system'}: {error.strerror}", file=sys.stderr)
    except KeyboardInterrupt:
        return 130
    return 1
