"""`glassgrad viz`: a script or an expression -> a page about everything that it computed."""

from __future__ import annotations

import runpy
import sys
import traceback
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from glassgrad.cli.arguments import for_expression
from glassgrad.cli.explain import evaluated
from glassgrad.viz.page import page_of
from glassgrad.viz.recording import recorded
from glassgrad.viz.serve import HOST, server_of


def run(options: Namespace) -> int:
    is_file = options.what.endswith(".py") or Path(options.what).is_file()
    options = options if is_file else for_expression(options)
    with recorded() as recording:
        if is_file:
            code = run_script(options.what, options.words)
        else:
            code = 0
            evaluated(options.what).realize()
    page = page_of(recording, options.what)
    if options.out is not None:
        options.out.write_text(page, encoding="utf-8")
        print(f"open {options.out} in a browser")
        return code
    with server_of(page, options.port) as server:
        print(f"look at http://{HOST}:{server.server_port}/   (Ctrl-C ends it)", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print()
    return code


def run_script(path: str, words: Sequence[str]) -> int:
    """Run a file as Python would; if it fails, what it did before is shown all the same."""
    if not Path(path).is_file():
        raise FileNotFoundError(2, "there is no such file", path)
    before, places = sys.argv, sys.path[:]
    sys.argv = [path, *words]
    sys.path.insert(0, str(Path(path).resolve().parent))
    try:
        runpy.run_path(path, run_name="__main__")
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except Exception:  # noqa: BLE001 - it is the script's, and reported as Python would
        traceback.print_exc()
        return 1
    finally:
        sys.argv, sys.path[:] = before, places
    return 0
