"""The contenders. An adapter module has one function per workload; it takes numpy inputs and returns a
step: a function without arguments that does the work, waits for it, and returns its results."""

import os
import shutil

# name -> (module in this package, package it needs)
PEERS = {
    "numpy": ("numpy_ref", "numpy"),
    "torch": ("torch_eager", "torch"),
    "torch_compile": ("torch_compiled", "torch"),
    "jax": ("jax_jit", "jax"),
    "tinygrad": ("tiny", "tinygrad"),
    "tinygrad_llvm": ("tiny", "tinygrad"),
    "tinygrad_beam": ("tiny", "tinygrad"),
    "glassgrad": ("tiny", "glassgrad"),
    "glassgrad_base": ("tiny", "glassgrad"),  # another checkout: BENCH_BASE
}


def newest_clang():
    names = [f"clang-{v}" for v in range(24, 13, -1)] + ["clang"]
    return os.environ.get("CC") or next((n for n in names if shutil.which(n)), "clang")


def environment(peer: str, threads: int, cache: str) -> dict:
    """Environment of a contender's process: its thread count, an own kernel cache, its best configuration."""
    n = str(threads)
    env = {
        "OMP_NUM_THREADS": n,
        "MKL_NUM_THREADS": n,
        "OPENBLAS_NUM_THREADS": n,
        "NPROC": n,
        "BENCH_THREADS": n,
        "BENCH_MODULE": PEERS[peer][1],
    }
    if peer == "torch_compile":
        env |= {"TORCHINDUCTOR_CACHE_DIR": f"{cache}/inductor"}
    if peer == "jax":
        env |= {
            "JAX_PLATFORMS": "cpu",
            "JAX_COMPILATION_CACHE_DIR": f"{cache}/jax",
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        }
        if threads == 1:
            env |= {
                "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
            }
    if peer.startswith("tinygrad"):
        env |= {
            "DEV": os.environ.get("BENCH_TINYGRAD_DEV", "CPU:CLANG"),
            "CC": newest_clang(),
            "NUM_CPU_THREADS": n,
            "CACHEDB": f"{cache}/tinygrad.db",
        }
        if peer == "tinygrad_llvm":
            env |= {"DEV": "CPU:LLVM"}  # needs LLVM 16 or later: LLVM_PATH names the library
        if peer == "tinygrad_beam":
            env |= {"BEAM": "2"}
    if peer.startswith("glassgrad"):
        env |= {
            "THREADS": n,
            "GLASSGRAD_CACHE": f"{cache}/{peer}",
            "NUM_CPU_THREADS": n,
            "CACHEDB": f"{cache}/{peer}.db",
        }
        if peer == "glassgrad_base":
            env |= {"PYTHONPATH": os.environ["BENCH_BASE"]}
    return env | {"XDG_CACHE_HOME": cache}
