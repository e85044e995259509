"""Recording -> one HTML file: data, style and script in it; nothing is fetched from anywhere."""

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
from glassgrad.viz.artefacts import moves, shaped
from glassgrad.viz.formula import formulas
from glassgrad.viz.recording import Code, Recording


def page_of(recording: Recording, title: str) -> str:
    """The page, ready to be opened or served."""
    codes = sorted(recording.codes.values(), key=lambda code: code.number)
    data = {
        "title": title,
        "graphs": recording.graphs,
        "lines": recording.lines.rows,
        "codes": [code_of(code) for code in codes],
        "leftOut": recording.left_out,
        "kinds": {kind.name: kind.name.lower() for kind in AxisKind},
    }
    # A "<" in somebody's text must not end the script element that holds the data.
    text = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    page = _part("page.html")
    script = _part("page.js") + _part("drawing.js")
    for mark, part in (("STYLE", _part("page.css")), ("SCRIPT", script), ("DATA", text)):
        page = page.replace(f"/*{mark}*/", part)
    return page


def code_of(code: Code) -> dict[str, Any]:
    """One kernel: its name by axes, its runs, and the texts of its stages, packed."""
    machine, source = Device[code.device], code.executable.source
    nest, passes = shaped(code.kernel, machine)
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
        "texts": {stage: packed(text) for stage, text in texts.items()},
        "passes": [[name, seconds, packed(text)] for name, seconds, text in passes],
    }


def packed(text: str) -> str:
    """Text that browsers unpack when it is looked at: machine code is long and repeats itself."""
    return b64encode(compress(text.encode(), 6)).decode()


def _part(name: str) -> str:
    return files("glassgrad.viz").joinpath(name).read_text(encoding="utf-8")
