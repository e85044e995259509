"""python -m bench: every section, one after the other."""

from __future__ import annotations

from bench import gpt_step, hub, matmul, memory_speed, scaling, start

for section in (start, hub, matmul, memory_speed, scaling, gpt_step):
    print(f"\n== {section.__name__.removeprefix('bench.')}")
    section.main()
