"""Import time, and time to the first result of a new process, compared with tinygrad.

python -m bench.start
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from time import perf_counter

FIRST = "from {0} import Tensor; assert (Tensor([1.,2.])+1).tolist() == [2.0, 3.0]"


def seconds(code: str, environment: dict[str, str]) -> float:
    inherited = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    start = perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, env=inherited | environment)
    return perf_counter() - start


def best(code: str, environment: dict[str, str] | None = None, rounds: int = 5) -> float:
    return min(seconds(code, environment or {}) for _ in range(rounds))


def first_results(module: str, variable: str) -> tuple[float, float]:
    """Seconds with an empty cache, and with a filled one."""
    with tempfile.TemporaryDirectory() as folder:
        cold = []
        for _ in range(5):
            shutil.rmtree(folder)
            os.mkdir(folder)
            cold.append(seconds(FIRST.format(module), {variable: folder, "DEV": "CPU"}))
        return min(cold), best(FIRST.format(module), {variable: folder, "DEV": "CPU"})


def main() -> None:
    interpreter = best("pass")
    dependencies, ours = best("import numpy, llvmlite"), best("import glassgrad")
    print("a new process, ms (an empty one takes", f"{interpreter * 1e3:.0f})")
    print(f"import numpy, llvmlite    {(dependencies - interpreter) * 1e3:6.0f}")
    print(f"import glassgrad          {(ours - interpreter) * 1e3:6.0f}")
    cold, warm = first_results("glassgrad", "GLASSGRAD_CACHE")
    print(f"glassgrad, first result   {cold * 1e3:6.0f} cold {warm * 1e3:6.0f} warm")
    has_compiler = shutil.which(os.environ.get("CC", "clang")) is not None
    if importlib.util.find_spec("tinygrad") and has_compiler:
        peer_cold, peer_warm = first_results("tinygrad", "XDG_CACHE_HOME")
        print(f"tinygrad, first result    {peer_cold * 1e3:6.0f} cold {peer_warm * 1e3:6.0f} warm")


if __name__ == "__main__":
    main()
