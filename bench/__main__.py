"""python -m bench [section ...]: run the given benchmarks; default: all."""

from __future__ import annotations

import sys
from importlib import import_module

SECTIONS = (
    "start", "hub", "matmul", "tensor_ops", "memory_speed", "scaling", "gpt_step", "compile_time",
    "expressions",
)  # fmt: skip

for name in sys.argv[1:] or SECTIONS:
    print(f"\n== {name}")
    import_module(f"bench.{name}").main()
