"""The text of a few kernels in every language is kept next to this file, to be read in review.

`pytest tests/golden --update-golden` writes the files anew.
"""

from pathlib import Path

import pytest
from support.compiler.golden_kernels import KERNELS, TARGETS, written

SUFFIXES = {"llvm": "ll", "c": "c", "cuda": "cu", "metal": "metal", "opencl": "cl"}
CASES = [(language, kernel) for language in TARGETS for kernel in KERNELS]
FOLDER = Path(__file__).parent


def path_of(language: str, kernel: str) -> Path:
    return FOLDER / language / f"{kernel}.{SUFFIXES[language]}"


@pytest.mark.parametrize(("language", "kernel"), CASES)
def test_a_kernel_is_written_as_before(
    language: str, kernel: str, request: pytest.FixtureRequest
) -> None:
    path, text = path_of(language, kernel), written(kernel, language)
    if request.config.getoption("--update-golden"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert path.exists(), f"{path.name} is new: run pytest tests/golden --update-golden"
    assert text == path.read_text()


def test_no_golden_text_is_left_over() -> None:
    found = {path for path in FOLDER.glob("*/*") if path.parent.name in TARGETS}
    assert found == {path_of(language, kernel) for language, kernel in CASES}
