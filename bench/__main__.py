"""python -m bench: every section, one after the other."""

from __future__ import annotations

from bench import gpt_step, matmul, memory_speed, scaling, start

for section in (start, matmul, memory_speed, scaling, gpt_step):
    print(f"\n== {section.__name__.removeprefix('bench.')}")
    section.main()
