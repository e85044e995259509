"""Files as torch.save writes them, without PyTorch: a zip archive of a pickle and of storages."""

from __future__ import annotations

import io
import pickle
import zipfile
from collections import OrderedDict
from typing import Any

import numpy as np

NAMES = {"float32": "FloatStorage", "float64": "DoubleStorage", "int64": "LongStorage",
         "uint8": "ByteStorage", "bool": "BoolStorage", "float16": "HalfStorage"}  # fmt: skip


class Named:
    """Something that is pickled as a name, and perhaps called."""

    def __init__(self, module: str, name: str, *args: Any) -> None:
        self.module, self.name, self.args = module, name, args


class Writer(pickle._Pickler):  # Python's own, whose parts can be replaced
    """Writes tensors as PyTorch does."""

    def __init__(self, out: io.BytesIO) -> None:
        super().__init__(out, protocol=2)
        self.storages: list[np.ndarray[Any, Any]] = []

    def persistent_id(self, obj: Any) -> Any:
        if isinstance(obj, Storage):
            self.storages.append(obj.array)
            kind = Named("torch", NAMES[obj.array.dtype.name])
            return ("storage", kind, str(len(self.storages) - 1), "cpu", obj.array.size)
        return None

    def save(self, obj: Any, save_persistent_id: bool = True) -> None:
        if isinstance(obj, Named):
            self.write(b"c" + f"{obj.module}\n{obj.name}\n".encode())
            if obj.args:
                super().save(obj.args)
                self.write(b"R")
        elif isinstance(obj, np.ndarray):
            flat = np.lib.stride_tricks.as_strided(obj, (obj.size,), (obj.itemsize,))
            strides = tuple(step // obj.itemsize for step in obj.strides)
            rest = (Storage(flat), 0, obj.shape, strides, False, OrderedDict())
            self.save(Named("torch._utils", "_rebuild_tensor_v2", *rest))
        else:
            super().save(obj, save_persistent_id)


class Storage:
    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array


def torch_file(obj: Any) -> bytes:
    out = io.BytesIO()
    writer = Writer(out)
    writer.dump(obj)
    return archive_of(out.getvalue(), writer.storages)


def archive_of(pickled: bytes, storages: list[np.ndarray[Any, Any]]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("archive/data.pkl", pickled)
        archive.writestr("archive/byteorder", b"little")
        for number, storage in enumerate(storages):
            archive.writestr(f"archive/data/{number}", storage.tobytes())
        archive.writestr("archive/version", b"3\n")
    return out.getvalue()


def old_torch_file(obj: Any) -> bytes:
    """As PyTorch wrote before 1.6: pickles behind each other, and then the storages."""
    out = io.BytesIO()
    writer = Writer(out)
    writer.dump(obj)
    facts = {"protocol_version": 1001, "little_endian": True, "type_sizes": {"int": 4}}
    keys = [str(number) for number in range(len(writer.storages))]
    head = [pickle.dumps(one, 2) for one in (0x1950A86A20F9469CFC6C, 1001, facts)]
    parts = [*head, out.getvalue(), pickle.dumps(keys, 2)]
    for storage in writer.storages:
        parts += [storage.size.to_bytes(8, "little"), storage.tobytes()]
    return b"".join(parts)
