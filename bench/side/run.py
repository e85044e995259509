"""Side-by-side benchmark: every contender does the same work in the same run, and the table shows ratios.

  python bench/side/run.py                                    everything, all installed contenders, 2 and 1 threads
  python bench/side/run.py --only gemm,softmax --peers torch,tinygrad,glassgrad --threads 2
  python bench/side/run.py --sections fresh,scaling --json out.json
  BENCH_BASE=../before python bench/side/run.py --peers glassgrad_base,glassgrad    two checkouts of this project

Contenders run in processes of their own and take turns, a round each, so that a noisy machine slows all of
them alike. A cell is the fastest step seen and, in brackets, its ratio to the best contender. '-' means the
contender lacks the workload, 't/o' that it took too long, 'err' that it failed, '!' that its result differs
from the reference."""

import argparse
import importlib.util
import json
import os
import pathlib
import signal
import sys
import tempfile

from measuring import Worker, fresh, import_times, steady
from peers import PEERS
from tables import cell, human, noise, rate, table
from workloads import WORKLOADS

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


OPTIONAL = ("tinygrad_", "glassgrad_base")  # peers that are named to be run


class Run:
    """The selected workloads and contenders, and the results so far."""

    def __init__(self, args):
        self.args = args
        self.patterns = [s.strip().lower() for s in args.only.split(",") if s.strip()]
        self.workloads = [w for w in WORKLOADS if not self.patterns or self._is_selected(w)]
        self.peers = [p for p in args.peers.split(",") if importlib.util.find_spec(PEERS[p][1])]
        self.result = {"peers": self.peers}

    def _is_selected(self, w):
        return any(s in w.name.lower() or s == w.group for s in self.patterns)

    def save(self):
        if self.args.json:
            pathlib.Path(self.args.json).write_text(json.dumps(self.result, indent=1))

    def collect(self, section, rows, options):
        """Measure the first steps of the selected workloads in new processes."""
        runs = self.result[section] = {}
        names = {w.name for w in self.workloads}
        for n in rows:
            if n not in names:
                continue
            runs[n] = fresh(n, self.peers, self.args, **options(n))
            starts = [
                f"{p} {cell(c.get('cold'), 1, 'start').split(' ')[0]}" for p, c in runs[n].items()
            ]
            print(f"  {section}, {n}: " + "  ".join(starts), file=sys.stderr)
            self.save()
        return runs


def steady_section(run):
    for threads in run.args.threads:
        with tempfile.TemporaryDirectory(prefix="bench-cache-") as cache:
            workers, rows = {p: Worker(p, threads, f"{cache}/{p}") for p in run.peers}, []
            for p in run.peers:
                os.makedirs(f"{cache}/{p}")
            try:
                for w in run.workloads:
                    if w.group == "fresh" or w.name in SCALING:
                        continue
                    rows.append((w.name, steady(w, workers, run.args)))
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
                    run.result[f"steady_{threads}"] = dict(rows)
                    run.save()
            finally:
                for worker in workers.values():
                    worker.stop()
        table(
            f"Steady state, {threads} thread{'s' * (threads > 1)}: fastest step [ratio to the best]",
            rows,
            run.peers,
            extra=("best does", rate),
        )
        noise(rows)


def fresh_section(run):
    if not run.patterns or "import" in run.patterns:
        times = run.result["import"] = import_times(run.peers, run.args)
        table(
            f"Import, fresh process (bare python: {human(times['python'])})",
            [("import", {p: {"s": t} for p, t in times.items() if p != "python"})],
            run.peers,
        )
    runs = run.collect("fresh", FRESH, lambda n: {"steps": 3 if "MLP" in n or "MNIST" in n else 1})
    for kind in ("cold", "warm"):
        table(
            f"Process start to first result, {kind} kernel cache",
            [(n, {p: c.get(kind) for p, c in r.items()}) for n, r in runs.items()],
            run.peers,
            "start",
        )


def memory_section(run):
    runs = run.collect("memory", MEMORY, lambda n: {"cold": False, "steps": 2, "repeats": 1})
    table(
        "Peak resident memory, MB",
        [(n, {p: c.get("cold") for p, c in r.items()}) for n, r in runs.items()],
        run.peers,
        "rss",
        lambda x: f"{x:.0f}",
    )


def scaling_section(run):
    runs = run.collect("scaling", SCALING, lambda n: {"cold": False, "repeats": 1})
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
        table(f"Cost of more layers: {what}", rows, run.peers, "t")


SECTIONS = {
    "steady": steady_section,
    "fresh": fresh_section,
    "memory": memory_section,
    "scaling": scaling_section,
}


def arguments():
    ap = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    ap.add_argument("--only", default="", help="comma-separated parts of workload or group names")
    ap.add_argument("--peers", default=",".join(p for p in PEERS if not p.startswith(OPTIONAL)))
    ap.add_argument("--sections", default=",".join(SECTIONS))
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
    for option, known in (("peers", PEERS), ("sections", SECTIONS)):
        if unknown := set(getattr(args, option).split(",")) - set(known):
            ap.error(f"--{option} has no {', '.join(sorted(unknown))}; one of {', '.join(known)}")
    args.threads = [int(t) for t in args.threads.split(",")]
    return args


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the workers are stopped too
    run = Run(arguments())
    if skipped := [p for p in run.args.peers.split(",") if p not in run.peers]:
        print("not installed:", ", ".join(skipped))
    selected = run.args.sections.split(",")
    for name, section in SECTIONS.items():
        if name in selected:
            section(run)


if __name__ == "__main__":
    main()
