"""Label aggregation: against crowd-kit, against one read of the labels, and 100 million of them.

sh scripts/bench aggregation              what needs no other program
sh scripts/bench aggregation --peers      and against crowd-kit, in an environment of its own
sh scripts/bench aggregation --huge       and 100 million labels
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from benchmarks.crowds import LABELS, crowd
from benchmarks.peers import peer_python
from venire.estimators.blocks import usable_processors
from venire.estimators.dawid_skene import FullModel
from venire.estimators.one_coin import CoinModel
from venire.labels import LabelTable

ITERATIONS = 10
ROOT = Path(__file__).parent.parent
Model = CoinModel | FullModel


@njit(nogil=True)
def add_up(values: NDArray[np.integer[Any]]) -> int:
    total = 0
    for e in range(values.size):
        total += values[e]
    return total


def best(call: Callable[[], object], times: int = 5) -> float:
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        call()
        taken.append(time.perf_counter() - start)
    return min(taken)


def read_once(table: LabelTable, threads: int) -> float:
    """Seconds to add up all label arrays once, on as many threads."""
    arrays = table.start, table.labeler, table.said

    def part(t: int) -> None:
        for a in arrays:
            add_up(a[a.size * t // threads : a.size * (t + 1) // threads])

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(part, range(threads)))  # compiles
        return best(lambda: list(pool.map(part, range(threads))))


def table_of(items: int, labelers: int, classes: int) -> LabelTable:
    labeler, said = crowd(items, labelers, classes)
    start = np.arange(0, items * LABELS + 1, LABELS)
    return LabelTable(range(items), range(labelers), range(classes), start, labeler, said)


def one_pass(model: Model, table: LabelTable) -> Callable[[], object]:
    K, M = len(table.classes), len(table.labelers)
    even = np.full(K, 1 / K)
    if isinstance(model, CoinModel):
        p = np.linspace(0.55, 0.9, M)
        return lambda: model.expect(p, even)
    confusions = np.tile(np.eye(K) * 0.6 + 0.4 / K, (M, 1, 1))
    return lambda: model.expect(confusions, even)


def passes(items: int, labelers: int, classes: int) -> None:
    """One EM iteration as a multiple of reading the labels once."""
    table, threads = table_of(items, labelers, classes), usable_processors()
    read = read_once(table, threads)
    kinds: list[tuple[str, type[Model]]] = [("one-coin", CoinModel), ("dawid-skene", FullModel)]
    print(
        f"  {items * LABELS:,} labels, K={classes}: one read {read * 1e3:.2f} ms, {threads} threads"
    )
    sums = best(lambda: [a.sum() for a in (table.start, table.labeler, table.said)], 3)
    for name, kind in kinds:
        with kind(table) as model:
            one_pass(model, table)()
            taken = best(one_pass(model, table))
        print(f"    {name}: {taken * 1e3:.2f} ms an iteration, {taken / read:.1f} reads", end="")
        print(f" ({taken / sums:.1f} times numpy.sum of the same arrays)")


def fit_apart(program: str, method: str, shape: tuple[int, ...], out: str = "") -> dict[str, float]:
    """One fit in a fresh process."""
    python = sys.executable if program == "venire" else str(peer_python())
    arguments = [program, method, *map(str, shape), str(ITERATIONS), *([out] if out else [])]
    path = f"{ROOT / 'src'}{os.pathsep}{ROOT}" if program == "venire" else str(ROOT)
    done = subprocess.run(
        [python, "-W", "ignore", "-m", "benchmarks.one_fit", *arguments],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path},
    )
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def against(method: str, shape: tuple[int, int, int]) -> None:
    """The same model, the same labels, as many iterations, by crowd-kit."""
    with tempfile.TemporaryDirectory() as folder:
        files = [f"{folder}/{name}.npy" for name in ("ours", "theirs")]
        runs = [fit_apart("venire", method, shape, files[0]) for _ in range(3)]
        ours = sorted(runs, key=lambda run: run["em"])[len(runs) // 2]
        theirs = fit_apart("crowd-kit", method, shape, files[1])
        apart = np.abs(np.load(files[0]) - np.load(files[1])).max()
    print(f"  {method}, {shape[0] * LABELS:,} labels, {shape[1]} labelers, K={shape[2]}:", end="")
    print(f" crowd-kit {theirs['em']:.2f} s, {theirs['peak']:.0f} MB;", end="")
    print(f" venire {ours['em']:.3f} s, {ours['all']:.3f} from arrays, {ours['peak']:.0f} MB")
    print(f"    {theirs['em'] / ours['em']:.0f} times faster", end="")
    print(
        f" ({theirs['all'] / ours['all']:.0f} from arrays), {ours['peak'] / theirs['peak']:.2f}",
        end="",
    )
    print(f" of the memory, posteriors differ by at most {apart:.0e}")


def huge() -> None:
    shape = 20_000_000, 1000, 2
    for method in ("one-coin", "dawid-skene"):
        run = fit_apart("venire", method, shape)
        print(
            f"  {method}, 100,000,000 labels, {ITERATIONS} iterations: {run['em']:.2f} s,", end=""
        )
        print(f" {run['all']:.2f} from arrays, {run['peak'] / 1024:.2f} GB in all")
    passes(*shape)


def main(*options: str) -> None:
    print("Label aggregation: one EM iteration")
    passes(1_000_000, 1000, 2)
    passes(100_000, 500, 10)
    if "--peers" in options:
        print(f"Against crowd-kit, {ITERATIONS} iterations, each in a process of its own")
        against("one-coin", (1_000_000, 1000, 2))
        against("dawid-skene", (1_000_000, 1000, 2))
        against("one-coin", (100_000, 500, 10))
        against("dawid-skene", (100_000, 500, 10))
    if "--huge" in options:
        print("100 million labels")
        huge()
