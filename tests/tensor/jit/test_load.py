"""load: an exported function computes the same in another process."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from glassgrad import Tensor, TinyJit, Variable, export, load, nn
from glassgrad.base.errors import CaptureError, DeviceError
from glassgrad.engine.export import serialize as packing
from glassgrad.nn import optim, state

ON_COMPILED_BACKEND = True


def numbers(*shape: int, seed: int = 0) -> Tensor:
    return Tensor(np.random.default_rng(seed).standard_normal(shape, np.float32)).realize()


def there_and_back(function: Any, path: Path, *calls: tuple[Any, ...], **kwargs: Any) -> Any:
    """Capture with these calls, two times each; export; load."""
    captured = TinyJit(function)
    for call in calls:
        for _ in range(2):
            captured(*call)
    export(captured, path / "f.glass", **kwargs)
    return load(path / "f.glass")


def test_the_results_are_the_same_bit_for_bit(tmp_path: Path) -> None:
    def f(x: Tensor, y: Tensor) -> dict[str, Any]:
        return {"a": (x @ y).softmax(), "b": [x.sum(0), (x.exp() + 2).mean(), "text", None, 3]}

    loaded = there_and_back(f, tmp_path, (numbers(5, 6), numbers(6, 7)))
    for seed in range(20):
        x, y = numbers(5, 6, seed=seed), numbers(6, 7, seed=seed + 100)
        found, wanted = loaded(x, y), f(x, y)
        assert found["a"].numpy().tobytes() == wanted["a"].numpy().tobytes()
        for one, other in zip(found["b"][:2], wanted["b"][:2], strict=True):
            assert one.numpy().tobytes() == other.numpy().tobytes()
        assert found["b"][2:] == ["text", None, 3]


PROCESS = """
import sys
import numpy as np
from glassgrad import Tensor, load
from glassgrad.devices.cpu import native

def refuse(*args, **kwargs):
    raise AssertionError("something was compiled")

native.emit = refuse
loaded = load(sys.argv[1])
Tensor.manual_seed(5)
for seed in range(3):
    rng = np.random.default_rng(seed)
    x = Tensor(rng.standard_normal((8, 6)).astype(np.float32))
    y = Tensor(rng.integers(0, 4, 8).astype(np.int32))
    print(loaded(x, y).item().hex())
print(loaded.state["a.weight"].numpy().tobytes().hex())
stages = ("schedule", "loops", "lower", "render", "engine.pipeline", "engine.compiling")
print([name for name in sys.modules if name.startswith(tuple(f"glassgrad.{s}" for s in stages))])
"""


class Net:
    def __init__(self) -> None:
        self.a, self.b = nn.Linear(6, 16), nn.Linear(16, 4)

    def __call__(self, x: Tensor) -> Tensor:
        return self.b(self.a(x).relu().dropout(0.2))


def test_training_goes_on_in_a_process_without_the_compiler(tmp_path: Path) -> None:
    Tensor.manual_seed(2)
    net = Net()
    optimiser = optim.AdamW(state.get_parameters(net), lr=0.01)

    @TinyJit
    def step(x: Tensor, y: Tensor) -> Tensor:
        optimiser.zero_grad()
        loss = net(x).sparse_categorical_crossentropy(y)
        loss.backward()
        optimiser.step()
        return loss

    def batch(seed: int) -> tuple[Tensor, Tensor]:
        rng = np.random.default_rng(seed)
        x = rng.standard_normal((8, 6)).astype(np.float32)
        return Tensor(x), Tensor(rng.integers(0, 4, 8).astype(np.int32))

    path = tmp_path / "step.glass"
    with Tensor.train():
        for seed in range(2):
            step(*batch(seed))
        export(step, path, state=state.get_state_dict(net))
        Tensor.manual_seed(5)
        wanted = [step(*batch(seed)).item().hex() for seed in range(3)]
    wanted += [net.a.weight.numpy().tobytes().hex(), "[]"]
    command = [sys.executable, "-c", PROCESS, str(path)]
    without_cache = os.environ | {"CACHELEVEL": "0"}
    done = subprocess.run(command, env=without_cache, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[:-1] == wanted


def test_writes_to_state_are_read_by_the_function(tmp_path: Path) -> None:
    weight = numbers(4)
    loaded = there_and_back(lambda x: x * weight, tmp_path, (numbers(4),), state={"w": weight})
    x = numbers(4, seed=3)
    np.testing.assert_array_equal(loaded(x).numpy(), x.numpy() * weight.numpy())
    loaded.state["w"].assign(Tensor([1.0, 2.0, 3.0, 4.0]))
    np.testing.assert_array_equal(loaded(x).numpy(), x.numpy() * [1, 2, 3, 4])


def test_two_loaded_functions_have_memory_of_their_own(tmp_path: Path) -> None:
    total = Tensor.zeros(3).contiguous().realize()

    def add(x: Tensor) -> Tensor:
        return total.assign(total + x)

    one = there_and_back(add, tmp_path, (Tensor([1.0, 1.0, 1.0]),), state={"total": total})
    two = load(tmp_path / "f.glass")
    start = total.numpy().copy()
    first = [one(Tensor([1.0, 2.0, 3.0])).numpy().copy() for _ in range(3)]
    np.testing.assert_array_equal(first[-1], start + [3, 6, 9])
    np.testing.assert_array_equal(two(Tensor([1.0, 2.0, 3.0])).numpy(), start + [1, 2, 3])
    np.testing.assert_array_equal(one.state["total"].numpy(), start + [3, 6, 9])


def test_variables_are_bound_at_each_call(tmp_path: Path) -> None:
    n = Variable("n", 1, 16)
    x = numbers(16, 3)
    loaded = there_and_back(
        lambda x, n: (x[:n].sum(0), x[:n] * 2), tmp_path, (x, n.bind(3)), (x, n.bind(5))
    )
    for value in (1, 7, 16):
        total, rows = loaded(x, n.bind(value))
        np.testing.assert_allclose(total.numpy(), x.numpy()[:value].sum(0), rtol=1e-5)
        np.testing.assert_array_equal(rows.numpy(), x.numpy()[:value] * 2)


def test_a_slice_that_fits_for_some_values_only_is_checked_at_each_call(tmp_path: Path) -> None:
    at, x = Variable("at", 0, 7), numbers(8, 3)
    loaded = there_and_back(
        lambda x, at: x[at : at + 3] * 2, tmp_path, (x, at.bind(0)), (x, at.bind(5))
    )
    np.testing.assert_array_equal(loaded(x, at.bind(4)).numpy(), x.numpy()[4:7] * 2)
    with pytest.raises(IndexError, match=r"slice 6:9 is out of range for axis 0 of size 8"):
        loaded(x, at.bind(6))


def test_constants_among_the_arguments_choose_the_capture(tmp_path: Path) -> None:
    x = numbers(3)
    loaded = there_and_back(lambda x, k: x * k, tmp_path, (x, 2), (x, 5))
    for k in (5, 2, 5):
        np.testing.assert_array_equal(loaded(x, k).numpy(), x.numpy() * k)
    with pytest.raises(CaptureError, match=r"tuple\(a tensor, 7\).*captured with.*tensor, 2"):
        loaded(x, 7)


def test_results_may_be_arguments_and_parts_of_them(tmp_path: Path) -> None:
    def f(x: Tensor) -> tuple[Tensor, Tensor]:
        x.assign(x + 1)
        return x, x.realize()[1]

    loaded = there_and_back(f, tmp_path, (numbers(2, 3),))
    x = numbers(2, 3, seed=4)
    before = x.numpy().copy()
    same, row = loaded(x)
    assert same is x
    np.testing.assert_array_equal(x.numpy(), before + 1)
    np.testing.assert_array_equal(row.numpy(), before[1] + 1)


def test_results_stay_what_they_were(tmp_path: Path) -> None:
    loaded = there_and_back(lambda x: x + 1, tmp_path, (numbers(4),))
    kept = [loaded(Tensor([float(n)] * 4)) for n in range(5)]
    assert [one.tolist() for one in kept] == [[n + 1.0] * 4 for n in range(5)]


def test_a_bad_index_names_the_line_that_was_captured(tmp_path: Path) -> None:
    table = numbers(5, 2)
    loaded = there_and_back(lambda i: table[i], tmp_path, (Tensor([1, 2]),))
    np.testing.assert_array_equal(loaded(Tensor([4, -1])).numpy(), table.numpy()[[4, 4]])
    with pytest.raises(IndexError, match=r"(?s)index 9 is out of range for axis 0.*table\[i\]"):
        loaded(Tensor([1, 9]))
    np.testing.assert_array_equal(loaded(Tensor([0, 1])).numpy(), table.numpy()[:2])


@dataclass
class Pair:
    left: Tensor
    right: Tensor


def test_arguments_may_be_nested(tmp_path: Path) -> None:
    def f(pair: Pair, more: dict[str, list[Tensor]]) -> Tensor:
        return pair.left - pair.right * more["a"][1]

    def call(seed: int) -> tuple[Pair, dict[str, list[Tensor]]]:
        x = [numbers(3, seed=seed + n) for n in range(4)]
        return Pair(x[0], x[1]), {"a": [x[2], x[3]]}

    loaded = there_and_back(f, tmp_path, call(1))
    np.testing.assert_array_equal(loaded(*call(9)).numpy(), f(*call(9)).numpy())


# ---------------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    "other, words",
    [
        (lambda: numbers(3, 4), r"\(3, 4\) float32 on CPU; it was captured with \(4, 3\) float32"),
        (lambda: numbers(4, 3).cast("float64").realize(), r"\(4, 3\) float64.*\(4, 3\) float32"),
        (
            lambda: Tensor.from_memory(np.ones((3, 4), np.float32).T),
            r"strides \(1, 4\).*takes strides \(3, 1",
        ),
    ],
)
def test_other_inputs_are_refused_with_both_sides_shown(
    tmp_path: Path, other: Any, words: str
) -> None:
    loaded = there_and_back(lambda x: x + 1, tmp_path, (numbers(4, 3),))
    with pytest.raises(CaptureError, match=words):
        loaded(other())
    with pytest.raises(CaptureError, match=r"called with tuple\(\), and was captured with tuple"):
        loaded()


def test_memory_of_the_function_itself_is_no_argument(tmp_path: Path) -> None:
    w = numbers(3)
    loaded = there_and_back(lambda x: w.assign(w + x), tmp_path, (numbers(3),), state={"w": w})
    with pytest.raises(CaptureError, match="memory of the exported function itself"):
        loaded(loaded.state["w"])


def test_a_tensor_of_the_state_that_was_replaced_is_reported(tmp_path: Path) -> None:
    w = numbers(3)
    loaded = there_and_back(lambda x: x + w, tmp_path, (numbers(3),), state={"w": w})
    loaded.state["w"].replace(numbers(3, seed=8))
    with pytest.raises(CaptureError, match="was replaced"):
        loaded(numbers(3))


def test_code_for_another_processor_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there_and_back(lambda x: x + 1, tmp_path, (numbers(4),))
    here = packing.host()
    poor = here._replace(cpu="i386", features=here.features.replace("+sse2", "-sse2"))
    monkeypatch.setattr(packing, "host", lambda: poor)
    with pytest.raises(DeviceError, match=f"exported for a {here.cpu}; this i386 lacks sse2"):
        load(tmp_path / "f.glass")
    monkeypatch.setattr(packing, "host", lambda: here._replace(triple="vax-dec-vms"))
    with pytest.raises(DeviceError, match="and this is vax-dec-vms"):
        load(tmp_path / "f.glass")
