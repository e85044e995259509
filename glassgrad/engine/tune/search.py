"""Nest -> Recipe by measuring: BEAM=n benchmarks candidates on this machine, and stores the winner.

The heuristic's recipe is the first candidate and is measured against the winner once more at the
end, alternating: a search never returns a recipe that is slower than the heuristic's.
"""

from __future__ import annotations

import json
import sys
from time import perf_counter

from glassgrad.base.config import BEAM_SECONDS, DEBUG
from glassgrad.base.progress import tqdm
from glassgrad.devices.cpu.object_cache import object_key, read_object, write_object
from glassgrad.engine.cache.sources import CACHED_LANGUAGES, code_version, kernel_text, target_key
from glassgrad.engine.debug import report_search
from glassgrad.engine.tune.benchmark_client import BenchmarkClient
from glassgrad.ir.stages import Choose, Nest, Source, Target
from glassgrad.loops import finish
from glassgrad.loops.moves.table import apply_moves
from glassgrad.loops.opts import Opt, OptOps, Recipe
from glassgrad.loops.search.beam import beam
from glassgrad.loops.search.candidates import try_recipe
from glassgrad.loops.strategies.heuristic import heuristic
from glassgrad.lower import lower
from glassgrad.render import render

FINAL_ROUNDS = 7  # alternating measurements of the final comparison


def search(nest: Nest, target: Target, width: int, choose: Choose = heuristic) -> Recipe:
    """The recipe of a search of this width; stored on disk."""
    chosen = choose(nest, target)
    default_recipe = chosen.recipe if isinstance(chosen, Nest) else chosen
    if target.language not in CACHED_LANGUAGES:
        return default_recipe
    key = object_key("recipe", kernel_text(nest), target_key(target), str(width), code_version())
    found = load_recipe(key)
    if found is not None and try_recipe(nest, found, target) is not None:
        return found
    found = search_recipe(nest, target, width, default_recipe)
    write_object(key, encode_recipe(found))
    return found


def search_recipe(nest: Nest, target: Target, width: int, default_recipe: Recipe) -> Recipe:
    """Search from the heuristic's recipe and from none, within BEAM_SECONDS."""
    start = perf_counter()
    bar: tqdm[None] = tqdm(desc="searching", unit="recipe", disable=not sys.stderr.isatty())
    with bar, BenchmarkClient(target) as client:

        def cost(candidate: Nest, limit: float) -> float:
            bar.update(1)
            return client.measure([source_of(candidate, target)], limit)[0]

        def is_over() -> bool:
            return perf_counter() - start > BEAM_SECONDS.value

        found = beam(nest, target, width, cost, (default_recipe, ()), is_over)
        if found != default_recipe:
            sources = [
                source_of(apply_moves(nest, r, target), target) for r in (default_recipe, found)
            ]
            before, after = client.measure(sources, rounds=FINAL_ROUNDS)
            if DEBUG >= 2:
                report_search(sources, (before, after), bar.n, perf_counter() - start)
            if before <= after:
                return default_recipe
    return found


def source_of(candidate: Nest, target: Target) -> Source:
    return render(lower(finish(candidate, target), target), target)


# ---------------------------------------------------------------------- on disk


def encode_recipe(recipe: Recipe) -> bytes:
    return json.dumps([(opt.op.name, opt.axis, opt.arg) for opt in recipe]).encode()


def load_recipe(key: str) -> Recipe | None:
    stored = read_object(key)
    if stored is None:
        return None
    try:
        found = [(OptOps[name], axis, arg) for name, axis, arg in json.loads(stored)]
        return tuple([Opt(op, a, tuple(b) if isinstance(b, list) else b) for op, a, b in found])
    except (ValueError, KeyError, TypeError):  # damaged: search again
        return None
