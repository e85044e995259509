"""The examples of docs/captures.md and docs/variables.md."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parents[2] / "docs"
ON_COMPILED_BACKEND = True


@pytest.mark.parametrize(("page", "count"), [("captures.md", 4), ("variables.md", 3)])
def test_every_block_of_the_page_runs(
    page: str, count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)
    assert len(blocks) == count
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, page, "exec"), names)
