"""Side-by-side benchmark: every contender does the same work in the same run, and the table shows ratios.

  python bench/side/run.py                                    everything, all installed contenders, 2 and 1 threads
  python bench/side/run.py --only gemm,softmax --peers torch,tinygrad,glassgrad --threads 2
  python bench/side/run.py --sections fresh,scaling --json out.json

Contenders run in processes of their own and take turns, a round each, so that a noisy machine slows all of
them alike. A cell is the fastest step seen and, in brackets, its ratio to the best contender. '-' means the
contender lacks the workload, 't/o' that it took too long, 'err' that it failed, '!' that its result differs
from the reference."""

import argparse
import contextlib
import fcntl
import importlib.util
import json
import os
import pathlib
import select
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
from peers import PEERS, environment
from workloads import BY_NAME, WORKLOADS

HERE = pathlib.Path(__file__).parent
FRESH = [
    "first (a+b).tolist()",
    "train MLP 784-128-10 b64 Adam",
    "train MNIST convnet b128 Adam",
    "train nanoGPT char b8 AdamW",
]
MEMORY = [
    "train MLP 784-128-10 b64 Adam",
    "train MNIST convnet b128 Adam",
    "train nanoGPT char b8 AdamW",
    "train GPT-2 124M b1 t128 AdamW",
]
SCALING = [f"tiny GPT {n} layers" for n in (2, 4, 8, 16, 32)]


class Worker:
    """A contender's process; restarted after it had to be killed."""

    def __init__(self, peer, threads, cache):
        self.peer, self.threads, self.cache, self.proc = peer, threads, cache, None

    def start(self):
        env = os.environ | environment(self.peer, self.threads, self.cache)
        log = open(os.path.join(tempfile.gettempdir(), f"bench-{self.peer}.log"), "ab")
        self.proc = subprocess.Popen(
            [sys.executable, "worker.py", PEERS[self.peer][0]],
            cwd=HERE,
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            bufsize=0,
            start_new_session=True,
        )

    def ask(self, timeout, **cmd) -> dict:
        if self.proc is None:
            self.start()
        try:
            self.proc.stdin.write(json.dumps(cmd).encode() + b"\n")
            line, end = b"", time.monotonic() + timeout
            while not line.endswith(b"\n"):
                if not select.select([self.proc.stdout], [], [], max(0, end - time.monotonic()))[0]:
                    self.stop()
                    return {"timeout": timeout}
                if not (chunk := os.read(self.proc.stdout.fileno(), 1 << 20)):
                    raise BrokenPipeError
                line += chunk
            return json.loads(line)
        except BrokenPipeError:
            self.stop()
            return {"error": "the process died"}

    def stop(self):
        if self.proc is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.proc.pid, signal.SIGKILL)
        self.proc.wait()
        self.proc.stdin.close()
        self.proc.stdout.close()
        self.proc = None


@contextlib.contextmanager
def locked(path):
    """Hold a lock file (shared with flock(1)) while measuring, if one is given."""
    if not path:
        yield
        return
    with open(path, "a") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        yield


def busy():
    """CPU seconds this machine has spent working (or had taken from it) since it started."""
    with open("/proc/stat") as f:
        v = [int(x) for x in f.readline().split()[1:9]]
    return (sum(v) - v[3] - v[4]) / os.sysconf("SC_CLK_TCK")


def quiet_round(worker, args) -> dict:
    """A round of timed steps; taken again, a few times, when other processes used the cores meanwhile."""
    for _ in range(args.retries + 1):
        st, before = time.perf_counter(), busy()
        r = worker.ask(args.timeout, do="run", seconds=args.seconds, most=2000)
        if "times" not in r:
            break
        r["others"] = (busy() - before - r["cpu"]) / (time.perf_counter() - st)
        if r["others"] < 0.15:
            break
        time.sleep(args.seconds)
    return r


def differs(ref, got, tol):
    if len(ref) != len(got):
        return f"{len(got)} results instead of {len(ref)}"
    for a, b in zip(ref, got):
        if a.shape != b.shape:
            return f"shape {b.shape} instead of {a.shape}"
        if not (d := np.abs(a - b).max() / max(np.abs(a).max(), 1e-6)) <= tol:
            return f"off by {d:.1e} of the largest value"
    return None


def steady(w, workers, args) -> dict:
    """Time one workload in every contender, round by round."""
    cells, live, ref = {}, [], None
    with tempfile.TemporaryDirectory() as tmp, locked(args.lock):
        for peer, worker in workers.items():
            check = os.path.join(tmp, "out.npz")
            r = cells[peer] = worker.ask(args.timeout, do="setup", name=w.name, check=check)
            if "setup" not in r:
                continue
            with np.load(check) as z:
                got = [z[k] for k in z.files]
            if ref is None:
                ref = got
            elif bad := differs(ref, got, w.tol):
                r["mismatch"] = bad
            live.append(peer)
        for n in range(args.rounds):
            for peer in list(live):
                c = cells[peer]
                if n and c["warm"] > args.timeout / 8:
                    continue  # a slow one gets a single round
                r = quiet_round(workers[peer], args)
                if "times" not in r:
                    cells[peer] = r
                    live.remove(peer)
                    continue
                c.setdefault("rounds", []).append(r["times"])
                c["cores"] = r["cores"]
                c.setdefault("others", []).append(round(r["others"], 2))
        for peer in live:
            workers[peer].ask(args.timeout, do="drop")
    for peer in live:
        c = cells[peer]
        rounds = c.pop("rounds")
        c["s"], c["median"] = (
            min(map(min, rounds)),
            statistics.median(map(statistics.median, rounds)),
        )
        c["round_medians"] = [statistics.median(r) for r in rounds]
    return cells


def fresh(name, peers, args, cold=True, steps=3, repeats=3) -> dict:
    """First steps in new processes: with an empty kernel cache, then with the cache that run left behind."""
    out = {p: {} for p in peers}
    for _rep in range(repeats):
        for peer in peers:
            cache = tempfile.mkdtemp(prefix="bench-cache-")
            try:
                for kind in ("cold", "warm") if cold else ("cold",):
                    if any(k in out[peer].get(kind, {}) for k in ("error", "timeout", "missing")):
                        continue
                    with locked(args.lock):
                        worker, st = Worker(peer, args.threads[0], cache), time.perf_counter()
                        r = worker.ask(args.timeout * 2, do="once", name=name, steps=steps)
                        r["wall"] = time.perf_counter() - st
                        worker.stop()
                    if "steps" in r:
                        r["start"] = r["wall"] - sum(
                            r["steps"][1:]
                        )  # process start to the first result
                        if r["start"] > out[peer].get(kind, {}).get("start", 1e9):
                            continue
                    out[peer][kind] = r
            finally:
                shutil.rmtree(cache, ignore_errors=True)
        if max((v.get("cold", {}).get("wall", 0) for v in out.values()), default=0) > 10:
            break  # slow ones need no repeat
    return out


def import_times(peers, args, repeats=7) -> dict:
    times = {p: [] for p in ["python"] + peers}
    for _ in range(repeats):
        for p in times:
            code = (
                "pass"
                if p == "python"
                else f"import {PEERS[p][1]}" + ("; import jax.numpy" if p == "jax" else "")
            )
            with locked(args.lock):
                st = time.perf_counter()
                ok = (
                    subprocess.run(
                        [sys.executable, "-c", code],
                        env=os.environ | environment(p, 2, tempfile.gettempdir())
                        if p in PEERS
                        else None,
                        stderr=subprocess.DEVNULL,
                    ).returncode
                    == 0
                )
                if ok:
                    times[p].append(time.perf_counter() - st)
    return {p: min(t) for p, t in times.items() if t}


# ---- printing ----


def human(s):
    for unit, k in (("s", 1), ("ms", 1e3), ("us", 1e6)):
        if s * k >= 1 or unit == "us":
            return f"{s * k:.3g}{unit}"
    return None


def cell(c, best, value="s", show=human):
    if not c or c.get("missing"):
        return "-"
    if "timeout" in c:
        return f"t/o>{c['timeout']:.0f}s"
    if value not in c:
        return "err"
    return f"{show(c[value])} [{c[value] / best:.2f}]" + ("!" if "mismatch" in c else "")


def table(title, rows, peers, value="s", show=human, extra=None):
    print(f"\n## {title}\n")
    head = ["workload"] + peers + ([extra[0]] if extra else [])
    lines = [head]
    for name, cells in rows:
        best = min(
            (c[value] for c in cells.values() if c and value in c and "mismatch" not in c),
            default=float("nan"),
        )
        lines.append(
            [name]
            + [cell(cells.get(p), best, value, show) for p in peers]
            + ([extra[1](name, cells, best)] if extra else [])
        )
    widths = [max(len(l[i]) for l in lines) for i in range(len(head))]
    for i, l in enumerate(lines):
        print("| " + " | ".join(x.ljust(n) for x, n in zip(l, widths)) + " |")
        if i == 0:
            print("|" + "|".join("-" * (n + 2) for n in widths) + "|")
    sys.stdout.flush()


def rate(name, cells, best):
    w = BY_NAME[name]
    if w.items:
        return f"{w.items / best:.4g} items/s"
    if w.flops:
        return f"{w.flops / best / 1e9:.4g} GFLOP/s"
    return f"{w.bytes / best / 1e9:.3g} GB/s" if w.bytes else ""


def noise(rows):
    spread = [
        c["median"] / c["s"] - 1 for _, cells in rows for c in cells.values() if "median" in c
    ]
    others = [o for _, cells in rows for c in cells.values() for o in c.get("others", [])]
    if spread:
        print(
            f"\nmedian over fastest: half of the cells within {statistics.median(spread):.0%}, 90% within {sorted(spread)[int(len(spread) * 0.9)]:.0%};"
            f" rounds disturbed by other processes: {sum(o >= 0.15 for o in others)} of {len(others)}"
        )


def main():
    ap = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    ap.add_argument("--only", default="", help="comma-separated parts of workload or group names")
    ap.add_argument("--peers", default=",".join(p for p in PEERS if not p.startswith("tinygrad_")))
    ap.add_argument("--sections", default="steady,fresh,memory,scaling")
    ap.add_argument(
        "--threads",
        default="2,1",
        help="thread counts of the steady section; the first is used elsewhere",
    )
    ap.add_argument("--rounds", type=int, default=5)
    ap.add_argument("--seconds", type=float, default=0.4, help="per contender and round")
    ap.add_argument(
        "--retries",
        type=int,
        default=4,
        help="how often to repeat a round that other processes disturbed",
    )
    ap.add_argument(
        "--timeout", type=float, default=180, help="seconds for one contender to set up a workload"
    )
    ap.add_argument(
        "--lock", default=os.environ.get("BENCH_LOCK", ""), help="file to flock while measuring"
    )
    ap.add_argument("--json", default="")
    args = ap.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the workers are stopped too
    args.threads = [int(t) for t in args.threads.split(",")]
    want = [s.strip().lower() for s in args.only.split(",") if s.strip()]
    picked = [
        w for w in WORKLOADS if not want or any(s in w.name.lower() or s == w.group for s in want)
    ]
    names = {w.name for w in picked}
    peers = [p for p in args.peers.split(",") if importlib.util.find_spec(PEERS[p][1])]
    if skipped := [p for p in args.peers.split(",") if p not in peers]:
        print("not installed:", ", ".join(skipped))
    sections, result = args.sections.split(","), {"peers": peers}

    def save():
        if args.json:
            pathlib.Path(args.json).write_text(json.dumps(result, indent=1))

    def collect(section, rows, options):
        runs = result[section] = {}
        for n in rows:
            if n not in names:
                continue
            runs[n] = fresh(n, peers, args, **options(n))
            print(
                f"  {section}, {n}: "
                + "  ".join(
                    f"{p} {cell(c.get('cold'), 1, 'start').split(' ')[0]}"
                    for p, c in runs[n].items()
                ),
                file=sys.stderr,
            )
            save()
        return runs

    if "steady" in sections:
        for threads in args.threads:
            with tempfile.TemporaryDirectory(prefix="bench-cache-") as cache:
                workers, rows = {p: Worker(p, threads, f"{cache}/{p}") for p in peers}, []
                for p in peers:
                    os.makedirs(f"{cache}/{p}")
                try:
                    for w in picked:
                        if w.group == "fresh" or w.name in SCALING:
                            continue
                        rows.append((w.name, steady(w, workers, args)))
                        for p, c in rows[-1][1].items():
                            for k in ("error", "mismatch"):
                                if k in c:
                                    print(f"{p}, {w.name}: {c[k]}", file=sys.stderr)
                        print(
                            f"  {w.name}: "
                            + "  ".join(
                                f"{p} {cell(c, 1).split(' ')[0]}" for p, c in rows[-1][1].items()
                            ),
                            file=sys.stderr,
                        )
                        result[f"steady_{threads}"] = dict(rows)
                        save()
                finally:
                    for worker in workers.values():
                        worker.stop()
            table(
                f"Steady state, {threads} thread{'s' * (threads > 1)}: fastest step [ratio to the best]",
                rows,
                peers,
                extra=("best does", rate),
            )
            noise(rows)

    if "fresh" in sections:
        if not want or "import" in want:
            times = result["import"] = import_times(peers, args)
            table(
                f"Import, fresh process (bare python: {human(times['python'])})",
                [("import", {p: {"s": t} for p, t in times.items() if p != "python"})],
                peers,
            )
        runs = collect("fresh", FRESH, lambda n: {"steps": 3 if "MLP" in n or "MNIST" in n else 1})
        for kind in ("cold", "warm"):
            table(
                f"Process start to first result, {kind} kernel cache",
                [(n, {p: c.get(kind) for p, c in r.items()}) for n, r in runs.items()],
                peers,
                "start",
            )

    if "memory" in sections:
        runs = collect("memory", MEMORY, lambda n: {"cold": False, "steps": 2, "repeats": 1})
        table(
            "Peak resident memory, MB",
            [(n, {p: c.get("cold") for p, c in r.items()}) for n, r in runs.items()],
            peers,
            "rss",
            lambda x: f"{x:.0f}",
        )

    if "scaling" in sections:
        runs = collect("scaling", SCALING, lambda n: {"cold": False, "repeats": 1})
        for i, what in enumerate(("first step, empty cache", "second step", "third step")):
            rows = [
                (
                    n,
                    {
                        p: c.get("cold", {})
                        | ({"t": c["cold"]["steps"][i]} if "steps" in c.get("cold", {}) else {})
                        for p, c in r.items()
                    },
                )
                for n, r in runs.items()
            ]
            table(f"Cost of more layers: {what}", rows, peers, "t")


if __name__ == "__main__":
    main()
