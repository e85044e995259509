"""`glassgrad devices`: the available devices, and why others are not available."""

from __future__ import annotations

from argparse import Namespace

from glassgrad.base.errors import DeviceError
from glassgrad.base.terminal import painted, size_to_str
from glassgrad.devices.registry import FAMILIES, Device


def run(options: Namespace) -> int:
    for family in FAMILIES:
        is_default = family == Device.DEFAULT.partition(":")[0]
        try:
            target = Device[family].target
        except DeviceError as error:
            print(f"  {family:<8} {painted('unavailable', 'red')}: {error.message}")
            continue
        facts = [f"{target.language}", f"{target.cores} cores" if target.cores > 1 else "1 core"]
        facts += [f"vectors of {size_to_str(target.vector_bytes)}"] if target.vector_bytes else []
        facts += [target.arch] if target.arch else []
        mark = "*" if is_default else " "
        print(f"{mark} {family:<8} {painted('available', 'green')}: {', '.join(facts)}")
    print("* is the default; choose another one with DEV=CLANG or Tensor(..., device='CLANG')")
    return 0
