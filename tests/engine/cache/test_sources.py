"""Sources on disk: a kernel that was lowered once is not lowered again."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from support.compiler.schedules import TARGET, memory, planned

import glassgrad
from glassgrad.base.config import Context
from glassgrad.base.events import listen
from glassgrad.engine.cache.sources import (
    code_version,
    kernel_text,
    load_source,
    source_key,
    store_source,
    target_key,
)
from glassgrad.engine.pipeline import write_source
from glassgrad.ir.stages import Kernel


def kernel(*shape: int, factor: float = 2.0) -> Kernel:
    x = memory(*shape)
    return planned((x * x.const_like(factor)).sum(1)).kernels[0]


def test_equal_kernels_have_equal_texts() -> None:
    assert kernel_text(kernel(8, 16)) == kernel_text(kernel(8, 16))
    others = [kernel(8, 17), kernel(8, 16, factor=-2.0), kernel(8, 16, factor=2.5)]
    assert len({kernel_text(found) for found in (kernel(8, 16), *others)}) == 4


def test_keys_depend_on_machine_and_policy() -> None:
    found = kernel(8, 16)
    wide = replace(TARGET, vector_bytes=64)
    names = {
        source_key(found, TARGET, "a"),
        source_key(found, wide, "a"),
        source_key(found, TARGET, "b"),
    }
    assert len(names) == 3


def test_keys_depend_on_every_file_of_the_package() -> None:
    package = Path(glassgrad.__file__).parent
    version = code_version()
    files = [str(file.relative_to(package)) for file in package.rglob("*.py")]
    assert len(files) > 400
    assert not [file for file in files if f"{file} " not in version]


def test_a_stored_source_is_loaded() -> None:
    source = write_source(kernel(8, 16), TARGET)
    name = source_key(kernel(8, 16), TARGET, "test")
    assert load_source(name) is None
    store_source(name, source)
    found = load_source(name)
    assert found is not None
    assert (found.name, found.text, found.language) == (source.name, source.text, source.language)
    assert replace(found.program, uops=source.program.uops) == source.program


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"name": 3}'])
def test_a_damaged_source_is_a_cache_miss(damage: bytes) -> None:
    from glassgrad.devices.cpu.object_cache import write_object

    name = source_key(kernel(8, 16), TARGET, f"damaged {damage!r}")
    assert name is not None
    write_object(name, damage)
    assert load_source(name) is None


def test_listeners_disable_the_cache_of_sources() -> None:
    with listen(lambda event: None):
        assert source_key(kernel(8, 16), TARGET, "a") is None
    with Context(DEBUG=3):
        assert source_key(kernel(8, 16), TARGET, "a") is None
    assert source_key(kernel(8, 16), replace(TARGET, language="python"), "a") is None


def test_target_keys_are_equal_in_every_process() -> None:
    code = (
        "from glassgrad.engine.cache.sources import target_key\n"
        "from glassgrad.ir.stages import *\n"
        "from glassgrad.ir.ops import Ops\n"
        "print(target_key(Target('x', 'c', native=frozenset((Ops.SIN, Ops.EXP2, Ops.POW)))))"
    )
    texts = set()
    for seed in ("1", "2", "3"):
        made = subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            text=True,
        )
        texts.add(made.stdout)
    assert len(texts) == 1
    assert target_key(TARGET) == target_key(replace(TARGET))


def test_a_second_process_does_not_import_the_compiler() -> None:
    code = (
        "import sys; from glassgrad import Tensor\n"
        "x = Tensor([[1., 2.], [3., 4.]]); y = (x @ x).softmax(1).sum().item()\n"
        "stages = [f'glassgrad.{stage}' in sys.modules for stage in ('loops', 'lower', 'render')]\n"
        "print(*stages, round(y, 3))"
    )
    made = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
        for _ in range(2)
    ]
    first, second = (found.stdout.split() for found in made)
    assert first == ["True", "True", "True", "2.0"]
    assert second == ["False", "False", "False", "2.0"]
