"""A batch at scale: seconds and memory of `label_recorded`, against a plain loop.

100,000 items, 50 labelers, three labels an item; the plain loop (`plain_batch`) on a tenth of it,
beside the same tenth by venire. `--huge`: the plain loop on all of it too.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from multiprocessing import get_context

import numpy as np

from benchmarks.plain_batch import buy_plainly
from venire.batch import label_recorded
from venire.estimators import Auto
from venire.labels import LabelTable
from venire.labels.table import keep_labels
from venire.model import Budget

LABELERS, EACH = 50, 3


def world(items: int) -> tuple[LabelTable, np.ndarray]:
    """Everybody's labels, of labelers who are right on 55 to 95 %."""
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=items).astype(np.uint8)
    skill = rng.uniform(0.55, 0.95, LABELERS)
    hit = rng.random((items, LABELERS), dtype=np.float32) < skill
    said = np.where(hit, truth[:, None], 1 - truth[:, None]).astype(np.uint8)
    start = np.arange(0, items * LABELERS + 1, LABELERS)
    labeler = np.tile(np.arange(LABELERS, dtype=np.uint16), items)
    names = range(items), range(LABELERS), range(2)
    return LabelTable(*names, start, labeler, said.ravel()), truth


def ours(table: LabelTable, truth: np.ndarray) -> float:
    done = label_recorded(table, Budget(labels=EACH * len(table.items)))
    return float((done.codes == truth).mean())


def plainly(table: LabelTable, truth: np.ndarray) -> float:
    keep = np.zeros(table.said.size, np.bool_)
    keep[buy_plainly(table, EACH * len(table.items), 0)] = True
    verdicts = Auto().fit(keep_labels(table, keep)).posteriors_.argmax(axis=1)
    return float((verdicts == truth).mean())


def measured(way: Callable[[LabelTable, np.ndarray], float], items: int) -> tuple[float, ...]:
    """Seconds, those of the processor, megabytes on top of the table, share of right verdicts."""
    with get_context("spawn").Pool(1) as pool:
        return pool.apply(_measure, (way, items))


def _measure(way: Callable[[LabelTable, np.ndarray], float], items: int) -> tuple[float, ...]:
    way(*world(300))  # compiles
    table, truth = world(items)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start, worked = time.perf_counter(), time.process_time()
    right = way(table, truth)
    took, worked = time.perf_counter() - start, time.process_time() - worked
    return took, worked, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024, right


def main(*options: str) -> None:
    print(f"Batches of {LABELERS} labelers, {EACH} labels an item")
    runs = [("venire", ours, 100_000), ("venire", ours, 10_000), ("plain loop", plainly, 10_000)]
    if "--huge" in options:
        runs.append(("plain loop", plainly, 100_000))
    for name, way, items in runs:
        took, worked, more, right = measured(way, items)
        print(
            f"  {name:10} {items:7,} items  {took:6.1f} s ({worked:.1f} s of "
            f"processor)  {more:6.0f} MB more  "
            f"{100 * right:.1f} % right",
            flush=True,
        )
