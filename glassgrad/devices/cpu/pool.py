"""Launches -> work on all cores: a persistent native thread pool, itself generated code.

Workers spin for about 50 us after their last work and then sleep; between the kernels of a table
they spin for half a millisecond, as waking a thread takes longer than many kernels. So does a
waiting caller. Workers block all signals, and are pinned if each can have a core of its own.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from threading import Lock, RLock
from typing import Any
from weakref import WeakSet

from glassgrad.devices.cpu.native import LinkedCode, host, load_text
from glassgrad.devices.cpu.pool_code import (
    BOX_BYTES,
    CALLER_AT,
    CONDITION_AT,
    EMPTY_KERNEL,
    FUTEX_CALLS,
    LAUNCH_BYTES,
    MUTEX_AT,
    PYTHON_ENTRY,
    SCRATCH_AT,
    SPINS_AFTER_TABLE,
    SPINS_AFTER_TABLE_AT,
    SPINS_IN_TABLE,
    SPINS_IN_TABLE_AT,
    SYMBOLS,
    pool_text,
)
from glassgrad.devices.protocol import Call
from glassgrad.memory.allocator import HOST, Block
from glassgrad.memory.poison import is_poisoned, poison

WORD = 8  # bytes of a pointer or an int64 in a table
NO_TIMEOUT = -1.0  # as in Lock.acquire
EXIT_TIMEOUT = 0.1  # seconds that an exit waits for a running table


class Table:
    """Launches as the native loop reads them; pointers and values can be replaced between runs.

    Launches run in order, the CORE steps of each on all threads.
    """

    def __init__(self, pool: Pool, calls: Sequence[Call]) -> None:
        self.pool = pool
        self.generation: object = None  # of the threads that it is bound to
        self.executables = tuple(call.executable for call in calls)  # keeps their code loaded
        words = [len(call.pointers) + len(call.values) for call in calls]
        self.starts = [sum(words[:i]) for i in range(len(words))]
        self.pointer_counts = [len(call.pointers) for call in calls]
        self.arguments = (ctypes.c_int64 * max(1, sum(words)))()
        self.launches = (ctypes.c_int64 * (4 * (len(calls) + 1)))()
        self.launches[2] = len(calls)
        self.scratch_bytes = max(
            (call.executable.source.program.scratch_bytes for call in calls), default=0
        )
        self.address = ctypes.addressof(self.launches)
        base = ctypes.addressof(self.arguments)
        for i, call in enumerate(calls):
            self._fill(i, call, base + WORD * self.starts[i])

    def _fill(self, number: int, call: Call, arguments: int) -> None:
        program = call.executable.source.program
        first_word = (number + 1) * LAUNCH_BYTES // WORD
        self.launches[first_word] = call.executable.address
        self.launches[first_word + 1] = arguments
        self.launches[first_word + 2] = program.cores
        self.launches[first_word + 3] = program.scratch_bytes
        for i, word in enumerate((*call.pointers, *call.values), self.starts[number]):
            self.arguments[i] = word

    def set_pointer(self, call: int, slot: int, address: int) -> None:
        self.arguments[self.starts[call] + slot] = address

    def set_value(self, call: int, number: int, value: int) -> None:
        self.arguments[self.starts[call] + self.pointer_counts[call] + number] = value

    def set_words(self, words: Sequence[int]) -> None:
        self.arguments[: len(words)] = list(words)

    def run(self) -> None:
        pool = self.pool
        with pool.lock:
            if self.generation is not pool.generation:
                pool._bind(self)
            if is_poisoned():
                pool.poison_scratch()
            pool.enter(self.address)


class Pool:
    """Threads that run tables. With one thread, it is a plain native loop."""

    def __init__(self, threads: int, has_futex: bool | None = None) -> None:
        self.threads = threads if can_start_threads() else 1
        self.has_futex = has_futex
        self.code: LinkedCode | None = None  # machine code that came with an imported bundle
        self._reset()
        LIVE_POOLS.add(self)

    def _reset(self) -> None:
        """The state of a new pool: in the child of a fork no worker exists, and the lock may be
        held.
        """
        self.lock = Lock()
        self.boxes: Any = None
        self.base = 0
        self.workers: list[ctypes.c_void_p] = []
        self.arenas: list[Block] = []
        self.scratch_bytes = 0
        self.generation = object()

    def __del__(self) -> None:
        if NO_TIMEOUT is not None:  # globals are gone at the end of the interpreter
            self.stop(0 if ABANDONED else NO_TIMEOUT)

    def _bind(self, table: Table) -> None:
        """Set a table's caller box and thread count: needed once per generation of workers."""
        if not self.base:
            self._start()
        if table.scratch_bytes > self.scratch_bytes:
            self._grow_scratch(table.scratch_bytes)
        table.launches[0] = self.base
        table.launches[1] = len(self.workers) + 1
        table.generation = self.generation

    def stop(self, timeout: float = NO_TIMEOUT) -> bool:
        """Stop the workers and wait for them. Later tables start new ones.

        Returns False, and leaves the pool running, if a table runs for longer than `timeout`
        seconds.
        """
        if not self.lock.acquire(timeout=timeout):
            return False
        try:
            workers, self.workers, self.generation = self.workers, [], object()
            for number, worker in enumerate(workers, 1):
                self.dismiss(self._box(number))
                _libc().pthread_join(worker, None)
        finally:
            self.lock.release()
        return True

    # ------------------------------------------------------------------ starting

    def _start(self) -> None:
        code = self.code or load_code(self.has_futex)
        self.enter = python_function(code.address("run_from_python"))
        self.dismiss = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(code.address("dismiss"))
        self.boxes = ctypes.create_string_buffer(BOX_BYTES * (self.threads + 1))
        self.base = -(-ctypes.addressof(self.boxes) // BOX_BYTES) * BOX_BYTES
        cores = cores_from_current()
        fits_cores = self.threads <= len(cores)
        for number in range(self.threads):
            self._set(number, CALLER_AT, self.base)
            # With more threads than cores, spinning would take time from the threads that work.
            self._set(number, SPINS_IN_TABLE_AT, SPINS_IN_TABLE if fits_cores else 1)
            self._set(number, SPINS_AFTER_TABLE_AT, SPINS_AFTER_TABLE if fits_cores else 1)
            _prepare_sleep(self._box(number))
        with signals_blocked():
            for number in range(1, self.threads):
                worker = _start_thread(code.address("worker"), self._box(number))
                if worker is None:  # the system's limit on threads
                    break
                self.workers.append(worker)
                if fits_cores:
                    _pin(worker, cores[number])

    def _grow_scratch(self, nbytes: int) -> None:
        for block in self.arenas:
            HOST.free(block)
        self.arenas = [HOST.allocate(nbytes, zeroed=False) for _ in range(self.threads)]
        for number, block in enumerate(self.arenas):
            self._set(number, SCRATCH_AT, block.address)
        self.scratch_bytes = nbytes

    def poison_scratch(self) -> None:
        """Fill scratch memory with a pattern: kernels must not read what an earlier one left."""
        for block in self.arenas:
            poison(block.address, block.nbytes)

    def _box(self, number: int) -> int:
        return self.base + number * BOX_BYTES

    def _set(self, number: int, offset: int, value: int) -> None:
        ctypes.c_int64.from_address(self._box(number) + offset).value = value


# ---------------------------------------------------------------------- the code

METH_O = 8  # CPython's flag of a function of one object
LEVEL = 0  # optimization level: the pool mostly waits, and faster code takes 20 ms more to compile


class _MethodDef(ctypes.Structure):
    """CPython's PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


METHODS: list[_MethodDef] = []  # CPython keeps pointers to these
LOADING = RLock()


def load_code(has_futex: bool | None) -> LinkedCode:
    """The pool's machine code, loaded once per process."""
    with LOADING:
        return _load_code(has_futex)


@cache
def _load_code(has_futex: bool | None) -> LinkedCode:
    return load_text(text_for_host(has_futex), (*SYMBOLS, EMPTY_KERNEL), LEVEL)


def text_for_host(has_futex: bool | None = None, entry: str = PYTHON_ENTRY) -> str:
    """The pool's code for this machine; sleeps on a futex where the system has one."""
    machine = host().triple.partition("-")[0].replace("arm64", "aarch64")
    if has_futex is None:
        has_futex = sys.platform == "linux" and machine in FUTEX_CALLS
    return pool_text(machine, has_futex, entry)


@cache
def python_function(address: int) -> Callable[[int], None]:
    """Machine code that takes one object, as a Python function: the cheapest kind of call."""
    method = _MethodDef(b"run", address, METH_O, None)
    METHODS.append(method)
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype = ctypes.py_object
    make.argtypes = (ctypes.POINTER(_MethodDef), ctypes.c_void_p, ctypes.c_void_p)
    return make(method, None, None)  # type: ignore[no-any-return]


# ---------------------------------------------------------------------- threads of the system


@cache
def _libc() -> Any:
    return ctypes.CDLL(None)


def can_start_threads() -> bool:
    return sys.platform != "win32" and hasattr(_libc(), "pthread_create")


def _start_thread(function: int, box: int) -> ctypes.c_void_p | None:
    thread = ctypes.c_void_p()
    where, what = ctypes.c_void_p(function), ctypes.c_void_p(box)
    failed = _libc().pthread_create(ctypes.byref(thread), None, where, what)
    return None if failed else thread


def _prepare_sleep(box: int) -> None:
    """The mutex and condition for systems without a futex; each fits into 128 bytes."""
    _libc().pthread_mutex_init(ctypes.c_void_p(box + MUTEX_AT), None)
    _libc().pthread_cond_init(ctypes.c_void_p(box + CONDITION_AT), None)


def available_cores() -> list[int]:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def cores_from_current() -> list[int]:
    """The available cores, beginning with the current one, so that processes spread out."""
    cores = available_cores()
    here = _libc().sched_getcpu() if hasattr(_libc(), "sched_getcpu") else cores[0]
    at = cores.index(here) if here in cores else 0
    return cores[at:] + cores[:at]


def _pin(thread: ctypes.c_void_p, core: int) -> None:
    """Pin a worker to a core: otherwise it often runs on the one that woke it."""
    if not hasattr(_libc(), "pthread_setaffinity_np"):
        return
    mask = (1 << core).to_bytes(core // 64 * 8 + 8, sys.byteorder)
    _libc().pthread_setaffinity_np(thread, ctypes.c_size_t(len(mask)), mask)


@contextmanager
def signals_blocked() -> Iterator[None]:
    """Threads started here block all signals, so Python's handlers run on Python's threads."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


# ---------------------------------------------------------------------- the process around it

LIVE_POOLS: WeakSet[Pool] = WeakSet()
ABANDONED: list[Pool] = []  # a daemon thread was running a table at exit


def _stop_all() -> None:
    """At exit no thread may use memory that Python frees. A busy pool keeps its own."""
    for pool in tuple(LIVE_POOLS):
        if not pool.stop(EXIT_TIMEOUT):
            ABANDONED.append(pool)
            for held in (pool, pool.boxes, pool.arenas, pool.code or load_code(pool.has_futex)):
                ctypes.pythonapi.Py_IncRef(ctypes.py_object(held))


def _reset_all() -> None:
    for pool in tuple(LIVE_POOLS):
        pool._reset()


atexit.register(_stop_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_all)
    # Loading takes this lock, then LLVM's gate: fork hooks run in reverse order of registration.
    os.register_at_fork(
        before=LOADING.acquire, after_in_parent=LOADING.release, after_in_child=LOADING.release
    )
