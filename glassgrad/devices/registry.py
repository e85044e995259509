"""Name -> Device: devices are found by name and imported on first use."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from threading import RLock

from glassgrad.base.config import DEBUG, DEV, is_switched_on
from glassgrad.base.errors import DeviceError
from glassgrad.devices.protocol import Device as DeviceProtocol

# family -> (module, class); the class takes a device name, and raises DeviceError if unavailable
FAMILIES = {
    "CPU": ("glassgrad.devices.cpu.device", "CpuDevice"),
    "CLANG": ("glassgrad.devices.clang.device", "ClangDevice"),
    "PYTHON": ("glassgrad.devices.python.device", "PythonDevice"),
}


class Registry:
    """`Device["CPU"]` is the device; `Device.DEFAULT` is the name of the default device."""

    def __init__(self) -> None:
        self.opened: dict[str, DeviceProtocol] = {}
        self.default_name: str | None = None
        self.lock = RLock()

    def canonicalize(self, device: str | None) -> str:
        """The canonical spelling of a device name.

        >>> Device.canonicalize("cpu:0"), Device.canonicalize("disk:a.bin")
        ('CPU', 'DISK:a.bin')
        """
        if device is None:
            return self.DEFAULT
        family, _, number = device.partition(":")
        family = family.upper()
        if family == "DISK":
            return f"DISK:{number}"
        if number and not number.isdecimal():
            raise DeviceError(
                f"{device!r} is not a device name", hint="names look like CPU or CPU:1"
            )
        return f"{family}:{int(number)}" if number and int(number) else family

    def __getitem__(self, device: str | None) -> DeviceProtocol:
        if device in self.opened:
            return self.opened[device]
        name = self.canonicalize(device)
        with self.lock:
            found = self.opened.get(name)
            if found is None:
                found = self.opened[name] = self._open(name)
                if DEBUG >= 1:
                    print(f"opened {name}: {_describe(found)}")  # noqa: T201 - what DEBUG=1 is for
            return found

    @property
    def DEFAULT(self) -> str:  # noqa: N802 - the name that scripts use
        """The setting DEV, or an older spelling such as CPU=1, or CPU."""
        wanted = DEV.value
        if wanted:
            return self._require_family(self.canonicalize(wanted))
        if self.default_name is None:  # like all of the environment, read once
            self.default_name = next(filter(is_switched_on, FAMILIES), "CPU")
        return self.default_name

    @DEFAULT.setter
    def DEFAULT(self, device: str) -> None:  # noqa: N802
        raise DeviceError(
            f"Device.DEFAULT cannot be set to {device!r}",
            hint=f"set DEV={device} in the environment, or use `with Context(DEV={device!r}):`",
        )

    @property
    def default(self) -> DeviceProtocol:
        return self[self.DEFAULT]

    def get_class(self, device: str) -> type[DeviceProtocol]:
        """The class of a device; does not open one."""
        family = self._require_family(self.canonicalize(device)).partition(":")[0]
        module, name = FAMILIES[family]
        try:
            return getattr(import_module(module), name)  # type: ignore[no-any-return]
        except ModuleNotFoundError as error:
            raise DeviceError(f"device {family} needs the module {error.name}") from error

    def get_available_devices(self) -> Iterator[str]:
        """The families that are available on this machine."""
        for family in FAMILIES:
            if not self._unavailable_reason(family):
                yield family

    def _open(self, name: str) -> DeviceProtocol:
        try:
            return self.get_class(name)(name)  # type: ignore[call-arg]
        except DeviceError as error:
            if error.hint is None:
                error = DeviceError(error.message, self._alternatives(name.partition(":")[0]))
            raise error from None

    def _require_family(self, name: str) -> str:
        family = name.partition(":")[0]
        if family == "DISK":
            raise DeviceError(f"{name!r} is a file and cannot compute", self._alternatives(""))
        if family not in FAMILIES:
            raise DeviceError(f"there is no device {name!r}", self._alternatives(""))
        return name

    def _alternatives(self, failed: str) -> str:
        """Every other family: available, or why not."""
        states = {
            family: self._unavailable_reason(family) for family in FAMILIES if family != failed
        }
        return "; ".join(
            f"{family} is available" if not why else f"{family} is not: {why}"
            for family, why in states.items()
        )

    def _unavailable_reason(self, family: str) -> str:
        if family in self.opened:
            return ""
        try:
            self.opened[family] = self.get_class(family)(family)  # type: ignore[call-arg]
        except DeviceError as error:
            return error.message
        return ""


def _describe(device: DeviceProtocol) -> str:
    target = device.target
    arch = f" for {target.arch}" if target.arch else ""
    return f"{target.language}{arch}, {target.cores} cores, vectors of {target.vector_bytes} bytes"


Device = Registry()
