"""export: errors for what a file cannot hold; a shared object is called from C."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from glassgrad import Context, Tensor, TinyJit, Variable, export
from glassgrad.base.errors import CaptureError, DeviceError

ON_COMPILED_BACKEND = True
C_COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
needs_c = pytest.mark.skipif(C_COMPILER is None, reason="there is no C compiler here")


def numbers(*shape: int, seed: int = 0) -> Tensor:
    return Tensor(np.random.default_rng(seed).standard_normal(shape, np.float32)).realize()


def captured(function: Any, *args: Any) -> TinyJit[..., Any]:
    made = TinyJit(function)
    for _ in range(2):
        made(*args)
    return made


# ---------------------------------------------------------------------- mistakes


def test_only_captured_functions_can_be_exported(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match=r"(?s)not a function.*@TinyJit"):
        export(lambda x: x, tmp_path / "f.glass")  # type: ignore[arg-type]
    once = TinyJit(lambda x: x + 1)
    once(numbers(3))
    with pytest.raises(CaptureError, match="has not been captured yet"):
        export(once, tmp_path / "f.glass")
    assert not list(tmp_path.iterdir())


class Point(NamedTuple):
    x: Tensor


def test_results_that_cannot_be_serialized_are_refused(tmp_path: Path) -> None:
    for function in (lambda x: Point(x + 1), lambda x: (x + 1, {3: x}), lambda x: [x + 1, {1, 2}]):
        with pytest.raises(CaptureError, match="a file cannot hold it"):
            export(captured(function, numbers(3)), tmp_path / "f.glass")


def test_arguments_that_exist_only_here_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match="another process has no such object"):
        export(captured(lambda x, f: f(x), numbers(3), lambda x: x + 1), tmp_path / "f.glass")


def test_state_that_the_function_does_not_touch_is_refused(tmp_path: Path) -> None:
    function = captured(lambda x: x + 1, numbers(3))
    with pytest.raises(CaptureError, match=r"state 'w', of shape \(4,\), is nothing that"):
        export(function, tmp_path / "f.glass", state={"w": numbers(4)})


def test_memory_that_is_written_and_read_through_another_tensor_is_refused(tmp_path: Path) -> None:
    array = np.ones(4, np.float32)
    one, two = Tensor.from_memory(array), Tensor.from_memory(array[:2])
    function = captured(lambda x: (one.assign(one + x).realize(), two * 2), numbers(4))
    with pytest.raises(CaptureError, match="a file would have it twice"):
        export(function, tmp_path / "f.glass")


# ---------------------------------------------------------------------- from C

PROGRAM = """
#include <stdio.h>
#include <string.h>
#include "step.h"

int main(void) {
    float x[6] = {1, -2, 3, -4, 5, -6}, out_0[3], out_1[4];
    int64_t index[2] = {0, 2};
    int64_t bad[2] = {0, 3};
    step_threads(2);
    for (int n = 0; n < 3; n++) {
        if (step(x, index, out_0, out_1)) return 1;
        printf("%a %a %a %a %a %a %a\\n", out_0[0], out_0[1], out_0[2],
               out_1[0], out_1[1], out_1[2], out_1[3]);
    }
    float *total = step_state("total");
    printf("%a %a %a\\n", total[0], total[1], total[2]);
    printf("%d\\n", step_state("nothing") == NULL);
    printf("%d %s\\n", step(x, bad, out_0, out_1), step_error());
    printf("%d\\n", step(x, index, out_0, out_1));
    return 0;
}
"""


def run_c(folder: Path, program: str) -> list[str]:
    (folder / "main.c").write_text(program)
    command = [C_COMPILER, "-Wall", "-Werror", "main.c", "./step.so", "-o", "main", "-lm"]
    subprocess.run(command, cwd=folder, check=True)
    done = subprocess.run(["./main"], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def line(*arrays: Any) -> str:
    values = np.concatenate([np.ravel(array) for array in arrays]).astype(np.float64)
    return " ".join(map(_as_c, values))


def _as_c(value: float) -> str:
    """What printf's %a writes."""
    mantissa, power = float(value).hex().split("p")
    return f"{mantissa.rstrip('0').rstrip('.') if '.' in mantissa else mantissa}p{power}"


@needs_c
def test_a_small_c_program_calls_a_shared_object(tmp_path: Path) -> None:
    total = Tensor.zeros(3).contiguous().realize()

    @TinyJit
    def step(x: Tensor, index: Tensor) -> tuple[Tensor, Tensor]:
        total.assign(total + x.sum(0))
        return total, x[:, index].reshape(4).exp()

    x = Tensor(np.array([[1, -2, 3], [-4, 5, -6]], np.float32))
    index = Tensor(np.array([0, 2]))
    for _ in range(2):
        step(x, index)
    export(step, tmp_path / "step.so", state={"total": total})
    assert "int step(const float *x, const int64_t *index, float *out_0, float *out_1);" in (
        (tmp_path / "step.h").read_text()
    )
    wanted = []
    for _ in range(3):
        sums, picked = step(x, index)
        wanted.append(line(sums.numpy(), picked.numpy()))
    wanted += [line(total.numpy()), "1"]
    found = run_c(tmp_path, PROGRAM)
    assert found[:5] == wanted
    assert found[5].startswith("2 index 3 is out of range for axis 1 of size 3 (")
    assert found[6:] == ["0"]
    assert sorted(one.name for one in tmp_path.iterdir()) == ["main", "main.c", "step.h", "step.so"]


SIZES = """
#include <stdio.h>
#include "step.h"

int main(void) {
    float x[8] = {1, 2, 3, 4, 5, 6, 7, 8}, out[8];
    for (int n = 1; n <= 8; n += 3) {
        if (step(x, n, out)) return 1;
        for (int i = 0; i < n; i++) printf("%g ", out[i]);
        printf("\\n");
    }
    printf("%d %s\\n", step(x, 9, out), step_error());
    return 0;
}
"""


@needs_c
def test_sizes_are_arguments_in_c(tmp_path: Path) -> None:
    n = Variable("n", 1, 8)

    @TinyJit
    def step(x: Tensor, n: Any) -> Tensor:
        return x[:n] * 2

    for value in (2, 3):
        step(numbers(8), n.bind(value))
    export(step, tmp_path / "step.so")
    assert run_c(tmp_path, SIZES) == ["2 ", "2 4 6 8 ", "2 4 6 8 10 12 14 ", "3 n is from 1 to 8"]


CUTS = """
#include <stdio.h>
#include "step.h"

int main(void) {
    float x[8] = {1, 2, 3, 4, 5, 6, 7, 8}, out[3];
    for (int at = 0; at <= 6; at += 2) {
        if (step(x, at, out)) printf("%s\\n", step_error());
        else printf("%g %g %g\\n", out[0], out[1], out[2]);
    }
    return 0;
}
"""


@needs_c
def test_slices_that_fit_for_some_sizes_only_are_checked_in_c(tmp_path: Path) -> None:
    at = Variable("at", 0, 7)

    @TinyJit
    def step(x: Tensor, at: Any) -> Tensor:
        return x[at : at + 3] * 2

    for value in (2, 3):
        step(numbers(8), at.bind(value))
    export(step, tmp_path / "step.so")
    *found, error = run_c(tmp_path, CUTS)
    assert found == ["2 4 6", "6 8 10", "10 12 14"]
    assert error.startswith("slice is out of range for axis 0 (")


RANDOM = """
#include <stdio.h>
#include "step.h"

int main(void) {
    double out[2];
    step_seed(7);
    for (int n = 0; n < 3; n++) {
        if (step(out)) return 1;
        printf("%a %a\\n", out[0], out[1]);
    }
    return 0;
}
"""


@needs_c
def test_random_numbers_in_c_are_those_of_the_seed(tmp_path: Path) -> None:
    @TinyJit
    def step() -> Tensor:
        return Tensor.rand(2, dtype="float64") + 0

    for _ in range(2):
        step()
    export(step, tmp_path / "step.so")
    Tensor.manual_seed(7)
    wanted = [line(step().numpy()) for _ in range(3)]
    assert run_c(tmp_path, RANDOM) == wanted


@needs_c
def test_two_libraries_in_one_process_do_not_meet(tmp_path: Path) -> None:
    import ctypes

    for name, factor in (("one", 2.0), ("two", 3.0)):
        function = captured(lambda x, factor=factor: x * factor, numbers(4))
        function.__name__ = "scale"  # type: ignore[attr-defined]
        export(function, tmp_path / f"{name}.so")
    x = (ctypes.c_float * 4)(1, 2, 3, 4)
    out = (ctypes.c_float * 4)()
    for name, factor in (("one", 2), ("two", 3)):
        library = ctypes.CDLL(str(tmp_path / f"{name}.so"), mode=ctypes.RTLD_GLOBAL)
        assert library.scale(x, out) == 0
        assert list(out) == [factor * n for n in (1, 2, 3, 4)]


@needs_c
def test_names_that_c_has_taken_get_another_letter(tmp_path: Path) -> None:
    @TinyJit
    def run(table: Tensor, words: list[Tensor]) -> Tensor:
        return table + words[0]

    for _ in range(2):
        run(numbers(2), [numbers(2)])
    export(run, tmp_path / "step.so")
    header = (tmp_path / "step.h").read_text()
    assert "int run_(const float *table_, const float *words_0, float *out);" in header


class Scaler:
    @TinyJit
    @Context(DEBUG=0)
    def scale(self, out: Tensor, *more: Tensor) -> Tensor:
        return out + more[0] * more[1]


@needs_c
def test_arguments_are_called_in_c_as_in_python(tmp_path: Path) -> None:
    scaler = Scaler()
    for _ in range(2):
        scaler.scale(numbers(2), numbers(2), numbers(2))
    export(scaler.scale, tmp_path / "step.so")
    header = (tmp_path / "step.h").read_text()
    wanted = "int scale(const float *out, const float *more, const float *x2, float *out_);"
    assert wanted in header


def test_c_takes_one_capture_only(tmp_path: Path) -> None:
    function = TinyJit(lambda x, k: x * k)
    for k in (1, 1, 2, 2):
        function(numbers(3), k)
    with pytest.raises(CaptureError, match=r"captured 2 times.*tensor, 1\) or .*tensor, 2\)"):
        export(function, tmp_path / "step.so")


def test_without_a_c_compiler_there_is_no_shared_object(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    function = captured(lambda x: x + 1, numbers(3))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DeviceError, match="exporting a shared object needs a C compiler"):
        export(function, tmp_path / "step.so")


@needs_c
def test_strided_results_are_refused(tmp_path: Path) -> None:
    weight = Tensor.from_memory(np.ones((3, 2), np.float32).T)
    function = captured(lambda x: (x + weight.sum(), weight), numbers(3))
    with pytest.raises(CaptureError, match="strided view, but C functions"):
        export(function, tmp_path / "step.so")


ALONE = """
import ctypes, hashlib, sys
library = ctypes.CDLL(sys.argv[1])
library.product_threads(int(sys.argv[2]))
x = (ctypes.c_float * (256 * 384)).from_buffer_copy(open(sys.argv[3], "rb").read())
out = (ctypes.c_float * (256 * 512))()
for _ in range(20):
    assert library.product(x, out) == 0
print(hashlib.sha256(bytes(out)).hexdigest())
"""


@needs_c
def test_a_shared_object_works_on_several_cores(tmp_path: Path) -> None:
    weight = numbers(384, 512, seed=1)

    @TinyJit
    def product(x: Tensor) -> Tensor:
        return (x @ weight).relu()

    x = numbers(256, 384)
    for _ in range(2):
        result = product(x)
    export(product, tmp_path / "product.so")
    (tmp_path / "x").write_bytes(x.numpy().tobytes())
    wanted = hashlib.sha256(result.numpy().tobytes()).hexdigest()
    for threads in ("1", "2", "5"):
        command = [sys.executable, "-S", "-c", ALONE, "./product.so", threads, "x"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        assert done.stdout.strip() == wanted
