"""What ARCHITECTURE.md says of files and of the walk is so."""

from __future__ import annotations

import re
from pathlib import Path

from support.compiler.nests import kernel_of
from support.compiler.programs import TARGET

from glassgrad import Tensor
from glassgrad.engine.debug import program_listing
from glassgrad.loops import optimize
from glassgrad.lower import lower

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "glassgrad"
TEXT = (ROOT / "ARCHITECTURE.md").read_text()


def test_every_file_that_is_named_is_there() -> None:
    named = set(re.findall(r"`(?:glassgrad/)?([\w/]+\.py)", TEXT))
    assert len(named) > 80
    missing = [name for name in named if not (PACKAGE / name).is_file()]
    assert not missing


def test_the_links_of_the_page_lead_to_headings() -> None:
    headings = {
        re.sub(r"[^\w -]", "", line.lstrip("# ")).lower().replace(" ", "-")
        for line in TEXT.splitlines()
        if line.startswith("#")
    }
    links = re.findall(r"\]\(#([\w-]+)\)", TEXT)
    assert len(links) > 8
    assert not set(links) - headings


def test_the_program_on_the_page_equals_the_lowered_one() -> None:
    nest = optimize(kernel_of(Tensor([[1, -2, 3], [4, -5, 6]]).relu().sum()), TARGET)
    assert f"`{nest.recipe!r}`" in TEXT and f"`{nest.name}`" in TEXT
    program = [line.strip() for line in program_listing(lower(nest, TARGET).uops)]
    shown = [line.strip() for line in TEXT.splitlines() if re.match(r" {4} ?\d+ [A-Z]+\(", line)]
    assert len(shown) == 7
    assert set(shown) <= set(program)
