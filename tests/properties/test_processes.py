"""Concurrent threads and processes: correct results, and no deadlocks."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from glassgrad import Tensor, TinyJit


def work(seed: int) -> bool:
    """Record, schedule, compile and run kernels, some of which other threads make, too."""
    rng = np.random.default_rng(seed)
    for round in range(6):
        a = rng.standard_normal((17 + round, 23)).astype(np.float32)
        b = rng.standard_normal((23, 11 + seed % 3)).astype(np.float32)
        found = ((Tensor(a) @ Tensor(b)).relu() + round).sum(1).numpy()
        if not np.allclose(found, (np.maximum(a @ b, 0) + round).sum(1), rtol=1e-4, atol=1e-4):
            return False
    x = Tensor(np.arange(2048, dtype=np.float32))
    x.assign(x * 2).realize()
    return bool((x.numpy() == np.arange(2048) * 2).all())


def test_threads_realize_tensors_concurrently() -> None:
    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(12)))


def test_threads_share_one_lazy_tensor() -> None:
    lazy = (Tensor(np.arange(4096, dtype=np.float32)) * 0.5 + 1).sum()
    wanted = float((np.arange(4096) * 0.5 + 1).sum())
    found: list[float] = []
    threads = [threading.Thread(target=lambda: found.append(lazy.item())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [wanted] * 4


def test_threads_capture_functions_concurrently() -> None:
    def captured(seed: int) -> bool:
        f = TinyJit(lambda x: (x * (seed + 1)).sum())
        return all(f(Tensor([1.0 * n, 2.0])).item() == (n + 2.0) * (seed + 1) for n in range(8))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(captured, range(8)))


def child(connection: Any) -> None:
    connection.send(work(5))
    connection.close()


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_child_process_and_its_parent_compute(method: str) -> None:
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"{method} is not available")
    assert work(1)  # start the thread pool of the parent before the child
    context = multiprocessing.get_context(method)
    ours, theirs = context.Pipe()
    process = context.Process(target=child, args=(theirs,))
    process.start()
    assert work(2)
    assert ours.poll(120), "the child did not answer"
    assert ours.recv()
    process.join(30)
    assert process.exitcode == 0


def test_two_processes_write_one_cache_concurrently(tmp_path: Any) -> None:
    code = (
        "import numpy as np; from glassgrad import Tensor\n"
        "a = np.arange(600, dtype=np.float32).reshape(20, 30)\n"
        "for n in range(8):\n"
        "    found = ((Tensor(a[: n + 4]) @ Tensor(a.T)) * n).sum(1).numpy()\n"
        "    assert np.allclose(found, ((a[: n + 4] @ a.T) * n).sum(1), rtol=1e-4), n\n"
        "print('right')"
    )
    env = os.environ | {"GLASSGRAD_CACHE": str(tmp_path)}
    both = [
        subprocess.Popen([sys.executable, "-c", code], env=env, stdout=subprocess.PIPE)
        for _ in range(2)
    ]
    assert [process.communicate(timeout=120)[0] for process in both] == [b"right\n"] * 2
