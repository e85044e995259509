"""Nest -> Recipe by trying: BEAM=n measures candidates on this machine, and remembers the winner.

The heuristic's recipe is the first candidate, and at the end meets the winner once more, in turns:
what a search finds is never slower than what is there without one.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from time import perf_counter

from glassgrad.base.config import BEAM_SECONDS, DEBUG
from glassgrad.base.progress import tqdm
from glassgrad.devices.cpu.object_cache import object_key, read_object, write_object
from glassgrad.engine.cache.sources import LANGUAGES, own_code, structure, written_target
from glassgrad.engine.debug import report_search
from glassgrad.engine.tune.benchmark_client import Stopwatch
from glassgrad.ir.stages import Nest, Source, Target
from glassgrad.loops import finish
from glassgrad.loops.moves.table import apply_moves
from glassgrad.loops.opts import Opt, OptOps, Recipe
from glassgrad.loops.search.beam import beam
from glassgrad.loops.search.candidates import try_recipe
from glassgrad.loops.strategies.heuristic import heuristic
from glassgrad.lower import lower
from glassgrad.render import render

ROUNDS = 7  # turns of the last comparison
Heuristic = Callable[[Nest, Target], Recipe]


def search(nest: Nest, target: Target, width: int, choose: Heuristic = heuristic) -> Recipe:
    """The recipe of a search of this width, from disk if there was one before."""
    usual = choose(nest, target)
    if target.language not in LANGUAGES:
        return usual
    key = object_key("recipe", structure(nest), written_target(target), str(width), own_code())
    found = recall_recipe(key)
    if found is not None and try_recipe(nest, found, target) is not None:
        return found
    found = search_anew(nest, target, width, usual)
    write_object(key, written_recipe(found))
    return found


def search_anew(nest: Nest, target: Target, width: int, usual: Recipe) -> Recipe:
    """From the usual recipe and from none, as long as BEAM_SECONDS allow."""
    start = perf_counter()
    bar: tqdm[None] = tqdm(desc="searching", unit="recipe", disable=not sys.stderr.isatty())
    with bar, Stopwatch(target) as stopwatch:

        def cost(candidate: Nest, limit: float) -> float:
            bar.update(1)
            return stopwatch.measure([source_of(candidate, target)], limit)[0]

        def is_over() -> bool:
            return perf_counter() - start > BEAM_SECONDS.value

        found = beam(nest, target, width, cost, (usual, ()), is_over)
        if found != usual:
            sources = [source_of(apply_moves(nest, r, target), target) for r in (usual, found)]
            before, after = stopwatch.measure(sources, rounds=ROUNDS)
            if DEBUG >= 2:
                report_search(sources, (before, after), bar.n, perf_counter() - start)
            if before <= after:
                return usual
    return found


def source_of(candidate: Nest, target: Target) -> Source:
    return render(lower(finish(candidate, target), target), target)


# ---------------------------------------------------------------------- on disk


def written_recipe(recipe: Recipe) -> bytes:
    return json.dumps([(opt.op.name, opt.axis, opt.arg) for opt in recipe]).encode()


def recall_recipe(key: str) -> Recipe | None:
    stored = read_object(key)
    if stored is None:
        return None
    try:
        found = [(OptOps[name], axis, arg) for name, axis, arg in json.loads(stored)]
        return tuple([Opt(op, a, tuple(b) if isinstance(b, list) else b) for op, a, b in found])
    except (ValueError, KeyError, TypeError):  # damaged: as if it were not there
        return None
