"""`glassgrad generate`: prints the text that a model generates from a prompt."""

from __future__ import annotations

import sys
from argparse import Namespace
from time import perf_counter

from glassgrad.nn.gpt.generate import generate
from glassgrad.nn.gpt.load import load
from glassgrad.nn.gpt.sampler import Sampler


def run(options: Namespace) -> int:
    found = load(options.model, options.tokenizer)
    sampler = Sampler(options.temperature, options.top_k, options.top_p, options.seed)
    print(options.prompt, end="", flush=True)
    pieces = 0
    start = first = perf_counter()
    for piece in generate(
        found.model, found.tokenizer, options.prompt, options.tokens, sampler, found.stop
    ):
        print(piece, end="", flush=True)
        pieces += 1
        first = perf_counter() if pieces == 1 else first
    print()
    if sys.stderr.isatty() and pieces > 1:
        speed = (pieces - 1) / (perf_counter() - first)
        note = (
            f"[{pieces} tokens, the first after {first - start:.2f} s, then {speed:.0f} per second]"
        )
        print(note, file=sys.stderr)
    return 0
