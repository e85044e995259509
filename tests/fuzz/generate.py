"""Generator: a seed -> a Program, built of statements whose results the reference knows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from random import Random

from fuzz.dtypes import is_float
from fuzz.ops import FAMILIES, OPS
from fuzz.pool import NotApplicable, Pool
from fuzz.programs import Program, Statement
from fuzz.reference import step
from fuzz.stochastic import Arithmetic, Discard

SMALL = (1, 2, 3, 5, 7, 8, 13, 16, 17)
LARGE = (64, 65, 96, 128, 256, 1000)
NARROW = ("bfloat16", "float16", "fp8e4m3", "fp8e5m2")

# Weights of the families of operations, by the theme of a program.
THEMES: dict[str, dict[str, float]] = {
    "everything": {"elementwise": 5, "views": 3.5, "copies": 1.5, "indexing": 1.5, "reductions": 3,
                   "contraction": 1.5, "networks": 0.7, "writes": 1.5, "others": 0.5},
    "aliasing": {"elementwise": 2, "views": 4.5, "copies": 1.5, "indexing": 1, "reductions": 1.5,
                 "writes": 4.5, "others": 1},
    "networks": {"elementwise": 4, "views": 1.5, "copies": 0.5, "indexing": 0.5, "reductions": 1.5,
                 "contraction": 2, "networks": 4, "writes": 0.3, "others": 0.2},
    "numbers": {"elementwise": 7, "views": 2, "copies": 1, "reductions": 4, "writes": 2},
    "narrow": {"elementwise": 3, "views": 1, "reductions": 8, "writes": 6, "others": 0.5},
    "training": {"elementwise": 3, "views": 1, "reductions": 2, "contraction": 3, "networks": 6},
}  # fmt: skip


@dataclass(frozen=True)
class GeneratorOptions:
    """The kind of program; `without` are names of excluded operations."""

    has_gradients: bool = False
    without: frozenset[str] = frozenset()
    min_statements: int = 15
    max_statements: int = 40


def generate(seed: int, options: GeneratorOptions = GeneratorOptions()) -> Program:
    """A program, determined by the seed."""
    rng = Random(seed)
    weights = (3, 2, 2, 1, 0, 8) if options.has_gradients else (5, 3, 3, 3, 1.5, 0)
    theme = rng.choices(list(THEMES), weights)[0]
    pool = _pool(rng, options, theme)
    ops = _ops(theme, options)
    pool.leaf(_shape_with_elements(pool), rng.choice((*pool.float_dtypes, pool.dtype())))
    if options.has_gradients:
        _add_parameter(pool)
    statements: list[Statement] = []
    length = rng.randint(options.min_statements, options.max_statements)
    if theme == "training":  # layers have many kernels each
        length = rng.randint(3, max(3, options.max_statements // 2))
    for _ in range(8 * length):
        if len(statements) >= length:
            break
        _try(pool, rng.choices(ops, [op[1] for op in ops])[0][0], statements)
    return _finish(pool, statements, options)


def _pool(rng: Random, options: GeneratorOptions, theme: str) -> Pool:
    sizes = [rng.choice(SMALL) for _ in range(3)] + [1]
    limit = 400
    large_fraction = 0.7 if theme == "training" else 0.2
    if rng.random() < large_fraction:  # large enough for tiles, vectors, threads and row blocks
        sizes = [1, rng.choice(SMALL), rng.choice(LARGE), rng.choice(LARGE)]
        limit = 140_000
    elif rng.random() < 0.1 and not options.has_gradients:
        sizes += [0]
    floats: tuple[str, ...] = ("float32",)
    kind = rng.random()
    if theme == "narrow":
        floats = (*(rng.choice(NARROW),) * 3, "float32")
    elif kind < 0.15:
        floats = ("float64", "float32")
    elif not options.has_gradients and kind < (0.8 if theme == "numbers" else 0.35):
        floats = ("float32", rng.choice(NARROW), rng.choice(NARROW))
    seed = rng.randrange(1 << 30)
    return Pool(
        rng, tuple(sizes), limit, floats, has_gradients=options.has_gradients,
        arithmetic=Arithmetic(seed=seed),
    )  # fmt: skip


def _ops(theme: str, options: GeneratorOptions) -> list[tuple[str, float]]:
    """Names of operations, and the weight of the family times the weight in the family."""
    found = []
    for family, weight in THEMES[theme].items():
        total = sum(op.weight for op in FAMILIES[family])
        found += [(op.name, weight * op.weight / total) for op in FAMILIES[family]]
    return [(name, weight) for name, weight in found if name not in options.without]


def _shape_with_elements(pool: Pool) -> tuple[int, ...]:
    shape = tuple(max(1, pool.size()) for _ in range(pool.rng.choice((1, 2, 2, 3))))
    return shape if pool.fits(shape) else shape[:1]


def _add_parameter(pool: Pool) -> None:
    while not any(leaf.is_parameter for leaf in pool.leaves):
        pool.leaf(_shape_with_elements(pool), pool.float_dtype())


def _try(pool: Pool, name: str, statements: list[Statement]) -> None:
    """Add one statement, or leave the pool unchanged."""
    op = OPS[name]
    leaves, count, values = len(pool.leaves), pool.count, dict(pool.values)
    try:
        inputs, args = op.choose(pool)
        if name == "forget" and not _can_delete(pool, inputs[0]):
            raise NotApplicable
        outs = _outs(pool, name, inputs, args)
        statement = Statement(name, outs, tuple(inputs), args)
        written = pool[inputs[0]].memory if op.effect == "write" else None
        before = written.samples.copy() if written else None
        try:
            step(pool.values, statement, pool.arithmetic)
            _check_sizes(pool, outs)
        except (Discard, NotApplicable):
            if written and before is not None:
                written.samples = before
            raise
        statements.append(statement)
        pool.used.update(inputs)
        if written:  # the new contents are unused
            pool.used.discard(inputs[0])
    except (NotApplicable, Discard):
        del pool.leaves[leaves:]
        pool.count, pool.values = count, values


def _can_delete(pool: Pool, name: str) -> bool:
    leaf = next((leaf for leaf in pool.leaves if leaf.name == name), None)
    return len(pool.values) > 3 and (leaf is None or not (leaf.is_parameter or leaf.is_global))


def _outs(pool: Pool, name: str, inputs: Iterable[str], args: dict) -> tuple[str, ...]:
    op = OPS[name]
    if op.effect in ("write", "none"):
        return ()
    count = 1
    names = tuple(pool[one].dtype for one in inputs)
    if op.effect == "value":
        count = len(op.dtypes_of(names, args))
    elif name == "split":
        count = len(op.reference(pool[next(iter(inputs))].indices, **args))
    return tuple(pool.name() for _ in range(count))


def _check_sizes(pool: Pool, outs: Iterable[str]) -> None:
    if any(pool[name].size > pool.limit or len(pool[name].shape) > 6 for name in outs):
        raise NotApplicable


def _finish(pool: Pool, statements: list[Statement], options: GeneratorOptions) -> Program:
    """Choose the outputs: unused values, targets of writes, and a few others."""
    rng, alive = pool.rng, list(pool.values)
    written = [one.inputs[0] for one in statements if OPS[one.op].effect == "write"]
    ends = [name for name in alive if name not in pool.used and not _is_leaf(pool, name)]
    chosen = [*rng.sample(ends, min(len(ends), rng.choice((1, 2, 2)))), *alive[-1:]]
    chosen += rng.sample(alive, min(len(alive), rng.choice((0, 1))))
    chosen += [name for name in written if name in pool.values][-2:]
    outputs = tuple(dict.fromkeys(chosen))
    loss: tuple[str, ...] = ()
    if options.has_gradients:
        loss = _loss(pool)
    program = Program(
        tuple(pool.leaves), tuple(statements), outputs, loss, realizes_together=rng.random() < 0.8
    )
    return program.without_unused()


def _is_leaf(pool: Pool, name: str) -> bool:
    return any(leaf.name == name for leaf in pool.leaves)


def _loss(pool: Pool) -> tuple[str, ...]:
    """Up to three values that depend on parameters."""
    found = [
        name
        for name, one in pool.values.items()
        if is_float(one.dtype) and one.sources and one.size
    ]
    ends = [name for name in found if name not in pool.used] or found
    return tuple(pool.rng.sample(ends, min(len(ends), 3)))
