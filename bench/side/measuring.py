"""Contenders in processes of their own, timed in turns: steps, first steps, imports."""

import contextlib
import fcntl
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

HERE = pathlib.Path(__file__).parent
DISTURBED = 0.15  # cores used by other processes during a round; above it the round is repeated


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
    """A round of timed steps; repeated a few times if other processes used the cores."""
    for _ in range(args.retries + 1):
        st, before = time.perf_counter(), busy()
        r = worker.ask(args.timeout, do="run", seconds=args.seconds, most=2000)
        if "times" not in r:
            break
        r["others"] = (busy() - before - r["cpu"]) / (time.perf_counter() - st)
        if r["others"] < DISTURBED:
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
    """First steps in new processes: with an empty kernel cache, then with the cache of that run."""
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
