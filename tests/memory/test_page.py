"""What docs/memory.md shows is what happens."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from glassgrad.memory import unregister

PAGE = Path(__file__).parents[2] / "docs" / "memory.md"


def test_every_block_of_the_page_runs() -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) == 9
    names: dict[str, Any] = {}
    try:
        for block in blocks:
            exec(compile(block, str(PAGE), "exec"), names)
    finally:
        unregister(names.get("Image", object))
