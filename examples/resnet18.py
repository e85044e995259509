"""ResNet-18 inference: one capture, then one native call per batch.

python examples/resnet18.py [--quick] [WEIGHTS]    .pth or .safetensors with names of torchvision

Without a file the weights are random: the classes are meaningless, but the time is the same.
"""

import argparse
from pathlib import Path
from time import perf_counter

from glassgrad import Tensor, TinyJit, nn
from glassgrad.nn.files.pytorch import torch_load
from glassgrad.nn.state import get_parameters, load_state_dict, safe_load


class Block:
    """A residual block of two convolutions."""

    def __init__(self, in_channels: int, out_channels: int, stride: int):
        self.conv1 = nn.Conv2d(in_channels, out_channels, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(out_channels)
        self.conv2 = nn.Conv2d(out_channels, out_channels, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(out_channels)
        self.downsample = []
        if stride != 1 or in_channels != out_channels:
            projection = nn.Conv2d(in_channels, out_channels, 1, stride, bias=False)
            self.downsample = [projection, nn.BatchNorm2d(out_channels)]

    def __call__(self, x: Tensor) -> Tensor:
        y = self.bn1(self.conv1(x)).relu()
        y = self.bn2(self.conv2(y))
        return (y + x.sequential(self.downsample)).relu()


class ResNet18:
    """ResNet-18 with the parameter names of torchvision."""

    def __init__(self, classes: int = 1000):
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.layer1 = [Block(64, 64, 1), Block(64, 64, 1)]
        self.layer2 = [Block(64, 128, 2), Block(128, 128, 1)]
        self.layer3 = [Block(128, 256, 2), Block(256, 256, 1)]
        self.layer4 = [Block(256, 512, 2), Block(512, 512, 1)]
        self.fc = nn.Linear(512, classes)

    def __call__(self, x: Tensor) -> Tensor:  # (batch, 3, height, width)
        x = self.bn1(self.conv1(x)).relu().max_pool2d(3, 2, padding=1)
        for layer in (self.layer1, self.layer2, self.layer3, self.layer4):
            x = x.sequential(layer)
        return self.fc(x.mean((2, 3)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("weights", nargs="?", type=Path)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    size, runs = (64, 3) if options.quick else (224, 20)

    Tensor.manual_seed(0)
    model = ResNet18()
    if options.weights is not None:
        is_safe = options.weights.suffix == ".safetensors"
        load_state_dict(model, (safe_load if is_safe else torch_load)(options.weights))
    print(f"{sum(param.numel() for param in get_parameters(model)):,} parameters")

    for batch in (1, 2) if options.quick else (1, 8):
        classify = TinyJit(lambda images: model(images).softmax(-1))
        times = []
        for _ in range(runs):
            images = Tensor.rand(batch, 3, size, size).realize()
            start = perf_counter()
            probabilities = classify(images).numpy()
            times.append(perf_counter() - start)
        best = int(probabilities[0].argmax())
        print(
            f"batch {batch}: {min(times) * 1e3:.1f} ms; class {best}, {probabilities[0, best]:.1%}"
        )


if __name__ == "__main__":
    main()
