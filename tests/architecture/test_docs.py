"""Files that the documentation names are there, and its links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "glassgrad"
FOLDERS = "|".join(sorted(path.name for path in PACKAGE.iterdir() if path.is_dir()))
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_and_links_are_there(page: Path) -> None:
    text = page.read_text()
    inside = re.findall(rf"`(?:glassgrad/)?((?:{FOLDERS})/[\w/]+\.py)`", text)
    beside = re.findall(r"`((?:tests|bench|examples|docs)/[\w/]+\.\w+)`", text)
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)(?:#[^)]*)?\)", text)
    wanted = [PACKAGE / name for name in inside] + [ROOT / name for name in beside]
    wanted += [page.parent / link for link in links]
    assert [path for path in wanted if not path.exists()] == []
