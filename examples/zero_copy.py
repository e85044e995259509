"""Zero-copy sharing of memory with NumPy, PyTorch, files and raw addresses.

python examples/zero_copy.py
"""

from __future__ import annotations

import ctypes
import mmap
import tempfile
from pathlib import Path

import numpy as np

from glassgrad import Tensor
from glassgrad.nn.state import safe_load, safe_save


def address(tensor: Tensor) -> int:
    return np.asarray(tensor).ctypes.data


def report(what: str, is_shared: bool) -> None:
    print(f"{'shared' if is_shared else 'COPIED':10}  {what}")


def with_numpy() -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    x = Tensor.from_memory(array)
    report("a NumPy array as a Tensor", address(x) == array.ctypes.data)
    array[0, 0] = 100
    report("the Tensor sees what NumPy writes", (x + 1).tolist()[0][0] == 101)
    y = (x * 2).realize()
    report("a Tensor as a NumPy array", np.shares_memory(np.asarray(y), y.numpy()))
    x.assign(x * 0).realize()
    report("NumPy sees what the Tensor writes", not array.any())


def with_torch() -> None:
    try:
        import torch
    except ImportError:
        print("(PyTorch is not installed)")
        return
    theirs = torch.ones(4)
    ours = Tensor.from_dlpack(theirs)
    report("a PyTorch tensor as a Tensor", address(ours) == theirs.data_ptr())
    ours.assign(ours * 3).realize()
    report("PyTorch sees what the Tensor writes", theirs.tolist() == [3.0] * 4)
    back = torch.from_dlpack((ours + 1).realize())
    report("a Tensor as a PyTorch tensor", back.tolist() == [4.0] * 4)


def with_files() -> None:
    path = Path(tempfile.mkdtemp()) / "weights.safetensors"
    safe_save({"weight": Tensor.ones(1000, 100)}, path)
    weight = safe_load(path)["weight"]
    print(f"{'':10}  {weight.device.partition(':')[0]} holds {weight.nbytes():,} bytes")
    report("a mapped file as a Tensor on the CPU", not weight.to("CPU").numpy().flags.owndata)
    print(f"{'':10}  the sum, computed from the mapped pages: {weight.sum().item():,.0f}")


def with_raw_memory() -> None:
    raw = mmap.mmap(-1, 4096)
    x = Tensor.from_memory(raw, dtype="int32")
    raw[:4] = (7).to_bytes(4, "little")
    report("anonymous pages as a Tensor", x[0].item() == 7)
    block = (ctypes.c_float * 3)(1, 2, 3)
    y = Tensor.from_blob(ctypes.addressof(block), (3,), owner=block)
    y.assign(y * 2).realize()
    report("a raw address as a Tensor", list(block) == [2.0, 4.0, 6.0])


def main() -> None:
    with_numpy()
    with_torch()
    with_files()
    with_raw_memory()


if __name__ == "__main__":
    main()
