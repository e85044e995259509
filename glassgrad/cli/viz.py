"""`glassgrad viz`: a page about everything that a script or an expression computes."""

from __future__ import annotations

import runpy
import sys
import traceback
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from glassgrad.cli.arguments import for_expression
from glassgrad.cli.explain import evaluate
from glassgrad.viz.page import page_of
from glassgrad.viz.recording import record
from glassgrad.viz.serve import HOST, server_of


def run(options: Namespace) -> int:
    is_file = options.what.endswith(".py") or Path(options.what).is_file()
    options = options if is_file else for_expression(options)
    with record() as recording:
        if is_file:
            code = run_script(options.what, options.words)
        else:
            code = 0
            evaluate(options.what).realize()
    page = page_of(recording, options.what)
    if options.out is not None:
        options.out.write_text(page, encoding="utf-8")
        print(f"open {options.out} in a browser")
        return code
    with server_of(page, options.port) as server:
        print(f"serving http://{HOST}:{server.server_port}/   (Ctrl-C to stop)", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print()
    return code


def run_script(path: str, arguments: Sequence[str]) -> int:
    """Run a file as Python would; if it fails, the page shows what it computed before."""
    if not Path(path).is_file():
        raise FileNotFoundError(2, "there is no such file", path)
    before, path_before = sys.argv, sys.path[:]
    sys.argv = [path, *arguments]
    sys.path.insert(0, str(Path(path).resolve().parent))
    try:
        runpy.run_path(path, run_name="__main__")
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except Exception:  # noqa: BLE001 - an error of the script, reported as by Python
        traceback.print_exc()
        return 1
    finally:
        sys.argv, sys.path[:] = before, path_before
    return 0
