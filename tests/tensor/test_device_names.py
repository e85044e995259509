"""Names of devices."""

from __future__ import annotations

import pytest

from glassgrad.base.config import Context
from glassgrad.base.errors import DeviceError
from glassgrad.tensor.device_names import beside, canonical


def test_names_have_one_spelling() -> None:
    assert canonical("cpu") == canonical("CPU:0") == "CPU"
    assert canonical("cpu:2") == "CPU:2"


def test_no_name_is_the_default() -> None:
    with Context(DEV="PYTHON"):
        assert canonical(None) == "PYTHON"


def test_an_unknown_name_lists_what_there_is() -> None:
    with pytest.raises(DeviceError, match="CPU is available"):
        canonical("TOASTER")


def test_files_are_devices() -> None:
    assert canonical("disk:Weights.bin") == "DISK:Weights.bin"


def test_memory_of_this_process_is_seen_beside_devices_that_work_elsewhere() -> None:
    assert beside("CPU:3") == "CPU:3"
    assert beside("CUDA") == beside("DISK:weights.bin") == "CPU"
