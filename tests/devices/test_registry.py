"""Devices are found by name; unavailable ones are explained."""

import sys
from types import SimpleNamespace

import pytest

from glassgrad.base.config import Context
from glassgrad.base.errors import DeviceError
from glassgrad.devices import registry
from glassgrad.devices.registry import Device, Registry


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("cpu", "CPU"),
        ("CPU:0", "CPU"),
        ("cpu:1", "CPU:1"),
        ("Python", "PYTHON"),
        ("CPU:01", "CPU:1"),
        ("disk:/a:b/C.bin", "DISK:/a:b/C.bin"),
    ],
)
def test_names_have_one_spelling(given: str, name: str) -> None:
    assert Device.canonicalize(given) == name


def test_a_device_is_opened_once() -> None:
    assert Device["cpu"] is Device["CPU:0"]
    assert Device["CPU"].name == "CPU"
    assert Device["CPU:1"] is not Device["CPU"]


def test_the_default_device_is_set_by_dev() -> None:
    with Context(DEV=""):
        assert Device.DEFAULT == Device.canonicalize(None) == "CPU"
    with Context(DEV="python:2"):
        assert Device.DEFAULT == "PYTHON:2"
    with Context(DEV="NOWHERE"), pytest.raises(DeviceError, match="there is no device 'NOWHERE'"):
        _ = Device.DEFAULT


def test_older_spellings_of_the_default_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLANG", "1")
    fresh = Registry()
    with Context(DEV=""):
        assert fresh.DEFAULT == "CLANG"
        monkeypatch.delenv("CLANG")
        assert fresh.DEFAULT == "CLANG"  # the environment is read once


@pytest.mark.parametrize("value", ["/usr/bin/python3", "", "0", "no"])
def test_other_programs_may_use_the_names_of_devices(
    value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many build environments set PYTHON to an interpreter."""
    monkeypatch.setenv("PYTHON", value)
    with Context(DEV=""):
        assert Registry().DEFAULT == "CPU"


def test_a_file_cannot_compute() -> None:
    with pytest.raises(DeviceError, match="is a file and cannot compute"):
        Device["DISK:a.bin"]
    with Context(DEV="DISK:a.bin"), pytest.raises(DeviceError, match="cannot compute"):
        _ = Device.DEFAULT


def test_an_unknown_device_lists_the_available_ones() -> None:
    with pytest.raises(DeviceError, match="there is no device 'TPU'") as caught:
        Device["TPU"]
    assert "CPU is available" in str(caught.value)


def test_an_invalid_name_is_refused() -> None:
    with pytest.raises(DeviceError, match="is not a device name"):
        Device["CPU:x"]


def test_a_device_that_does_not_work_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    module = SimpleNamespace(BrokenDevice=BrokenDevice)
    monkeypatch.setitem(sys.modules, "broken_device", module)  # type: ignore[misc]
    families = {**registry.FAMILIES, "BROKEN": ("broken_device", "BrokenDevice")}
    monkeypatch.setattr(registry, "FAMILIES", families)
    fresh = Registry()
    with pytest.raises(DeviceError, match="there is no such chip") as caught:
        fresh["BROKEN"]
    assert "CPU is available" in str(caught.value)
    assert "BROKEN" not in list(fresh.get_available_devices())
    assert "CPU" in list(fresh.get_available_devices())


class BrokenDevice:
    def __init__(self, name: str) -> None:
        raise DeviceError("there is no such chip")


def test_the_class_of_a_device_is_known_without_opening_it() -> None:
    assert Registry().get_class("cpu:7").__name__ == "CpuDevice"


def test_the_module_for_scripts_offers_the_registry() -> None:
    from glassgrad import device

    assert device.Device is Device


def test_the_default_is_set_by_the_setting_alone() -> None:
    with pytest.raises(DeviceError, match=r"cannot be set to 'PYTHON'.*\n.*\n.*DEV=PYTHON"):
        Device.DEFAULT = "PYTHON"
    with Context(DEV="PYTHON"):
        assert Device.DEFAULT == "PYTHON"
