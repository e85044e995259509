"""Program -> LLVM IR: loops are blocks with phis, pointers getelementptrs, vectors stay vectors.

The function is `void name(ptr args, ptr scratch, i64 begin, i64 end)`. args[i] is the pointer of
PARAM i, followed by the VARIABLEs as 64-bit integers in order of name. The CORE range runs from
begin to end. No optimisation pass runs on this text, so it has the form that the code generator
prefers: accumulators are phis, loops are tested at the bottom.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

from glassgrad.base.fast_dataclasses import field, mutable
from glassgrad.ir.ops import Ops
from glassgrad.ir.stages import Target
from glassgrad.ir.uop import UOp
from glassgrad.render.cores import steps_per_iteration
from glassgrad.render.llvm_memory import MEMORY, MemoryRow
from glassgrad.render.llvm_non_temporal import FENCE, METADATA, NonTemporalStores
from glassgrad.render.llvm_pointers import advancing_indices, next_pointer, start_pointer
from glassgrad.render.llvm_values import (
    VALUES,
    Row,
    constant,
    llvm_type,
)  # fmt: skip
from glassgrad.render.llvm_vectors import VECTORS, is_shuffle

RANGE, END, IF, ENDIF, ACC, ASSIGN = (
    Ops.RANGE, Ops.END, Ops.IF, Ops.ENDIF, Ops.ACC, Ops.ASSIGN
)  # fmt: skip
PARAM, VARIABLE, STACK = Ops.PARAM, Ops.VARIABLE, Ops.STACK
OPENS = {END: RANGE, ENDIF: IF}

# Align innermost loops with cache lines: a short loop that spans one line more than necessary takes
# up to a fifth longer, most of all where two threads share a core.
ALIGNED = '!1 = !{!"llvm.loop.align", i32 64}'

# Use the widest vector registers even where the code generator prefers narrower ones.
ATTRIBUTES = (
    'attributes #0 = { nounwind "prefer-vector-width"="512" "min-legal-vector-width"="512" }'
)


class LLVMRenderer:
    """Renders programs for LLVM's code generator."""

    def __init__(self, target: Target | None = None) -> None:
        self.target = target

    def render(self, name: str, uops: tuple[UOp, ...] | list[UOp]) -> str:
        function = Function(tuple(uops))
        for uop in function.uops:
            if uop not in function.unused:
                function.write(uop)
        return function.text(name)


@mutable
class OpenBlock:
    """A loop or condition whose end is not written yet."""

    label: str
    before: str  # the predecessor block
    starts: dict[UOp, str]  # accumulators assigned inside, with their values before
    phis: dict[UOp, str] = field(default_factory=dict)
    # INDEX that advances in the loop -> its start pointer
    advancing: dict[UOp, str] = field(default_factory=dict)
    phi_line: int = 0  # where the phis are inserted at the end of the loop
    index: str = ""
    first: str = "0"
    last: str = ""
    may_be_skipped: bool = False
    is_innermost: bool = True


class Function:
    """One function being written: names, lines, open blocks, current values of accumulators."""

    def __init__(self, uops: tuple[UOp, ...]) -> None:
        self.uops = uops
        self.names: dict[UOp, str] = {}
        self.values: dict[UOp, str] = {}  # ACC -> the name of its current value
        self.opened: dict[UOp, OpenBlock] = {}
        self.lines: list[str] = []
        self.block = "entry"
        self.declared: dict[str, str] = {}
        self.zero_bytes = 0
        self.counts: defaultdict[str, int] = defaultdict(int)
        self.assigned = assigned_inside(uops)
        self.non_temporal = NonTemporalStores(uops)
        self.advancing_indices = advancing_indices(uops)
        self.cores = steps_per_iteration(uops)
        self.metadata: list[str] = []
        advancing = {index for steps in self.advancing_indices.values() for index in steps}
        self.unused = unused(uops, advancing)
        params = [uop.arg.slot for uop in uops if uop.op is PARAM]
        self.slots = max(params, default=-1) + 1
        variables = sorted((uop for uop in uops if uop.op is VARIABLE), key=lambda u: u.arg[0])
        self.variables = {uop: self.slots + i for i, uop in enumerate(variables)}

    def write(self, uop: UOp) -> None:
        row = ROWS.get(uop.op)
        assert row is not None, f"there is no LLVM instruction for {uop.op}: {uop!r}"
        self.names[uop] = row(self, uop)

    def text(self, name: str) -> str:
        head = list(self.declared.values())
        if self.zero_bytes:
            size = self.zero_bytes
            head.insert(0, f"@zeros = private constant [{size} x i8] zeroinitializer, align 64")
        signature = f'define void @"{name}"(ptr %args, ptr %scratch, i64 %begin, i64 %end) #0 {{'
        fence, note = ([FENCE], [METADATA]) if self.non_temporal.runs else ([], [])
        body = [signature, "entry:", *self.lines, *fence, "  ret void", "}"]
        return "\n".join([*head, *body, ATTRIBUTES, *note, *self.metadata, ""])

    # ------------------------------------------------------------------ used by rows

    def name(self, uop: UOp) -> str:
        """The name of a uop's value here; for an accumulator, of its current value."""
        return self.values[uop] if uop.op is ACC else self.names[uop]

    def fresh(self, stem: str) -> str:
        number = self.counts[stem]
        self.counts[stem] += 1
        return f"{stem}{number}"

    def line(self, stem: str, text: str) -> str:
        name = f"%{self.fresh(stem)}"
        self.lines.append(f"  {name} = {text}")
        return name

    def do(self, text: str) -> None:
        self.lines.append(f"  {text}")

    def start_block(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self.block = label

    def aligned_loop(self) -> str:
        """Metadata for the end of a loop whose code is aligned with a cache line."""
        if not self.metadata:
            self.metadata.append(ALIGNED)
        number = len(self.metadata) + 1
        self.metadata.append(f"!{number} = distinct !{{!{number}, !1}}")
        return f", !llvm.loop !{number}"

    def intrinsic(self, result: str, name: str, *arguments: str) -> str:
        kinds = ", ".join(_type_of(argument) for argument in arguments)
        self.declared[name] = f"declare {result} @llvm.{name}({kinds})"
        return f"call {result} @llvm.{name}({', '.join(arguments)})"


def _type_of(argument: str) -> str:
    """The type of "<8 x float> %x"."""
    return argument[: argument.index(">") + 1] if argument[0] == "<" else argument.split()[0]


def assigned_inside(uops: tuple[UOp, ...]) -> dict[UOp, list[UOp]]:
    """For every RANGE and IF: the accumulators created before it and assigned inside it."""
    position = {uop: i for i, uop in enumerate(uops)}
    assigned: dict[UOp, list[UOp]] = {}
    open_now: list[UOp] = []
    for uop in uops:
        if uop.op is RANGE or uop.op is IF:
            assigned[uop] = []
            open_now.append(uop)
        elif uop.op in OPENS:
            open_now.remove(uop.src[0])
        elif uop.op is ASSIGN:
            acc = uop.src[0]
            for opener in open_now:
                if position[acc] < position[opener] and acc not in assigned[opener]:
                    assigned[opener].append(acc)
    return assigned


def unused(uops: tuple[UOp, ...], advancing: set[UOp]) -> set[UOp]:
    """Values that need no instruction: offsets of advancing pointers, elements of shuffled
    vectors.
    """
    shuffled = {uop for uop in uops if uop.op is STACK and is_shuffle(uop)}
    spared = {index.src[1] for index in advancing}.union(*[stack.src for stack in shuffled])
    if not spared:
        return spared
    users = [uop for uop in uops if uop not in advancing and uop not in shuffled]
    return {uop for uop in spared if not uop.is_const}.difference(*[user.src for user in users])


# ---------------------------------------------------------------------- leaves


def _const(f: Function, u: UOp) -> str:
    return constant(u.arg, u.dtype)


def _slot(f: Function, kind: str, slot: int, stem: str) -> str:
    pointer = f.line("slot", f"getelementptr i64, ptr %args, i64 {slot}")
    return f.line(stem, f"load {kind}, ptr {pointer}, align 8")


def _param(f: Function, u: UOp) -> str:
    pointer = _slot(f, "ptr", u.arg.slot, "param")
    f.non_temporal.test_alignment(f, u, pointer)
    return pointer


def _variable(f: Function, u: UOp) -> str:
    value = _slot(f, "i64", f.variables[u], "variable")
    if u.dtype.bits == 64:
        return value
    return f.line("variable", f"trunc i64 {value} to {llvm_type(u.dtype)}")


def _scratch(f: Function, u: UOp) -> str:
    return f.line("scratch", f"getelementptr i8, ptr %scratch, i64 {u.arg[2]}")


# ---------------------------------------------------------------------- accumulators


def _acc(f: Function, u: UOp) -> str:
    f.values[u] = f.name(u.src[0])
    return f.values[u]


def _assign(f: Function, u: UOp) -> str:
    acc, value = u.src
    f.values[acc] = f.name(value)
    return f.values[acc]


def _after(f: Function, u: UOp) -> str:
    """Lines are already in order; the value is the current one."""
    return f.name(u.src[0])


# ---------------------------------------------------------------------- loops and conditions


def _range(f: Function, u: UOp) -> str:
    """br loop; loop: i = phi [first, before], [i + 1, end of the body]"""
    kind = llvm_type(u.dtype)
    for outer in f.opened.values():
        outer.is_innermost = False
    loop = OpenBlock(f.fresh("loop"), f.block, {acc: f.values[acc] for acc in f.assigned[u]})
    loop.first, loop.last = _part_of_job(f, u) if u in f.cores else ("0", f.name(u.src[0]))
    loop.may_be_skipped = u in f.cores or u.src[0].vmin < 1
    steps = f.advancing_indices.get(u, {})
    loop.advancing = {
        index: start_pointer(f, index, step, loop.first) for index, step in steps.items()
    }
    if loop.may_be_skipped:
        some = f.line("some", f"icmp slt {kind} {loop.first}, {loop.last}")
        f.do(f"br i1 {some}, label %{loop.label}, label %{loop.label}.done")
    else:
        f.do(f"br label %{loop.label}")
    f.start_block(loop.label)
    loop.phi_line = len(f.lines)
    loop.index = f"%{f.fresh('i')}"
    loop.phis = {acc: f"%{f.fresh('acc')}" for acc in loop.starts}
    f.names |= {index: f"%{f.fresh('at')}" for index in loop.advancing}
    f.values |= loop.phis
    f.opened[u] = loop
    return loop.index


def _part_of_job(f: Function, u: UOp) -> tuple[str, str]:
    """The bounds of a loop over cores: `begin` and `end`, relative to the outer loops."""
    begin, end, inside = "%begin", "%end", f.cores[u]
    outer = [loop for loop in f.opened if loop in f.cores]
    for loop in outer:
        before = f.line("before", f"mul i64 {f.opened[loop].index}, {f.cores[loop]}")
        begin = f.line("begin", f"sub i64 {begin}, {before}")
        end = f.line("end", f"sub i64 {end}, {before}")
    if outer:
        begin = f.line("begin", f.intrinsic("i64", "smax.i64", f"i64 {begin}", "i64 0"))
    if inside > 1:
        begin = f.line("begin", f"sdiv i64 {begin}, {inside}")
        end = f.line("end", f"add i64 {end}, {inside - 1}")
        end = f.line("end", f"sdiv i64 {end}, {inside}")
    if outer:
        end = f.line("end", f.intrinsic("i64", "smin.i64", f"i64 {end}", f"i64 {u.size}"))
    return begin, end


def _end(f: Function, u: UOp) -> str:
    """if (i + 1 < size) repeat; completes the phis at the top"""
    opener = u.src[0]
    loop = f.opened.pop(opener)
    kind = llvm_type(opener.dtype)
    latch = f.block
    steps = {
        index: next_pointer(f, index, f.advancing_indices[opener][index])
        for index in loop.advancing
    }
    following = f.line("next", f"add nsw {kind} {loop.index}, 1")
    more = f.line("more", f"icmp slt {kind} {following}, {loop.last}")
    note = f.aligned_loop() if loop.is_innermost else ""
    f.do(f"br i1 {more}, label %{loop.label}, label %{loop.label}.done{note}")
    phis = [_phi(loop.index, kind, (loop.first, loop.before), (following, latch))]
    for index, start in loop.advancing.items():
        phis.append(_phi(f.names[index], "ptr", (start, loop.before), (steps[index], latch)))
    for acc, name in loop.phis.items():
        was = (loop.starts[acc], loop.before)
        phis.append(_phi(name, llvm_type(acc.dtype), was, (f.values[acc], latch)))
    f.lines[loop.phi_line : loop.phi_line] = phis
    _close(f, loop, latch)
    return ""


def _phi(name: str, kind: str, *sources: tuple[str, str]) -> str:
    pairs = ", ".join(f"[ {value}, %{block} ]" for value, block in sources)
    return f"  {name} = phi {kind} {pairs}"


def _close(f: Function, opened: OpenBlock, last_block: str) -> None:
    """Start the block after; if the body may be skipped, accumulators need a phi."""
    f.start_block(f"{opened.label}.done")
    if not opened.may_be_skipped:
        return
    for acc, start in opened.starts.items():
        name = f"%{f.fresh('acc')}"
        sources = (start, opened.before), (f.values[acc], last_block)
        f.lines.append(_phi(name, llvm_type(acc.dtype), *sources))
        f.values[acc] = name


def _if(f: Function, u: UOp) -> str:
    opened = OpenBlock(f.fresh("if"), f.block, {acc: f.values[acc] for acc in f.assigned[u]})
    opened.may_be_skipped = True
    f.do(f"br i1 {f.name(u.src[0])}, label %{opened.label}, label %{opened.label}.done")
    f.start_block(opened.label)
    f.opened[u] = opened
    return ""


def _endif(f: Function, u: UOp) -> str:
    opened = f.opened.pop(u.src[0])
    last_block = f.block
    f.do(f"br label %{opened.label}.done")
    _close(f, opened, last_block)
    return ""


def _no_op(f: Function, u: UOp) -> str:
    """Each core runs its part alone: nothing to synchronize with."""
    return ""


# ---------------------------------------------------------------------- the table

FunctionRow = Callable[[Function, UOp], str]

ROWS: dict[Ops, FunctionRow | MemoryRow | Row] = {
    **VALUES,
    Ops.CONST: _const,
    Ops.PARAM: _param,
    Ops.VARIABLE: _variable,
    Ops.SCRATCH: _scratch,
    Ops.ACC: _acc,
    Ops.ASSIGN: _assign,
    Ops.AFTER: _after,
    Ops.RANGE: _range,
    Ops.END: _end,
    Ops.IF: _if,
    Ops.ENDIF: _endif,
    **MEMORY,
    **VECTORS,
    Ops.BARRIER: _no_op,
}
