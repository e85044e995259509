"""LLVM runs in several threads at once, and its options are restored."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from glassgrad.base.errors import CompileError, DeviceError
from glassgrad.devices.cpu import llvm as module
from glassgrad.devices.cpu.llvm import LLVM_GATE, detect_host, emit, library_path, llvm
from glassgrad.devices.cpu.native import host

DOUBLE = "define i64 @twice(i64 %x) {\n  %y = add i64 %x, %x\n  ret i64 %y\n}\n"
FAR_APART = """
define void @f(ptr %p) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %far = mul i64 %i, 10007
  %at = getelementptr i64, ptr %p, i64 %far
  store i64 0, ptr %at
  %next = add nsw i64 %i, 1
  %more = icmp slt i64 %next, 100
  br i1 %more, label %loop, label %done
done:
  ret void
}
"""


def chain(number: int, steps: int = 300) -> str:
    """A function that takes LLVM a while."""
    lines = [f"  %v{i + 1} = mul i64 %v{i}, {number + i + 3}" for i in range(steps)]
    start = f"define i64 @f{number}(ptr %p) {{\n  %v0 = load volatile i64, ptr %p"
    return "\n".join([start, *lines, f"  ret i64 %v{steps}", "}"])


def assembly(text: str) -> str:
    return emit((text,), host(), 2, is_object=False).decode()


def test_the_machine_is_described_as_llvmlite_describes_it() -> None:
    binding = pytest.importorskip("llvmlite.binding")
    found = detect_host()
    assert found.triple == binding.get_process_triple()
    assert found.cpu == binding.get_host_cpu_name()
    assert found.features == binding.get_host_cpu_features().flatten()
    assert found.version == ".".join(map(str, binding.llvm_version_info))


def test_concurrent_threads_compile_the_same_code() -> None:
    texts = [chain(number) for number in range(24)]
    alone = [emit((text,), host(), 2) for text in texts]
    with ThreadPoolExecutor(4) as threads:
        together = list(threads.map(lambda text: emit((text,), host(), 2), texts))
    assert together == alone
    assert LLVM_GATE.workers == 0


def test_texts_become_one_object() -> None:
    text = emit((DOUBLE, chain(1, 2)), host(), 2, is_object=False).decode()
    assert "twice:" in text and "f1:" in text


def test_two_texts_with_the_same_name_are_refused() -> None:
    with pytest.raises(CompileError, match="link"):
        emit((DOUBLE, DOUBLE), host(), 2)


def test_an_llvm_error_is_a_compile_error_and_the_next_text_compiles() -> None:
    with pytest.raises(CompileError, match="LLVM cannot parse"):
        emit(("define nonsense",), host(), 2)
    assert "twice:" in assembly(DOUBLE)


def test_options_of_llvm_are_restored_for_other_users() -> None:
    """Without the pass that we leave out, this loop multiplies in every round."""
    binding = pytest.importorskip("llvmlite.binding")

    def theirs() -> str:
        target = binding.Target.from_triple(host().triple).create_target_machine(opt=2)
        return str(target.emit_assembly(binding.parse_assembly(FAR_APART)))

    llvm()
    before = theirs()
    assert assembly(FAR_APART).count("mul") > before.count("mul")
    assert theirs() == before


def test_options_stay_until_the_last_thread_leaves() -> None:
    ours = assembly(FAR_APART)
    with LLVM_GATE:
        with LLVM_GATE:
            assert LLVM_GATE.workers == 2
        assert assembly(FAR_APART) == ours


def test_a_fork_waits_for_compiling_threads() -> None:
    order: list[str] = []
    entered = threading.Event()

    def compile_slowly() -> None:
        with LLVM_GATE:
            entered.set()
            emit((chain(0, 3000),), host(), 2)
            order.append("compiled")

    thread = threading.Thread(target=compile_slowly)
    thread.start()
    entered.wait()
    LLVM_GATE.close()
    order.append("alone")
    LLVM_GATE.open()
    thread.join()
    assert order == ["compiled", "alone"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_children_that_are_forked_while_threads_compile_can_compile() -> None:
    script = (
        "import os, threading\n"
        "from test_llvm import chain, emit, host\n"
        "def work():\n"
        "    for number in range(40): emit((chain(number),), host(), 2)\n"
        "threads = [threading.Thread(target=work) for _ in range(3)]\n"
        "for thread in threads: thread.start()\n"
        "for _ in range(8):\n"
        "    child = os.fork()\n"
        "    if not child:\n"
        "        emit((chain(7),), host(), 2)\n"
        "        os._exit(0)\n"
        "    assert os.waitpid(child, 0)[1] == 0\n"
        "for thread in threads: thread.join()\n"
    )
    paths = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    environment = os.environ | {"PYTHONPATH": paths, "PYTHONWARNINGS": "ignore"}
    done = subprocess.run([sys.executable, "-c", script], env=environment, timeout=120, check=False)
    assert done.returncode == 0


def test_a_missing_llvmlite_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing: Any = lambda name: None  # noqa: E731
    monkeypatch.setattr(module, "find_spec", nothing)
    with pytest.raises(DeviceError, match="needs llvmlite"):
        library_path()


def test_a_missing_library_is_explained(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(module, "library_path", lambda: str(tmp_path / "libllvmlite.so"))
    with pytest.raises(DeviceError, match="cannot be used"):
        llvm.__wrapped__()
