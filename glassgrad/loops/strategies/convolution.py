"""Recipes for sums over windows: convolutions, and their gradients.

One operand, the *image*, is read where a place of the result and a step of the sum meet: its reads
overlap. The other, the *weights*, has channels of the result that the image lacks. Lanes are either
places along a row of the image, or channels: those need no row that is long or read step by step.
"""

from __future__ import annotations

from itertools import product, takewhile
from math import inf, prod

from glassgrad.base.fast_dataclasses import frozen, replace
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.stages import Target
from glassgrad.ir.strides import stride
from glassgrad.ir.uop import UOp
from glassgrad.loops.moves.cache_read import elements_read, window_size
from glassgrad.loops.moves.pack import MOST_BYTES
from glassgrad.loops.moves.skip import share_seen
from glassgrad.loops.nest import find_axis, next_number
from glassgrad.loops.opts import Opt, OptOps
from glassgrad.loops.strategies.convolution_order import Steps, find_steps, join_rows, walk_rows
from glassgrad.loops.strategies.cores import divide_tiles, is_even
from glassgrad.loops.strategies.flatten_spatial import join_places
from glassgrad.loops.strategies.recipe_builder import Draft
from glassgrad.loops.strategies.register_tile import MOST_ROWS, Tile, lanes_along, tiles, whole_rows

SHORT = 7  # a loop of so few steps is written out
MOST_PRODUCTS = 64  # that are written out in one step of a loop
MOST_APART = 128  # the same, if no two places read the same pointer
PART = 512  # steps of a sum that make a part, or one image
ENOUGH_REUSE = 4  # times that a copied element should be read
BESIDE = 1.15  # times as long, as vectors of the image lie across cache lines
JUMP = 2.5  # times as long, if the lanes of the image must be collected one by one
COPY = 4  # times as long as reading, with zeros put in
ONE_CORE = 2  # times as long, if there are no panels for another one
MOST_SEEN = 0.98  # of all steps of a sum, or loops begin and end with the axis
SCATTER = 24  # steps of the sum that take as long as writing a tile whose lanes lie apart


@frozen
class Windows:
    """A sum of products of overlapping reads, with a choice of rows and lanes for its tile."""

    reduce: UOp
    image: UOp
    weights: UOp
    rows: UOp
    columns: UOp
    lanes: int
    tile: Tile
    cost: float = inf  # time per product, in units of a perfect tile's

    @property
    def has_channel_lanes(self) -> bool:
        return self.columns in self.weights.ranges

    @property
    def is_copied(self) -> bool:
        """Are there zeros around the image, or narrow numbers to convert?"""
        return self.image.gate is not None or self.image.dtype is not self.reduce.dtype

    @property
    def panels(self) -> int:
        return -(-self.columns.size // (self.tile.vectors * self.lanes))

    @property
    def channels(self) -> UOp:
        return self.columns if self.has_channel_lanes else self.rows


def windows_recipe(draft: Draft) -> bool:
    """Shape a sum over windows; False, and nothing done, if the nest is none."""
    found = _find(draft)
    if found is None:
        return False
    found = _better_joined(draft, found)
    number = next_number(draft.nest)
    width = found.tile.vectors * found.lanes
    if not draft.attempt(Opt(OptOps.UPCAST, found.columns.axis, width)):
        return False
    if found.has_channel_lanes:
        draft.attempt(Opt(OptOps.LANES, number, found.lanes))
    if found.tile.rows > 1:
        draft.attempt(Opt(OptOps.UPCAST, found.rows.axis, found.tile.rows))
    if _first_part(draft.target, found.reduce) is not None:
        _block_parts(draft, found)
    elif found.has_channel_lanes and _block_channels(draft, found):
        _write_out_columns(draft, found)
        return True
    elif not found.has_channel_lanes:
        _block_places(draft, found)
    _write_out(draft, found)
    return True


# ---------------------------------------------------------------------- which tile


def _find(draft: Draft, only: int | None = None) -> Windows | None:
    """The best tile: with lanes along the image, or along the weights' channels.

    Of all places of the result it may be that `only` one axis counts.
    """
    reduces, stores = draft.blocks(Ops.REDUCE), draft.blocks(Ops.STORE)
    if len(reduces) != 1 or not stores or reduces[0].arg is not Ops.ADD:
        return None
    (reduce,) = reduces
    loads = draft.loads(reduce)
    outer = [r for r in draft.nest.outer if r.kind is AxisKind.LOOP]
    found: list[Windows] = []
    for image, weights in (loads, loads[::-1]) if len(loads) == 2 else ():
        shared = _overlapping(image, reduce)
        places = [r for r in outer if r in image.ranges and r not in weights.ranges]
        if shared.isdisjoint(places):
            continue
        if _first_part(draft.target, reduce) is None:  # tiles of other axes need more windows
            places = [r for r in places if r in shared and only in (None, r.axis)]
        channels = [r for r in outer if r in weights.ranges and r not in image.ranges]
        for place, channel in product(places, channels):
            for rows, columns in ((place, channel), (channel, place)):
                lanes = lanes_along(draft, reduce, columns)
                wide = [] if rows is channel else whole_rows(draft, rows, columns, lanes)
                for tile in (*tiles(draft, rows, columns, lanes), *wide):
                    made = Windows(reduce, image, weights, rows, columns, lanes, tile)
                    found.append(replace(made, cost=_cost(made, stores, draft.target)))
    best = min(found, key=lambda made: made.cost, default=None)
    return best if best is not None and best.cost < inf else None


def _better_joined(draft: Draft, found: Windows) -> Windows:
    """The same with rows and columns of the image as one axis, if a tile fits that better."""
    if _first_part(draft.target, found.reduce) is not None:
        return found
    other = Draft(draft.nest, draft.target)
    shared, size = _overlapping(found.image, found.reduce), found.reduce.dtype.itemsize
    number = join_places(other, found.image, shared, size)
    joined = None if number is None else _find(other, number)
    if joined is None or not joined.has_channel_lanes or joined.cost >= found.cost:
        return found
    draft.nest = other.nest
    return joined


def _overlapping(image: UOp, reduce: UOp) -> set[UOp]:
    """Places of the result that share an index with steps of the sum."""
    reduced = set(reduce.bound)
    mixed = [i.ranges for i in image.indices if not reduced.isdisjoint(i.ranges)]
    return set[UOp]().union(*mixed) - reduced


def _first_part(target: Target, reduce: UOp) -> UOp | None:
    """The axis of a sum that goes by in parts, if a tile reads more than the cache holds."""
    width = target.vector_bytes * 2
    first, depth = reduce.bound[0], prod(r.size for r in reduce.bound)
    return first if depth * width > target.l2_bytes * 3 // 4 and len(reduce.bound) > 1 else None


def _cost(found: Windows, stores: list[UOp], target: Target) -> float:
    """Time per product, in units of a perfect tile's."""
    depth, size = prod(r.size for r in found.reduce.bound), found.reduce.dtype.itemsize
    has_parts = _first_part(target, found.reduce) is not None
    if has_parts and not found.has_channel_lanes:
        return inf
    cost = found.tile.cost * target.vector_bytes / (found.lanes * size)
    if found.has_channel_lanes and found.tile.rows == found.rows.size:
        steps = find_steps(found.reduce, found.image)
        if steps is not None and _fits_beside(found, steps, target):
            cost *= share_seen(found.image, steps.column)
        elif found.tile.rows > MOST_ROWS:
            return inf
    if has_parts and not is_even(found.panels, target.cores):
        cost *= ONE_CORE  # panels are what cores share best: other loops copy every part again
    written = [stride(store.src[0], found.columns) for store in stores]
    if not found.has_channel_lanes:
        if any(step != 1 for step in written):
            return inf
        return cost * (BESIDE if stride(found.image, found.columns) == 1 else JUMP)
    if all(step == 1 for step in written):
        return cost
    is_row = all(stride(store.src[0], found.rows) == 1 for store in stores)
    return cost + SCATTER / depth * (1 if is_row else 4)


# ---------------------------------------------------------------------- loops around it


def _block_channels(draft: Draft, found: Windows) -> bool:
    """Weights that fit the cache stay there while images go by. Others go by panel by panel, if
    all images fit; else in blocks of panels, images inside of a block.

    Do the sums now go along rows, all channels of one before the next?
    """
    l2, size = draft.target.l2_bytes, found.reduce.dtype.itemsize
    loops = [r for r in draft.nest.outer if r.kind is AxisKind.LOOP]
    inside = [r.axis for r in loops if r.axis == found.rows.axis]
    panels = next((r for r in loops if r.axis == found.channels.axis), None)
    others = [r for r in loops if r.axis not in (found.rows.axis, found.channels.axis)]
    weights, around = prod(r.size for r in found.weights.ranges) * size, [r.axis for r in others]
    order = [*around, *([] if panels is None else [panels.axis]), *inside]
    if panels is not None and not (around and weights <= l2 // 2):
        times = prod(r.size for r in others)
        blocks, each = _blocks_of_panels(draft, found, panels, weights, times)
        images = _image_bytes(found)
        is_once = images <= _copied_once(draft.target) and panels.size * images < times * weights
        keeps_images = images <= l2 or is_once
        order = [*blocks, *each, *around] if keeps_images else [*blocks, *around, *each]
        order += inside
    draft.arrange(order)
    divide_tiles(draft, order)
    order = [r.axis for r in draft.nest.outer if not r.kind.is_unrolled]
    if not order:
        return False
    outside = list(takewhile(lambda number: number not in (*around, *inside), order))
    place = outside[-1] if outside else order[0]  # panel by panel, or all at once
    return _copy_both(draft, found, order, place)


def _copy_both(draft: Draft, found: Windows, order: list[int], place: int) -> bool:
    """Weights inside of one loop, and a window of the image, if that is copied.

    Do the sums go along rows then? Weights are packed as they lie, and a row of the window goes
    through all channels; where places lie apart, one loop goes over rows and channels.
    """
    pack = Opt(OptOps.STAGE, place, found.weights.src[0].arg.slot)
    number = _copied_in(draft, found, order) if found.is_copied else None
    if number is not None and _go_along_rows(draft, found, number, pack):
        return True
    if number is not None:
        draft.attempt(Opt(OptOps.WINDOW, number, found.image.src[0].arg.slot))
    draft.attempt(pack)
    return False


def _go_along_rows(draft: Draft, found: Windows, number: int, pack: Opt) -> bool:
    """The same, if there are rows, and a tile suits them."""
    before, steps = draft.nest, find_steps(found.reduce, found.image)
    if steps is None or not walk_rows(draft, steps, found.image, number):
        return False
    if _lie_apart(draft):
        draft.attempt(pack)
        join_rows(draft, steps, found.reduce, found.weights)
        return True
    draft.nest = before
    if not _fits_beside(found, steps, draft.target):
        return False
    draft.attempt(pack)
    return walk_rows(draft, steps, found.image, number)


def _fits_beside(found: Windows, steps: Steps, target: Target) -> bool:
    """Are there registers for all places that the columns of a window share, beside the sums?"""
    rows, vectors = found.tile.rows, found.tile.vectors
    return rows * vectors + (rows + steps.column.size - 1) + vectors + 1 <= target.registers


def _blocks_of_panels(
    draft: Draft, found: Windows, panels: UOp, weights: int, times: int
) -> tuple[list[int], list[int]]:
    """The axis of blocks, and that of their panels: as few blocks as scratch can hold and cores can
    share, unless their weights come from memory too often then.
    """
    l2, copied = draft.target.l2_bytes, COPY if found.is_copied else 1

    def traffic(count: int) -> float:
        blocks = panels.size // count
        is_kept = weights // blocks <= l2 // 2
        return blocks * _image_bytes(found) * copied + (0 if is_kept else times * weights)

    sizes = [n for n in range(1, panels.size + 1) if panels.size % n == 0]
    fitting = [n for n in sizes if weights * n <= MOST_BYTES * panels.size] or [1]
    even = [n for n in fitting if is_even(panels.size // n, draft.target.cores)]
    count = min(even or fitting, key=lambda n: (traffic(n), -n))
    if count == panels.size:
        return [], [panels.axis]
    number = next_number(draft.nest)
    is_cut = count > 1 and draft.attempt(Opt(OptOps.TILE, panels.axis, count))
    return [panels.axis], [number] if is_cut else []


def _image_bytes(found: Windows) -> float:
    """Of all that is read of the images."""
    return elements_read(found.image, set()) * found.reduce.dtype.itemsize


def _block_parts(draft: Draft, found: Windows) -> None:
    """A panel of channels; a part of the sum; all results of the panel take their share of it.

    Where one panel is all, the shortest loop is around: every step of it copies the parts again.
    """
    loops = [r for r in draft.nest.outer if r.kind is AxisKind.LOOP]
    if not loops:
        return
    first = min(loops, key=lambda r: (r.axis != found.channels.axis, r.size)).axis
    draft.arrange([first, *[r.axis for r in loops if r.axis != first]])
    divide_tiles(draft, [first])
    part = found.reduce.bound[0].axis
    if not draft.attempt(Opt(OptOps.PARTIAL, part, (first, _images(found.reduce)))):
        return
    if found.is_copied:
        draft.attempt(Opt(OptOps.WINDOW, part, found.image.src[0].arg.slot))
    draft.attempt(Opt(OptOps.STAGE, part, found.weights.src[0].arg.slot))


def _images(reduce: UOp) -> int:
    """How many steps of the first axis make a part: small images go by several at a time."""
    first, *others = reduce.bound
    most = max(1, PART // prod(r.size for r in others))
    return max(n for n in range(1, min(most, first.size - 1) + 1) if first.size % n == 0)


def _copied_once(target: Target) -> int:
    """How many bytes of images may be copied, and stay in the last cache while panels go by."""
    return min(MOST_BYTES, target.l3_bytes // (2 * target.cores))


def _copied_in(draft: Draft, found: Windows, order: list[int]) -> int | None:
    """The outermost loop where a window fits the second cache; but if panels go by around that, all
    is copied once, if that is little enough for the last cache.
    """
    target, size = draft.target, found.reduce.dtype.itemsize
    slot = found.image.src[0].arg.slot

    def copied(number: int) -> float:
        return window_size(draft.nest, find_axis(draft.nest, number), slot) * size

    fitting = next((number for number in order if copied(number) <= target.l2_bytes), None)
    between = order[: order.index(fitting)] if fitting is not None else []
    repeats = prod(
        r.size for r in draft.nest.outer if r.axis in between and r not in found.image.ranges
    )
    if repeats > target.cores and copied(order[0]) <= _copied_once(target):
        return order[0]
    return fitting


def _block_places(draft: Draft, found: Windows) -> None:
    """Rows and columns innermost; around them a window of the image, copied once for all rows."""
    loops = [r for r in draft.nest.outer if r.kind is AxisKind.LOOP]
    inside = {found.rows.axis, found.columns.axis}
    around = [r.axis for r in loops if r.axis not in inside]
    if not around:
        divide_tiles(draft, [r.axis for r in loops])
        return
    within = sorted([r.axis for r in loops if r.axis in inside], key=found.columns.axis.__eq__)
    draft.arrange([*around, *within])
    divide_tiles(draft, [*around, *within])
    if found.rows.size >= ENOUGH_REUSE:
        draft.attempt(Opt(OptOps.WINDOW, around[-1], found.image.src[0].arg.slot))
    size = prod(r.size for r in found.weights.ranges) * found.reduce.dtype.itemsize
    place = around[0] if size <= draft.target.l2_bytes else found.rows.axis
    draft.attempt(Opt(OptOps.STAGE, place, found.weights.src[0].arg.slot))


def _write_out(draft: Draft, found: Windows) -> None:
    """Few steps of the sum have no loop, unless they would read the same places of the image: those
    that stay in registers from step to step are too many. Places of several rows share no pointer.
    """
    products = found.tile.rows * found.tile.vectors
    if found.has_channel_lanes and _lie_apart(draft):
        (reduce,) = draft.blocks(Ops.REDUCE)
        written, most = [*reduce.bound], MOST_APART
    else:
        tile = {found.rows} if found.has_channel_lanes else set[UOp]()
        mixed = [i.ranges for i in found.image.indices if not tile.isdisjoint(i.ranges)]
        apart = [r for r in found.reduce.bound if not any(r in ranges for ranges in mixed)]
        written, most = apart[-1:], MOST_PRODUCTS
    for axis in reversed(written):
        products *= axis.size
        if axis.size > SHORT or products > most:
            return
        draft.attempt(Opt(OptOps.UNROLL, axis.axis, axis.size))


def _write_out_columns(draft: Draft, found: Windows) -> None:
    """The columns of a window, and no step that sees nothing but the zeros around an image."""
    (reduce,) = draft.blocks(Ops.REDUCE)
    column = reduce.bound[-1]
    products = found.tile.rows * found.tile.vectors * column.size
    steps = find_steps(found.reduce, found.image)
    if steps is not None and share_seen(found.image, steps.row) < MOST_SEEN:
        draft.attempt(Opt(OptOps.SKIP, steps.row.axis))
    if column.size <= SHORT and products <= MOST_APART:
        draft.attempt(Opt(OptOps.SKIP, column.axis))
        draft.attempt(Opt(OptOps.UNROLL, column.axis, column.size))


def _lie_apart(draft: Draft) -> bool:
    """Do the places of a tile lie unevenly, so that each has a pointer of its own?"""
    loads = [index for block in draft.blocks(Ops.REDUCE) for index in draft.loads(block)]
    tiled = {r for index in loads for r in index.ranges if r.kind is AxisKind.UPCAST}
    return any(stride(index, r) is None for index in loads for r in tiled)
