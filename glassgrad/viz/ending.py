"""VIZ=1: at exit, writes a page about everything that the program computed."""

from __future__ import annotations

import atexit
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from glassgrad.viz.recording import Recording, record


def watch() -> None:
    """Record from now to the end of the program."""
    stack = ExitStack()
    recording = stack.enter_context(record())
    atexit.register(_end, stack, recording)


def _end(stack: ExitStack, recording: Recording) -> None:
    from glassgrad.viz.page import page_of

    stack.close()
    if recording.graphs:
        name = Path(sys.argv[0]).stem or "python"
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", prefix=f"glassgrad-{name}-", suffix=".html", delete=False
        ) as file:
            file.write(page_of(recording, Path(sys.argv[0]).name))
        print(f"open {file.name} in a browser", file=sys.stderr)
