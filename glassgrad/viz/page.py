"""Recording -> a self-contained HTML file with data, style and script."""

from __future__ import annotations

import json
from base64 import b64encode
from importlib.resources import files
from typing import Any
from zlib import compress

from glassgrad.devices.registry import Device
from glassgrad.engine.debug import program_listing
from glassgrad.ir.ops import AxisKind
from glassgrad.loops.names import axes_in_order
from glassgrad.viz.artefacts import moves, nest_and_passes
from glassgrad.viz.formula import formulas
from glassgrad.viz.recording import Code, Recording


def page_of(recording: Recording, title: str) -> str:
    """The page as HTML."""
    codes = sorted(recording.codes.values(), key=lambda code: code.number)
    data = {
        "title": title,
        "graphs": recording.graphs,
        "lines": recording.lines.rows,
        "codes": [code_of(code) for code in codes],
        "leftOut": recording.left_out,
        "kinds": {kind.name: kind.name.lower() for kind in AxisKind},
    }
    # A "<" in the data must not end its script element.
    text = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    page = _part("page.html")
    script = _part("page.js") + _part("drawing.js")
    for mark, part in (("STYLE", _part("page.css")), ("SCRIPT", script), ("DATA", text)):
        page = page.replace(f"/*{mark}*/", part)
    return page


def code_of(code: Code) -> dict[str, Any]:
    """A kernel: its name by axes, its runs, and the compressed texts of its stages."""
    machine, source = Device[code.device], code.executable.source
    nest, passes = nest_and_passes(code.kernel, machine)
    texts = {
        "kernel": formulas(code.kernel.body),
        "nest": formulas(nest.body),
        "program": "\n".join(program_listing(source.program.uops)),
        "source": source.text,
    }
    assembly = getattr(code.executable, "assembly", None)
    if assembly is not None:
        texts["machine"] = assembly()
    return {
        "name": source.name,
        "axes": [[int(r.size), r.kind.name] for r in axes_in_order(nest)],
        "recipe": moves(nest),
        "language": machine.target.language,
        "operations": code.operations,
        "bytes": code.bytes,
        "runs": code.runs,
        "fastest": code.fastest,
        "total": code.seconds,
        "texts": {stage: compress_text(text) for stage, text in texts.items()},
        "passes": [[name, seconds, compress_text(text)] for name, seconds, text in passes],
    }


def compress_text(text: str) -> str:
    """Text that the browser decompresses on demand: machine code is long and repetitive."""
    return b64encode(compress(text.encode(), 6)).decode()


def _part(name: str) -> str:
    return files("glassgrad.viz").joinpath(name).read_text(encoding="utf-8")
