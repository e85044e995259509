"""Names of devices."""

from __future__ import annotations

import pytest

from glassgrad.base.config import Context
from glassgrad.base.errors import DeviceError
from glassgrad.tensor.device_names import canonical_device, host_device


def test_names_have_one_spelling() -> None:
    assert canonical_device("cpu") == canonical_device("CPU:0") == "CPU"
    assert canonical_device("cpu:2") == "CPU:2"


def test_no_name_is_the_default() -> None:
    with Context(DEV="PYTHON"):
        assert canonical_device(None) == "PYTHON"


def test_an_unknown_name_lists_what_there_is() -> None:
    with pytest.raises(DeviceError, match="CPU is available"):
        canonical_device("TOASTER")


def test_files_are_devices() -> None:
    assert canonical_device("disk:Weights.bin") == "DISK:Weights.bin"


def test_host_memory_is_viewed_on_the_cpu_for_other_devices() -> None:
    assert host_device("CPU:3") == "CPU:3"
    assert host_device("CUDA") == host_device("DISK:weights.bin") == "CPU"
