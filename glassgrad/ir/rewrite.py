"""graph, Rules -> graph: apply rules everywhere until none fires, sources first or root first.

No recursion: a graph may be as deep as memory allows. A node is rebuilt only if a source changed.
"""

from __future__ import annotations

from typing import Any

from glassgrad.base.events import LISTENERS
from glassgrad.ir.facts import rebuilt
from glassgrad.ir.ops import Ops
from glassgrad.ir.pattern import Matcher, Rules
from glassgrad.ir.uop import UOp, toposort

MAX_FIRINGS = 1_000_000  # rules that never terminate are a bug: fail instead of hanging

Matchers = dict[Ops, Matcher | None]


def rewrite(root: UOp, rules: Rules, ctx: Any = None, bottom_up: bool = True) -> UOp:
    """The graph after the rules; `ctx` is passed to rules that take a context.

    Bottom-up, a rule sees rewritten sources, and its result is rewritten until nothing fires.
    Top-down, a rule sees a node as written, before its sources, and its result is offered to the
    rules again before its sources are visited.
    """
    matchers = rules.matchers(traced=bool(LISTENERS))
    driver = _bottom_up if bottom_up else _top_down
    return driver(root, matchers, ctx, rules.name)


def _bottom_up(root: UOp, matchers: Matchers, ctx: Any, title: str) -> UOp:
    """One traversal in topological order; more work only where a rule fires."""
    order = toposort((root,))
    position, after = _first_firing(order, matchers, ctx)
    if after is None:
        return root
    done = {node: node for node in order[:position]}
    rewriter = _Rewriter(matchers, ctx, title, done)
    rewriter.replace(order[position], after)
    for node in order[position + 1 :]:
        rewriter.rewrite_node(node)
    return done[root]


def _first_firing(order: list[UOp], matchers: Matchers, ctx: Any) -> tuple[int, UOp | None]:
    """The position where a rule fires first, and its result: most passes change little or
    nothing.
    """
    for position, node in enumerate(order):
        match = matchers[node.op]
        if match is not None and (after := match(node, ctx)) is not None:
            return position, after
    return 0, None


class _Rewriter:
    """Rewrites results of rules down to finished nodes, with an explicit stack."""

    def __init__(self, matchers: Matchers, ctx: Any, title: str, done: dict[UOp, UOp]) -> None:
        self.matchers = matchers
        self.ctx = ctx
        self.title = title
        self.done = done  # node -> its final form; these are not visited again
        self.firings = 0
        self.in_progress: set[UOp] = set()  # nodes whose replacement is being rewritten

    def replace(self, node: UOp, after: UOp) -> None:
        """Finish `node`, which a rule turned into `after`."""
        self.in_progress.add(node)
        self._run([(_close, node, after), (_visit, after, after)])

    def rewrite_node(self, node: UOp) -> None:
        """Rewrite a node whose sources are finished."""
        done = self.done
        if node in done:  # visited before, inside of a rule's result
            return
        current = rebuilt(node, done)
        if current is not node:
            self._run([(_same, node, current), (_visit, current, current)])
            return
        match = self.matchers[node.op]
        if match is None or (after := match(node, self.ctx)) is None:
            done[node] = node
        else:
            self.replace(node, after)

    def _run(self, stack: list[_Task]) -> None:
        while stack:
            task, node, other = stack.pop()
            task(self, stack, node, other)

    def fire(self, stack: list[_Task], node: UOp, after: UOp) -> None:
        self.firings += 1
        assert self.firings < MAX_FIRINGS and node not in self.in_progress, (
            f"the rules of '{self.title}' do not terminate on\n{node}"
        )
        self.in_progress.add(node)
        stack.append((_close, node, after))
        stack.append((_visit, after, after))


def _visit(state: _Rewriter, stack: list[_Task], node: UOp, _: UOp) -> None:
    done = state.done
    if node in done:
        return
    stack.append((_match, node, node))
    stack.extend([(_visit, source, source) for source in node.src if source not in done])


def _match(state: _Rewriter, stack: list[_Task], node: UOp, _: UOp) -> None:
    done = state.done
    if node in done:
        return
    current = rebuilt(node, done)
    if current is not node:
        stack.append((_same, node, current))
        if current not in done:
            stack.append((_match, current, current))
        return
    match = state.matchers[node.op]
    after = None if match is None else match(node, state.ctx)
    if after is None:
        done[node] = node
    else:
        state.fire(stack, node, after)


def _same(state: _Rewriter, stack: list[_Task], node: UOp, current: UOp) -> None:
    """`node` has the final form of `current`, the same node over finished sources."""
    state.done[node] = state.done[current]
    _inherit(state.done[node], node)


def _close(state: _Rewriter, stack: list[_Task], node: UOp, after: UOp) -> None:
    _same(state, stack, node, after)
    state.in_progress.discard(node)


_Task = tuple[Any, UOp, UOp]


def _inherit(node: UOp, replaced: UOp) -> None:
    if node.origin is None:
        node.origin = replaced.origin


def _top_down(root: UOp, matchers: Matchers, ctx: Any, title: str) -> UOp:
    done: dict[UOp, UOp] = {}
    entered: set[UOp] = set()
    stack: list[tuple[UOp, UOp | None]] = [(root, None)]
    while stack:
        node, final = stack.pop()
        if node in done:
            continue
        if final is not None:
            done[node] = rebuilt(final, done)
            _inherit(done[node], node)
            continue
        assert node not in entered, f"the rules of '{title}' do not terminate on\n{node}"
        entered.add(node)
        final = _fixed_point(node, matchers, ctx, title)
        stack.append((node, final))
        stack.extend([(source, None) for source in final.src if source not in done])
    return done[root]


def _fixed_point(node: UOp, matchers: Matchers, ctx: Any, title: str) -> UOp:
    """The node after rules have fired on it, and on their results, until none fires."""
    for _ in range(MAX_FIRINGS):
        match = matchers[node.op]
        after = None if match is None else match(node, ctx)
        if after is None:
            return node
        _inherit(after, node)
        node = after
    raise AssertionError(f"the rules of '{title}' do not terminate on\n{node}")
