"""Processor -> LLVM IR of the thread pool: workers, the loop over launches, spinning, sleeping.

The state of a pool is one box of BOX_BYTES for the caller and one per worker. The caller's box
describes the job: the caller fills it in, opens it and rings the workers' bells; all threads, the
caller too, take ranges of steps until none is left. Then the caller closes the job and waits for
the workers that joined it: a worker that the system did not schedule delays nobody.

    bytes   0   i32   a worker's bell; in the caller's box, workers at the job, + OPEN if it is open
            4   i32   1 while the owner of the box sleeps
            8   ptr   the owner's scratch memory
           16   i32   in the caller's box, 1 while a table runs
           32   i64   not 0: the worker must exit
           40   i64   pauses to spin before sleeping while a table runs
           48   ptr   the caller's box
           56   i64   pauses to spin before sleeping after it
           64   i64   the job: first step that is not taken
           72   i64   number of steps     80   i64   threads
           88   ptr   function            96   ptr   its arguments
          128         a mutex and, at 256, a condition: where there is no futex

A launch in a table is {function, arguments, steps, scratch bytes}: 32 bytes. The table starts with
{the caller's box, number of threads, number of launches, unused}.
"""

from __future__ import annotations

BOX_BYTES = 512
LAUNCH_BYTES = 32
# Offsets in a box, as above.
SCRATCH_AT, SPINS_IN_TABLE_AT, CALLER_AT, SPINS_AFTER_TABLE_AT = 8, 40, 48, 56
MUTEX_AT, CONDITION_AT = 128, 256
SPINS_AFTER_TABLE = 2000  # pause instructions, about 50 us
SPINS_IN_TABLE = 20_000  # half a millisecond: the next kernel of a table follows soon
OPEN = 1 << 20  # a bit above the largest number of workers

FUTEX_CALLS = {"x86_64": 202, "aarch64": 98, "riscv64": 98}
PAUSE_CALLS = {
    "x86_64": ("declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()"),
    "aarch64": ("declare void @llvm.aarch64.hint(i32)", "call void @llvm.aarch64.hint(i32 1)"),
}

# @rest(word, old): sleep unless word has changed from old. @rouse(word): wake its sleepers.
WITH_FUTEX = """
declare i64 @syscall(i64, ...)

define void @rest(ptr %word, i32 %old) #0 {{
  call i64 (i64, ...) @syscall(i64 {number}, ptr %word, i64 128, i32 %old, ptr null)
  ret void
}}
define void @rouse(ptr %word) #0 {{
  call i64 (i64, ...) @syscall(i64 {number}, ptr %word, i64 129, i64 2147483647)
  ret void
}}
"""

WITH_CONDITION = """
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_broadcast(ptr)

define void @rest(ptr %word, i32 %old) #0 {
entry:
  %mutex = getelementptr i8, ptr %word, i64 128
  %condition = getelementptr i8, ptr %word, i64 256
  call i32 @pthread_mutex_lock(ptr %mutex)
  %now = load atomic i32, ptr %word seq_cst, align 4
  %same = icmp eq i32 %now, %old
  br i1 %same, label %wait, label %done
wait:
  call i32 @pthread_cond_wait(ptr %condition, ptr %mutex)
  br label %done
done:
  call i32 @pthread_mutex_unlock(ptr %mutex)
  ret void
}
define void @rouse(ptr %word) #0 {
  %mutex = getelementptr i8, ptr %word, i64 128
  %condition = getelementptr i8, ptr %word, i64 256
  call i32 @pthread_mutex_lock(ptr %mutex)
  call i32 @pthread_cond_broadcast(ptr %condition)
  call i32 @pthread_mutex_unlock(ptr %mutex)
  ret void
}
"""

# Wait until the word changes: first spinning, then asleep. The sleeper sets its flag before it
# looks again, and the waker reads the flag after it has changed the word, so one of the two sees
# the other.
WAITING = """
define i32 @wait_for_change(ptr %box, i32 %old) #0 {{
entry:
  %inside.at = getelementptr i8, ptr %box, i64 40
  %inside = load i64, ptr %inside.at, align 8
  %outside.at = getelementptr i8, ptr %box, i64 56
  %outside = load i64, ptr %outside.at, align 8
  %caller.at = getelementptr i8, ptr %box, i64 48
  %caller = load ptr, ptr %caller.at, align 8
  %running.at = getelementptr i8, ptr %caller, i64 16
  %asleep = getelementptr i8, ptr %box, i64 4
  br label %spin
spin:
  %n = phi i64 [ 0, %entry ], [ %n.next, %again ], [ %n.next, %longer ]
  %now = load atomic i32, ptr %box acquire, align 4
  %changed = icmp ne i32 %now, %old
  br i1 %changed, label %found, label %again
again:
  {pause}
  %n.next = add i64 %n, 1
  %short = icmp ult i64 %n.next, %outside
  br i1 %short, label %spin, label %longer
longer:
  %running = load atomic i32, ptr %running.at monotonic, align 4
  %runs = icmp ne i32 %running, 0
  %within = icmp ult i64 %n.next, %inside
  %more = and i1 %runs, %within
  br i1 %more, label %spin, label %sleep
sleep:
  store atomic i32 1, ptr %asleep seq_cst, align 4
  br label %look
look:
  %then = load atomic i32, ptr %box seq_cst, align 4
  %still = icmp eq i32 %then, %old
  br i1 %still, label %rest, label %awake
rest:
  call void @rest(ptr %box, i32 %old)
  br label %look
awake:
  store atomic i32 0, ptr %asleep seq_cst, align 4
  br label %found
found:
  %new = phi i32 [ %now, %spin ], [ %then, %awake ]
  ret i32 %new
}}

define void @wake_if_asleep(ptr %box) #0 {{
entry:
  %asleep = getelementptr i8, ptr %box, i64 4
  %sleeps = load atomic i32, ptr %asleep seq_cst, align 4
  %must = icmp ne i32 %sleeps, 0
  br i1 %must, label %wake, label %done
wake:
  call void @rouse(ptr %box)
  br label %done
done:
  ret void
}}
"""

# Guided self-scheduling: a thread takes its share of the remaining steps, or three quarters of it
# if that is eight or more: long runs first, which suit caches and prefetchers, and short ones at
# the end, which balance the load. Taking the full share would leave a slow thread with too much;
# with few steps, one more or less than the share would cost more than that.
WORK = """
declare i64 @llvm.umax.i64(i64, i64)
declare i64 @llvm.umin.i64(i64, i64)

define void @work(ptr %caller, ptr %scratch) #0 {
entry:
  %next.at = getelementptr i8, ptr %caller, i64 64
  %steps.at = getelementptr i8, ptr %caller, i64 72
  %threads.at = getelementptr i8, ptr %caller, i64 80
  %function.at = getelementptr i8, ptr %caller, i64 88
  %args.at = getelementptr i8, ptr %caller, i64 96
  %steps = load i64, ptr %steps.at, align 8
  %threads = load i64, ptr %threads.at, align 8
  %function = load ptr, ptr %function.at, align 8
  %args = load ptr, ptr %args.at, align 8
  %parts = shl i64 %threads, 5
  %part = udiv i64 %steps, %parts
  %least = call i64 @llvm.umax.i64(i64 %part, i64 1)
  %first = load atomic i64, ptr %next.at monotonic, align 8
  br label %look
look:
  %begin = phi i64 [ %first, %entry ], [ %seen, %take ], [ %after, %run ]
  %some = icmp ult i64 %begin, %steps
  br i1 %some, label %take, label %done
take:
  %left = sub i64 %steps, %begin
  %share = udiv i64 %left, %threads
  %quarter = lshr i64 %share, 2
  %less = sub i64 %share, %quarter
  %many = icmp uge i64 %share, 8
  %some.of.it = select i1 %many, i64 %less, i64 %share
  %wanted = call i64 @llvm.umax.i64(i64 %some.of.it, i64 %least)
  %count = call i64 @llvm.umin.i64(i64 %wanted, i64 %left)
  %end = add i64 %begin, %count
  %pair = cmpxchg ptr %next.at, i64 %begin, i64 %end seq_cst seq_cst
  %seen = extractvalue { i64, i1 } %pair, 0
  %taken = extractvalue { i64, i1 } %pair, 1
  br i1 %taken, label %run, label %look
run:
  call void %function(ptr %args, ptr %scratch, i64 %begin, i64 %end)
  %after = load atomic i64, ptr %next.at monotonic, align 8
  br label %look
done:
  ret void
}
"""

# A worker whose bell rings joins the job if it is open.
WORKER = """
define ptr @worker(ptr %box) #0 {{
entry:
  %scratch.at = getelementptr i8, ptr %box, i64 8
  %leave.at = getelementptr i8, ptr %box, i64 32
  %caller.at = getelementptr i8, ptr %box, i64 48
  %caller = load ptr, ptr %caller.at, align 8
  br label %idle
idle:
  %bell = phi i32 [ 0, %entry ], [ %rung, %look ], [ %rung, %after ], [ %rung, %tell ]
  %rung = call i32 @wait_for_change(ptr %box, i32 %bell)
  %leave = load i64, ptr %leave.at, align 8
  %stays = icmp eq i64 %leave, 0
  br i1 %stays, label %look, label %gone
look:
  %state = load atomic i32, ptr %caller seq_cst, align 4
  %bit = and i32 %state, {open}
  %open = icmp ne i32 %bit, 0
  br i1 %open, label %join, label %idle
join:
  %more = add i32 %state, 1
  %pair = cmpxchg ptr %caller, i32 %state, i32 %more seq_cst seq_cst
  %joined = extractvalue {{ i32, i1 }} %pair, 1
  br i1 %joined, label %in, label %look
in:
  %scratch = load ptr, ptr %scratch.at, align 8
  call void @work(ptr %caller, ptr %scratch)
  br label %after
after:
  %before = atomicrmw sub ptr %caller, i32 1 seq_cst
  %last = icmp eq i32 %before, 1
  br i1 %last, label %tell, label %idle
tell:
  call void @wake_if_asleep(ptr %caller)
  br label %idle
gone:
  ret ptr null
}}
"""

DISMISS = """
define void @dismiss(ptr %box) #0 {
  %leave.at = getelementptr i8, ptr %box, i64 32
  store i64 1, ptr %leave.at, align 8
  %bell = atomicrmw add ptr %box, i32 1 seq_cst
  call void @wake_if_asleep(ptr %box)
  ret void
}
"""

RUN = """
define void @share(ptr %caller, ptr %function, ptr %args, i64 %steps, i64 %threads) #0 {{
entry:
  %next.at = getelementptr i8, ptr %caller, i64 64
  %steps.at = getelementptr i8, ptr %caller, i64 72
  %threads.at = getelementptr i8, ptr %caller, i64 80
  %function.at = getelementptr i8, ptr %caller, i64 88
  %args.at = getelementptr i8, ptr %caller, i64 96
  store i64 0, ptr %next.at, align 8
  store i64 %steps, ptr %steps.at, align 8
  store i64 %threads, ptr %threads.at, align 8
  store ptr %function, ptr %function.at, align 8
  store ptr %args, ptr %args.at, align 8
  store atomic i32 {open}, ptr %caller seq_cst, align 4
  br label %ring
ring:
  %t = phi i64 [ 1, %entry ], [ %t.next, %ring ]
  %t.next = add i64 %t, 1
  %offset = mul i64 %t, {box}
  %box = getelementptr i8, ptr %caller, i64 %offset
  %bell = atomicrmw add ptr %box, i32 1 seq_cst
  call void @wake_if_asleep(ptr %box)
  %more = icmp ult i64 %t.next, %threads
  br i1 %more, label %ring, label %own
own:
  %scratch.at = getelementptr i8, ptr %caller, i64 8
  %scratch = load ptr, ptr %scratch.at, align 8
  call void @work(ptr %caller, ptr %scratch)
  %closing = atomicrmw sub ptr %caller, i32 {open} seq_cst
  br label %join
join:
  %busy = load atomic i32, ptr %caller seq_cst, align 4
  %idle = icmp eq i32 %busy, 0
  br i1 %idle, label %done, label %wait
wait:
  %changed = call i32 @wait_for_change(ptr %caller, i32 %busy)
  br label %join
done:
  ret void
}}

define void @run(ptr %table) #0 {{
entry:
  %caller = load ptr, ptr %table, align 8
  %all.at = getelementptr i8, ptr %table, i64 8
  %all = load i64, ptr %all.at, align 8
  %count.at = getelementptr i8, ptr %table, i64 16
  %count = load i64, ptr %count.at, align 8
  %scratch.at = getelementptr i8, ptr %caller, i64 8
  %scratch = load ptr, ptr %scratch.at, align 8
  %running.at = getelementptr i8, ptr %caller, i64 16
  store atomic i32 1, ptr %running.at monotonic, align 4
  %none = icmp eq i64 %count, 0
  br i1 %none, label %done, label %launch
launch:
  %i = phi i64 [ 0, %entry ], [ %i.next, %next ]
  %i.next = add i64 %i, 1
  %offset = mul i64 %i.next, {launch}
  %at = getelementptr i8, ptr %table, i64 %offset
  %args.at = getelementptr i8, ptr %at, i64 8
  %cores.at = getelementptr i8, ptr %at, i64 16
  %function = load ptr, ptr %at, align 8
  %args = load ptr, ptr %args.at, align 8
  %cores = load i64, ptr %cores.at, align 8
  %few = icmp ult i64 %cores, %all
  %threads = select i1 %few, i64 %cores, i64 %all
  %many = icmp ugt i64 %threads, 1
  br i1 %many, label %together, label %alone
alone:
  call void %function(ptr %args, ptr %scratch, i64 0, i64 %cores)
  br label %next
together:
  call void @share(ptr %caller, ptr %function, ptr %args, i64 %cores, i64 %threads)
  br label %next
next:
  %more = icmp ult i64 %i.next, %count
  br i1 %more, label %launch, label %done
done:
  store atomic i32 0, ptr %running.at monotonic, align 4
  ret void
}}
"""

# A Python function whose argument is the address of a table; releases the GIL while it runs.
PYTHON_ENTRY = """
declare ptr @PyLong_AsVoidPtr(ptr)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare void @Py_IncRef(ptr)
@_Py_NoneStruct = external global i8

define ptr @run_from_python(ptr %self, ptr %number) #0 {
  %table = call ptr @PyLong_AsVoidPtr(ptr %number)
  %state = call ptr @PyEval_SaveThread()
  call void @run(ptr %table)
  call void @PyEval_RestoreThread(ptr %state)
  call void @Py_IncRef(ptr @_Py_NoneStruct)
  ret ptr @_Py_NoneStruct
}
"""

ATTRIBUTES = "attributes #0 = { nounwind }\n"
SYMBOLS = ("worker", "dismiss", "run_from_python")
EMPTY_KERNEL = "nothing"  # a kernel that measures the cost of a launch
EMPTY_KERNEL_TEXT = """
define void @nothing(ptr %args, ptr %scratch, i64 %begin, i64 %end) #0 {
  ret void
}
"""


def pool_text(machine: str, has_futex: bool, entry: str = PYTHON_ENTRY) -> str:
    """The pool's code for a processor such as "x86_64"."""
    declare_pause, pause = PAUSE_CALLS.get(machine, ("", ""))
    sleeping = WITH_FUTEX.format(number=FUTEX_CALLS[machine]) if has_futex else WITH_CONDITION
    waiting, worker = WAITING.format(pause=pause), WORKER.format(open=OPEN)
    run = RUN.format(open=OPEN, box=BOX_BYTES, launch=LAUNCH_BYTES)
    parts = (sleeping, waiting, WORK, worker, DISMISS, run)
    return declare_pause + "".join(parts) + entry + EMPTY_KERNEL_TEXT + ATTRIBUTES
