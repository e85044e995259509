"""A packed capture -> C: a function that runs the kernels on the pool, and its header.

bases      memory that launches work on: arguments, results, the function's state, an arena
words      the arguments of all launches; each call writes the addresses anew
table      what the pool's `run` executes (devices/cpu/pool_code.py)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from typing import Any

from glassgrad.base.dtype import dtypes
from glassgrad.base.errors import CaptureError
from glassgrad.base.fast_dataclasses import frozen
from glassgrad.devices.cpu import pool_code
from glassgrad.engine.export.c_template import HEADER, INCLUDED, SOURCE
from glassgrad.engine.export.serialize import Row, unpack_size
from glassgrad.ir.ops import Ops
from glassgrad.memory.layout import contiguous_strides, is_row_major

C_TYPES = {
    "bool": "uint8_t", "float32": "float", "float64": "double", "float16": "uint16_t",
    "bfloat16": "uint16_t", "fp8e4m3": "uint8_t", "fp8e5m2": "uint8_t",
}  # fmt: skip


# The pool's per-thread state ("box"): its size and the offsets of its fields.
POOL_FIELDS = {
    "box_bytes": pool_code.BOX_BYTES,
    "pauses": pool_code.SPINS_AFTER_TABLE,
    "pauses_inside": pool_code.SPINS_IN_TABLE,
    "scratch_at": pool_code.SCRATCH_AT,
    "pauses_inside_at": pool_code.SPINS_IN_TABLE_AT,
    "caller_at": pool_code.CALLER_AT,
    "pauses_at": pool_code.SPINS_AFTER_TABLE_AT,
    "mutex_at": pool_code.MUTEX_AT,
    "condition_at": pool_code.CONDITION_AT,
}

# Words that C, its library or the template use.
RESERVED_NAMES = """
auto break case char const continue default do double else enum extern float for goto if inline int
long register restrict return short signed sizeof static struct switch typedef union unsigned void
volatile while main malloc free memcpy memset read write exp log sin sqrt pow abs bases words cells
seed used places table lock message start set run worker call refuse bad_index kernel random_cells
wanted_threads is_ready run_launches failed
"""


def c_name(name: str, otherwise: str) -> str:
    """The name, or a variant of it, that has no other meaning in C."""
    if not (name.isidentifier() and name.isascii()):
        return otherwise
    return f"{name}_" if name in RESERVED_NAMES.split() else name


@frozen
class Result:
    """An output of the C function: written by the kernels directly, or copied from a base."""

    name: str
    ctype: str
    shape: list[Any]
    base: int
    is_direct: bool
    offset: int  # bytes
    nbytes: int


class CText:
    """The text of both files."""

    def __init__(self, row: Row, entry: Row, arguments: list[str]) -> None:
        self.row, self.entry = row, entry
        self.taken: set[str] = set()
        self.arguments = [self._unique_name(name, f"x{n}") for n, name in enumerate(arguments)]
        self.name: str = row["name"]
        self.capture: Row = entry["capture"]
        names = {n: self._unique_name(v[0], f"size_{n}") for n, v in enumerate(row["variables"])}
        self.variables = [(names[n], *row["variables"][n][1:]) for n in self._used_variables()]
        self.variable_names = names
        self.results = self._results()

    def _unique_name(self, name: str, otherwise: str) -> str:
        """A name that no other argument has."""
        found = c_name(name, otherwise)
        while found in self.taken:
            found += "_"
        self.taken.add(found)
        return found

    # ------------------------------------------------------------------ header

    def header(self) -> str:
        guard = f"{self.name}_h".upper()
        return HEADER.format(
            name=self.name, guard=guard, rows=self._parameter_rows(), call=self.prototype()
        )

    def prototype(self) -> str:
        return f"int {self.name}({self.parameters()})"

    def parameters(self) -> str:
        pairs = zip(self.arguments, self.entry["layouts"], strict=True)
        parts = [
            f"{'' if n in self.entry['written'] else 'const '}{ctype_of(layout[1])} *{name}"
            for n, (name, layout) in enumerate(pairs)
        ]
        parts += [f"int64_t {name}" for name, *_ in self.variables]
        parts += [f"{result.ctype} *{result.name}" for result in self.results]
        return ", ".join(parts) or "void"

    def _names(self) -> list[str]:
        variables = [name for name, *_ in self.variables]
        return [*self.arguments, *variables, *(result.name for result in self.results)]

    def _parameter_rows(self) -> str:
        rows = []
        for name, (shape, dtype, strides, *_) in zip(
            self.arguments, self.entry["layouts"], strict=True
        ):
            rows.append(f"{name}: {dtype} {_shown(shape)}, strides {_shown(strides)}")
        rows += [f"{name}: from {low} to {high}" for name, low, high in self.variables]
        rows += [f"{r.name}: written, {r.ctype} {_shown(r.shape)}" for r in self.results]
        return "\n".join(f" *   {row}" for row in rows)

    # ------------------------------------------------------------------ arguments and results

    def _used_variables(self) -> list[int]:
        used = {n for launch in self.capture["launches"] for n in launch["variables"]}
        names = {name for check in self.entry["size_checks"] for name in _names_in(check["ends"])}
        used |= {n for n, (name, *_) in enumerate(self.row["variables"]) if name in names}
        return sorted(used)

    def _results(self) -> list[Result]:
        found = []
        outputs = [o for o in self.entry["outputs"] if "argument" not in o or "window" in o]
        for number, output in enumerate(outputs):
            name = self._unique_name("out" if len(outputs) == 1 else f"out_{number}", "")
            dtype, shape, strides, offset = output["window"]
            max_shape = [n if isinstance(n, int) else int(unpack_size(n)) for n in shape]
            base, size = self._base_of(output)
            is_whole = offset == 0 and strides == contiguous_strides(tuple(max_shape))
            used = sum(o.get("made", -1) == output.get("made", -2) for o in outputs)
            is_direct = "made" in output and used == 1 and is_whole and prod(max_shape) == size
            if not is_direct and (
                max_shape != shape or not is_row_major(tuple(max_shape), tuple(strides))
            ):
                raise CaptureError(
                    f"result {number} of shape {tuple(max_shape)} is a strided view, but C "
                    "functions return contiguous arrays",
                    hint="return its .contiguous()",
                )
            item = dtypes.named(dtype).itemsize
            moved = prod(max_shape) * item
            ctype = ctype_of(dtype)
            found.append(Result(name, ctype, max_shape, base, is_direct, offset * item, moved))
        return found

    def _base_of(self, output: Row) -> tuple[int, int]:
        """The base of an output, and its number of elements (-1: not allocated by the function)."""
        bases: list[Row] = self.entry["bases"]
        if "made" in output:
            return len(bases) + output["made"], self.capture["allocated"][output["made"]][1]
        kind = "argument" if "argument" in output else "storage"
        for number, base in enumerate(bases):
            if base.get(kind) == output[kind]:
                return number, -1
        raise CaptureError(
            "a result is a tensor that the captured function does not compute or write",
            hint="remove it from the results",
        )

    # ------------------------------------------------------------------ source

    def source(self, parts: dict[str, str]) -> str:
        """The C file; `parts` are the paths of the storages' contents."""
        kernels, launches = self.row["kernels"], self.capture["launches"]
        starts, words, values = self._words()
        rows = ",\n    ".join(
            f"{{{self.name}_kernel_{launch['kernel']}, words + {start}, "
            f"{kernels[launch['kernel']][2]}, {kernels[launch['kernel']][3]}}}"
            for launch, start in zip(launches, starts, strict=True)
        )
        fields = {
            "name": self.name,
            **POOL_FIELDS,
            "declared": "".join(
                f"extern kernel {self.name}_kernel_{n};\n" for n in range(len(kernels))
            ),
            "included": "".join(
                INCLUDED.format(name=self.name, part=part, path=path)
                for part, path in parts.items()
            ),
            "bases": len(self.entry["bases"]) + len(self.capture["allocated"]) + 1,
            "words": max(1, len(words) + len(values)),
            "places": ", ".join(f"{{{w}, {b}, {o}}}" for w, b, o in words) or "{0, 0, 0}",
            "place_count": len(words),
            "launches": rows or "{0, 0, 0, 0}",
            "launch_count": len(launches),
            "scratch": max((kernels[launch["kernel"]][3] for launch in launches), default=0),
            "cells": max(1, sum(len(c["checks"]) for c in self.capture["cells"])),
            "random": max(1, sum("random" in base for base in self.entry["bases"])),
            "start": "\n".join(f"    {line}" for line in self._start_lines()),
            "parameters": self.parameters(),
            "names": ", ".join(self._names()),
            "body": "\n".join(f"    {line}" for line in self._body(values)),
            "state": "".join(self._state()),
        }
        text = SOURCE
        for name, value in fields.items():
            text = text.replace(f"@{name}@", str(value))
        return text

    def _words(self) -> tuple[list[int], list[tuple[int, int, int]], list[tuple[int, int]]]:
        """(start of each launch's arguments, [(word, base, offset)], [(word, variable)])"""
        starts, words, values, at = [], [], [], 0
        for launch in self.capture["launches"]:
            starts.append(at)
            for slot in launch["slots"]:
                words.append((at, *self.capture["locations"][slot]))
                at += 1
            for number in launch["variables"]:
                values.append((at, number))
                at += 1
        return starts, words, values

    def _start_lines(self) -> list[str]:
        """Bases that are set up once."""
        lines, cells, random = [], 0, 0
        for number, base in enumerate(self.entry["bases"]):
            if "storage" in base:
                lines.append(f"bases[{number}] = {self.name}_storage_{base['storage']};")
            elif "random" in base:
                lines.append(f"bases[{number}] = (char *)(random_cells + {random});")
                random += 1
            elif "cells" in base:
                lines.append(f"bases[{number}] = (char *)(cells + {cells});")
                cells += base["cells"]
        first = len(self.entry["bases"])
        direct = {result.base for result in self.results if result.is_direct}
        for base, (dtype, size) in enumerate(self.capture["allocated"], first):
            if base not in direct:
                lines += _allocation(base, size * dtypes.named(dtype).itemsize)
        if self.capture["arena_bytes"]:
            base = first + len(self.capture["allocated"])
            lines += _allocation(base, self.capture["arena_bytes"])
        return lines

    def _body(self, values: list[tuple[int, int]]) -> list[str]:
        """One call: check sizes, set addresses, run, copy results, check indices."""
        lines = [
            f'if ({name} < {low} || {name} > {high}) return refuse("{name} is from {low} to '
            f'{high}");'
            for name, low, high in self.variables
        ]
        lines += map(self._size_check, self.entry["size_checks"])
        for number, base in enumerate(self.entry["bases"]):
            if "argument" in base:
                name = self.arguments[base["argument"]]
                lines.append(f"bases[{number}] = (char *){name} - {base['before']};")
        lines += [f"bases[{r.base}] = (char *){r.name};" for r in self.results if r.is_direct]
        lines += self._random()
        lines += [f"words[{at}] = {self.variable_names[number]};" for at, number in values]
        lines += ["run_launches();"]
        lines += [
            f"memcpy({r.name}, bases[{r.base}] + {r.offset}, {r.nbytes});"
            for r in self.results
            if not r.is_direct
        ]
        return [*lines, *self._index_checks()]

    def _size_check(self, check: Row) -> str:
        """A slice that is inside of its axis for some values of the variables only."""
        names = {row[0]: self.variable_names[n] for n, row in enumerate(self.row["variables"])}
        start, stop, size = (_index_text(end, names) for end in check["ends"])
        what = "index" if check["is_index"] else "slice"
        where = "" if check["origin"] is None else f" ({check['origin'][0]}:{check['origin'][1]})"
        why = _quoted(f"{what} is out of range for axis {check['axis']}{where}")
        return f"if ({start} < 0 || {start} > {stop} || {stop} > {size}) return refuse({why});"

    def _random(self) -> list[str]:
        lines = []
        starts = [base["random"] for base in self.entry["bases"] if "random" in base]
        for number, start in enumerate(starts):
            value = "seed" if start is None else f"used + {start}"
            lines.append(f"random_cells[{number}] = {value};")
        return [*lines, f"used += {self.entry['random_total']};"] if lines else []

    def _index_checks(self) -> list[str]:
        """Report indices that were out of range."""
        lines, at = [], 0
        for found in self.capture["cells_at"]:
            if found is not None:
                for (size, axis, can_wrap), origin in self.capture["cells"][found]["checks"]:
                    where = "" if origin is None else f" ({origin[0]}:{origin[1]})"
                    least = -size if can_wrap else 0
                    lines.append(
                        f"if (cells[{at}]) return bad_index({at}, {axis}, {size}, {least}, "
                        f"{_quoted(where)});"
                    )
                    at += 1
        return lines

    def _state(self) -> list[str]:
        """The lookup of a named tensor."""
        rows = []
        for name, found in self.row["state"].items():
            item = dtypes.named(found["window"][0]).itemsize
            address = f"{self.name}_storage_{found['storage']} + {found['window'][3] * item}"
            rows.append(f"    if (!strcmp(name, {_quoted(name)})) return {address};\n")
        return rows


def _names_in(packed: Any) -> Iterator[str]:
    """The variables in packed index expressions."""
    if isinstance(packed, list):
        if packed and packed[0] == Ops.VARIABLE.name:
            yield packed[1]
        else:
            for part in packed:
                yield from _names_in(part)


def _index_text(packed: Any, names: Mapping[str, str]) -> str:
    """An index expression in C, whose division truncates."""
    if isinstance(packed, int):
        return str(packed)
    if packed[0] == Ops.VARIABLE.name:
        return names[packed[1]]
    left, right = (_index_text(part, names) for part in packed[1:])
    return INDEX_TEXT[Ops[packed[0]]].format(a=left, b=right)


INDEX_TEXT = {
    Ops.ADD: "({a} + {b})",
    Ops.SUB: "({a} - {b})",
    Ops.MUL: "({a} * {b})",
    Ops.FLOORMOD: "((({a} % {b}) + {b}) % {b})",
    Ops.FLOORDIV: "(({a} - ((({a} % {b}) + {b}) % {b})) / {b})",
    Ops.MIN: "({a} < {b} ? {a} : {b})",
    Ops.MAX: "({a} > {b} ? {a} : {b})",
}


def ctype_of(dtype: str) -> str:
    return C_TYPES.get(dtype, f"{dtype}_t")


def _allocation(base: int, nbytes: int) -> list[str]:
    size = -(-nbytes // 64) * 64 or 64
    return [f"if (!(bases[{base}] = aligned_alloc(64, {size}))) return 1;"]


def _shown(shape: Any) -> str:
    return f"({', '.join(map(str, shape))})"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
