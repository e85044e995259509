"""Every example runs with --quick and prints what it should."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import numpy as np
import pytest
from support.oracle import needs_oracle

FOLDER = Path(__file__).parents[2] / "examples"


def output(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> list[str]:
    monkeypatch.setattr(sys, "argv", [name, "--quick"])
    runpy.run_path(str(FOLDER / name), run_name="__main__")
    return capsys.readouterr().out.splitlines()


def number_after(word: str, line: str) -> float:
    return float(line.split(word)[1].split()[0].strip("%:"))


def test_mnist_reaches_its_accuracy(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = output("mnist.py", capsys, monkeypatch)
    assert lines[0].startswith("3,000 images")
    assert float(lines[-1].split("%")[0]) > 90


def test_diffusion_generates_points_on_a_heart(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = output("diffusion.py", capsys, monkeypatch)
    assert number_after("noise is ", lines[0]) > 0.3
    assert number_after("points are ", lines[-1]) < 0.2


def test_zero_copy_copies_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = output("zero_copy.py", capsys, monkeypatch)
    assert sum(line.startswith("shared") for line in lines) >= 7
    assert not any("COPIED" in line for line in lines)


def test_the_custom_kernel_and_its_gradient(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = output("custom_kernel.py", capsys, monkeypatch)
    assert lines[0].split(":")[1].strip() == lines[1].split(":")[1].strip()
    assert number_after("loss ", lines[-1]) < 0.01 * number_after("loss ", lines[3])


def test_attention_equals_numpy(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["attention.py", "--quick"])
    names = runpy.run_path(str(FOLDER / "attention.py"), run_name="__main__")
    q, k, v = (names[name].numpy() for name in "qkv")
    scores = np.exp(q @ k.swapaxes(-2, -1) / 8)
    expected = scores / scores.sum(-1, keepdims=True) @ v
    np.testing.assert_allclose(names["attended"].numpy(), expected, rtol=1e-3, atol=1e-4)
    assert 0.1 < float(capsys.readouterr().out) < 10


def test_gpt_trains_and_generates_text(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = output("gpt.py", capsys, monkeypatch)
    losses = [number_after("loss ", line) for line in lines if line.startswith("step")]
    assert len(losses) == 5
    assert losses[-1] < 5.2  # uniform probabilities of 512 tokens give 6.24
    assert any(line.startswith("def ") for line in lines)


def test_resnet18_classifies_images(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = output("resnet18.py", capsys, monkeypatch)
    assert lines[0] == "11,689,512 parameters"
    assert [line.split(":")[0] for line in lines[1:]] == ["batch 1", "batch 2"]
    assert all(number_after("class ", line.replace(",", "")) < 1000 for line in lines[1:])


@needs_oracle("torch")
def test_resnet18_equals_pytorch() -> None:
    import torch
    from torch.nn import functional as F

    from glassgrad import Tensor
    from glassgrad.nn.state import get_state_dict

    model = runpy.run_path(str(FOLDER / "resnet18.py"))["ResNet18"](10)
    w = {name: torch.tensor(t.numpy()) for name, t in get_state_dict(model).items()}
    assert {"layer2.0.downsample.1.running_var", "layer4.1.conv2.weight", "fc.bias"} <= w.keys()

    def norm(x: torch.Tensor, name: str) -> torch.Tensor:
        parts = (w[f"{name}.{part}"] for part in ("running_mean", "running_var", "weight", "bias"))
        return F.batch_norm(x, *parts)

    def block(x: torch.Tensor, name: str, stride: int) -> torch.Tensor:
        y = F.conv2d(x, w[f"{name}.conv1.weight"], stride=stride, padding=1)
        y = F.conv2d(norm(y, f"{name}.bn1").relu(), w[f"{name}.conv2.weight"], padding=1)
        if f"{name}.downsample.0.weight" in w:
            x = F.conv2d(x, w[f"{name}.downsample.0.weight"], stride=stride)
            x = norm(x, f"{name}.downsample.1")
        return (norm(y, f"{name}.bn2") + x).relu()

    image = torch.randn(1, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    x = norm(F.conv2d(image, w["conv1.weight"], stride=2, padding=3), "bn1").relu()
    x = F.max_pool2d(x, 3, 2, 1)
    for layer in range(1, 5):
        x = block(x, f"layer{layer}.0", 1 if layer == 1 else 2)
        x = block(x, f"layer{layer}.1", 1)
    expected = F.linear(x.mean((2, 3)), w["fc.weight"], w["fc.bias"]).numpy()
    found = model(Tensor(image.numpy())).numpy()
    assert abs(found - expected).max() < 1e-3 * abs(expected).max()
