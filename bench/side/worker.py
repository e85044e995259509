"""One contender in its own process. Reads one JSON command a line on stdin, answers one JSON line each.
setup {name, check}: build the workload, run and save the first results      run {seconds, most}: time steps
once {name, steps}: for a fresh process, time import, build and each step    drop: forget the workload"""

import time

T0 = time.perf_counter()
import gc
import importlib
import json
import os
import resource
import sys


def flat(x):
    return [z for y in x for z in flat(y)] if isinstance(x, (tuple, list)) else [x]


def cpu():
    t = os.times()  # own and finished children's, user and system
    return t.user + t.system + t.children_user + t.children_system


def sample(a):
    return a.ravel()[:: 1 + a.size // (1 << 20)]


def main(module: str):
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a contender prints goes to stderr

    def answer(**kw):
        print(json.dumps(kw), file=out, flush=True)

    adapter, step = None, None

    def load():
        nonlocal adapter
        if adapter is None:
            adapter = importlib.import_module("peers." + module)
        return adapter

    for line in sys.stdin:
        cmd = json.loads(line)
        try:
            if cmd["do"] == "setup":
                import numpy as np
                from workloads import BY_NAME

                w = BY_NAME[cmd["name"]]
                build = getattr(load(), w.fn, None)
                if build is None:
                    answer(missing=True)
                    continue
                st = time.perf_counter()
                step = build(**w.make())
                results, times = [], []
                counters = getattr(adapter, "counters", dict)
                counters()
                for i in range(max(3, w.check_steps)):
                    t = time.perf_counter()
                    r = step()
                    times.append(time.perf_counter() - t)
                    if i == 0:
                        counted = counters()
                    results = (results + [r])[-w.check_steps :]
                warm = times[-1]
                np.savez(
                    cmd["check"],
                    *[
                        sample(np.asarray(adapter.to_numpy(a), dtype=np.float32))
                        for a in flat(results)
                    ],
                )
                results = r = None
                answer(setup=time.perf_counter() - st, first=times[0], warm=warm, **counted)
            elif cmd["do"] == "run":
                all_used = time.process_time()
                gc.collect()
                gc.disable()  # before the clock starts: it takes long in a large process
                if warm < 1:
                    step()  # the first after the others' turn has cold caches
                times, used, begin = [], time.process_time(), time.perf_counter()
                while len(times) < cmd["most"] and (
                    not times or time.perf_counter() < begin + cmd["seconds"]
                ):
                    t = time.perf_counter()
                    step()
                    times.append(time.perf_counter() - t)
                gc.enable()
                answer(
                    times=times,
                    cores=(time.process_time() - used) / (time.perf_counter() - begin),
                    cpu=time.process_time() - all_used,
                )
            elif cmd["do"] == "once":
                t = time.perf_counter()
                load()
                imported = time.perf_counter() - t
                from workloads import BY_NAME

                w, t = BY_NAME[cmd["name"]], time.perf_counter()
                if not hasattr(adapter, w.fn):
                    answer(missing=True)
                    continue
                step = getattr(adapter, w.fn)(**w.make())
                build, times, cpus = time.perf_counter() - t, [], []
                for i in range(cmd["steps"]):
                    t, c = time.perf_counter(), cpu()
                    step()
                    times.append(time.perf_counter() - t)
                    cpus.append(cpu() - c)
                    if i == 0:
                        total = time.perf_counter() - T0
                answer(
                    imported=imported,
                    build=build,
                    steps=times,
                    cpus=cpus,
                    total=total,
                    rss=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
                )
            elif cmd["do"] == "drop":
                step = None
                gc.collect()
                answer(ok=True)
        except Exception as e:
            step = None
            answer(error=f"{type(e).__name__}: {e}"[:300])


if __name__ == "__main__":
    main(sys.argv[1])
