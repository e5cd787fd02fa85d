"""EM on a table in many files: a cluster of this machine against one process.

    python -m benchmarks cluster [--labels 100000000] [--files 40] [--workers 2] [--memory 2GB]
        [--iterations 10] [--folder DIR]

Parquet files of text names are written once (five labels a task, 1,000 labelers, two classes of
which one is rarer; seed 0). One process, and a client with its cluster, are processes of their own,
so that peak memory can be told. Both run the same numbers of iterations; then a worker is killed in
the middle of a fit. It prints seconds for reading, for an iteration and for the posteriors, peak
memory, and the largest differences.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

LABELERS, EACH = 1000, 5
METHODS = ("dawid-skene", "one-coin", "majority")


def options(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks cluster")
    parser.add_argument("--labels", type=int, default=100_000_000)
    parser.add_argument("--files", type=int, default=40)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--memory", default="2GB")
    parser.add_argument("--iterations", type=int, default=10)
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--folder", type=Path, help="keeps the files, to be used again")
    parser.add_argument("--side", choices=["one", "cluster"], help="only this one, as JSON")
    return parser.parse_args(words)


def write(folder: Path, labels: int, files: int) -> None:
    """The files of labels, unless they are there."""
    import pyarrow as pa
    from pyarrow import parquet

    items = labels // EACH // files
    workers = pa.array([f"worker-{m:04d}" for m in range(LABELERS)])
    skill = np.random.default_rng(0).uniform(0.55, 0.95, (2, LABELERS))
    for n in range(files):
        path = folder / f"labels-{n:03d}.parquet"
        if path.exists():
            continue
        rng = np.random.default_rng([0, n])
        truth = (rng.random(items) < 0.3).astype(np.int64)
        first = rng.integers(LABELERS, size=(items, 1))
        who = (first + np.arange(EACH) * 131) % LABELERS
        right = rng.random((items, EACH)) < skill[truth[:, None], who]
        said = np.where(right, truth[:, None], 1 - truth[:, None])
        names = pa.array([f"task-{n:03d}-{i:07d}" for i in range(items)])
        item = pa.array(np.repeat(np.arange(items, dtype=np.int32), EACH))
        columns = {
            "task": pa.DictionaryArray.from_arrays(item, names),
            "worker": pa.DictionaryArray.from_arrays(
                pa.array(who.ravel().astype(np.int32)), workers
            ),
            "label": pa.DictionaryArray.from_arrays(
                pa.array(said.ravel().astype(np.int8)), pa.array(["no", "yes"])
            ),
        }
        parquet.write_table(pa.table(columns).cast(_text(pa)), path)


def _text(pa: Any) -> Any:
    return pa.schema([(name, pa.string()) for name in ("task", "worker", "label")])


def method(name: str, iterations: int) -> Any:
    from venire.estimators import DawidSkene, MajorityVote, OneCoin

    if name == "majority":
        return MajorityVote()
    return {"dawid-skene": DawidSkene, "one-coin": OneCoin}[name](max_iter=iterations, tol=0.0)


def warm(methods: str) -> None:
    """Compile what is needed, or load it."""
    from venire import LabelTable

    rng = np.random.default_rng(0)
    rows = [
        (f"t{i}", f"w{m}", "yn"[k]) for (i, m), k in np.ndenumerate(rng.integers(2, size=(40, 4)))
    ]
    for name in methods.split(","):
        method(name, 2).fit(LabelTable.from_rows(rows))


def one_pass(table: Any) -> float:
    """Seconds of an E step of Dawid and Skene's model: the median of five."""
    from venire.estimators.blocks import model_of
    from venire.estimators.dawid_skene import FullModel

    took = []
    with model_of(FullModel, table) as model:
        given = np.full((model.labelers, 2, 2), 0.5), np.array([0.6, 0.4])
        for _ in range(5):
            begun = time.perf_counter()
            model.expect(*given)
            took.append(time.perf_counter() - begun)
    return float(np.median(took))


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def one(given: argparse.Namespace) -> dict[str, Any]:
    """One process: all files as one table."""
    from pyarrow import parquet

    from venire import as_table

    warm(given.methods)
    begun = time.perf_counter()
    files = sorted(given.folder.glob("labels-*.parquet"))
    table = as_table(parquet.read_table([str(f) for f in files]))
    found: dict[str, Any] = {"read": time.perf_counter() - begun, "peak_read": peak()}
    found["pass"] = one_pass(table)
    for name in given.methods.split(","):
        fitted = method(name, given.iterations)
        begun = time.perf_counter()
        fitted.fit(table)
        found[name] = {"fit": time.perf_counter() - begun, "iterations": fitted.n_iter_}
        np.save(given.folder / f"{name}-posteriors.npy", fitted.posteriors_)
        parts = {"confusions": fitted.confusions_, "competences": fitted.competences_}
        np.savez(given.folder / f"{name}.npz", **parts)
        found[name]["peak"] = peak()
    return found


def status(_: Any = None) -> float:
    """The peak memory of this process in MB, by the kernel."""
    text = Path("/proc/self/status").read_text()
    return int(next(x for x in text.splitlines() if x.startswith("VmHWM")).split()[1]) / 1024


def cluster(given: argparse.Namespace) -> dict[str, Any]:
    """A cluster of this machine, and what differs from one process."""
    from venire.cluster import connected, partitioned

    with connected("local", given.workers, given.memory) as client:
        client.run(warm, given.methods)
        begun = time.perf_counter()
        stages: dict[str, float] = {}

        def progress(what: str, done: int, total: int) -> None:
            stages[what] = round(time.perf_counter() - begun, 1)

        table = partitioned(f"{given.folder}/labels-*.parquet", client, progress=progress)
        found: dict[str, Any] = {"read": time.perf_counter() - begun, "stages": stages}
        begun = time.perf_counter()
        for _ in range(5):
            table.total(_nothing)
        found["empty_pass"] = (time.perf_counter() - begun) / 5
        found["pass"] = one_pass(table)
        found["peaks_read"] = list(client.run(status).values())
        for name in given.methods.split(","):
            begun = time.perf_counter()
            fitted = method(name, given.iterations).fit(table)
            found[name] = {"fit": time.perf_counter() - begun, "iterations": fitted.n_iter_}
            found[name] |= differences(given.folder, name, fitted)
            found[name]["peaks"] = list(client.run(status).values())
        found["client_peak"] = peak()
        found["killed"] = killed(client, table, given)
    return found


def _nothing(table: Any) -> int:
    return 0


def _same(table: Any, posteriors: Any) -> Any:
    return posteriors


def differences(folder: Path, name: str, fitted: Any) -> dict[str, float]:
    if not (folder / f"{name}.npz").exists():  # one process was not asked, or had no room
        return {}
    kept = np.load(folder / f"{name}.npz")
    whole, first, worst = np.load(folder / f"{name}-posteriors.npy", mmap_mode="r"), 0, 0.0
    for q in fitted.table_.pieces(_same, fitted.posterior_rows()):
        worst = max(worst, float(np.abs(q - whole[first : first + len(q)]).max()))
        first += len(q)
    apart = [np.abs(getattr(fitted, f"{k}_") - kept[k]).max() for k in kept.files]
    return {"parameters_differ": float(max(apart)), "posteriors_differ": worst, "items": first}


def killed(client: Any, table: Any, given: argparse.Namespace) -> dict[str, Any]:
    """A fit in the middle of which a worker is killed."""
    from venire.estimators import DawidSkene

    expected = DawidSkene(max_iter=given.iterations, tol=0.0)
    begun = time.perf_counter()
    expected.fit(table)
    usual = time.perf_counter() - begun
    victim = sorted(client.run(os.getpid).values())[0]
    threading.Timer(usual / 2, lambda: os.kill(victim, signal.SIGKILL)).start()
    begun = time.perf_counter()
    fitted = DawidSkene(max_iter=given.iterations, tol=0.0).fit(table)
    took = time.perf_counter() - begun
    after = sorted(client.run(os.getpid).values())
    return {
        "usual": usual,
        "took": took,
        "worker_is_gone": victim not in after,
        "equal_to_the_bit": fitted.confusions_.tobytes() == expected.confusions_.tobytes(),
        "peaks": list(client.run(status).values()),
    }


def main(words: list[str]) -> None:
    given = options(words)
    if given.side:
        print(json.dumps({"one": one, "cluster": cluster}[given.side](given)))
        return
    with tempfile.TemporaryDirectory() as scratch:
        folder = given.folder or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        begun = time.perf_counter()
        write(folder, given.labels, given.files)
        print(
            f"{given.labels:,} labels in {given.files} files, written in "
            f"{time.perf_counter() - begun:.0f} s; load {os.getloadavg()[0]:.1f}",
            flush=True,
        )
        for side in ("one", "cluster"):
            command = [sys.executable, "-m", "benchmarks", "cluster", *words, "--side", side]
            if not given.folder:
                command += ["--folder", str(folder)]
            begun = time.perf_counter()
            run = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
            print(
                f"{side}: {time.perf_counter() - begun:.0f} s in all; load "
                f"{os.getloadavg()[0]:.1f}\n  {run.stdout.strip()}",
                flush=True,
            )


if __name__ == "__main__":
    main(sys.argv[1:])
