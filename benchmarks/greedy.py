"""Algorithm 1: one slot at scale, and the paper's whole synthetic run, against a NumPy loop."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median

import numpy as np

from benchmarks.numpy_loop import Given, NumpyQueue, NumpyRun
from venire import Fixed, World, simulate
from venire.paper.accuracy import evidence, vote_weight
from venire.scheduling.base import Belief
from venire.scheduling.kernel.desk import OUTSTANDING, ROWS, TOUCHES, Desk
from venire.scheduling.kernel.verdicts import believe
from venire.scheduling.policies.greedy import Greedy
from venire.simulation.loop import desk_of, run_of, stream_of

SEED = 0
SERVE = Greedy().kernels().serve


def seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def standing_queue(items: int, labelers: int) -> tuple[Desk, World, int]:
    """A real queue: items arrive over 50 slots, all labelers at work, until so many stand."""
    warm_up = 50
    rng = np.random.default_rng(SEED)
    p = np.sort(rng.uniform(0.6, 0.95, labelers))[::-1]
    world = World.synthetic(SEED, p, Fixed(items // (warm_up + 1)), weights=tuple(range(150, 1000)))
    stuff = world.items(warm_up + 1)
    desk = desk_of(world, stuff, warm_up + 1)
    believe(desk, Belief(world.competences))
    stream = stream_of(world, stuff, warm_up + 1)
    kernels = Greedy().kernels()
    run_of(kernels)(desk, stream, 0, warm_up)
    for row in range(stream.first[warm_up], stream.first[warm_up + 1]):
        desk.rows["state"][row] = OUTSTANDING
        desk.meta[ROWS] += 1
        kernels.enter(desk, row, warm_up)
    return desk, world, warm_up


def copied(desk: Desk) -> Desk:
    return Desk._make(part.copy() for part in desk)


def fast_slot(desk: Desk, slot: int) -> Given:
    first = int(desk.meta[TOUCHES])
    SERVE(desk, slot)
    touches = desk.touches[first : int(desk.meta[TOUCHES])]
    return list(zip(touches["row"].tolist(), touches["labeler"].tolist(), strict=True))


def time_slots(desk: Desk, slot: int, repeats: int) -> list[float]:
    """Each on a copy of its own, since serving a slot changes the desk."""
    SERVE(copied(desk), slot)
    times = []
    for _ in range(repeats):
        copy = copied(desk)
        times.append(seconds(lambda copy=copy: SERVE(copy, slot)))  # type: ignore[misc]
    return times


def numpy_copy(desk: Desk) -> NumpyQueue:
    """The same queue for the NumPy loop."""
    queue = NumpyQueue(np.array(desk.panel["evidence"]), desk.panel["capacity"].astype(np.int64))
    rows = np.flatnonzero(desk.rows["state"][: desk.meta[ROWS]] == OUTSTANDING)
    queue.row = rows
    queue.weight = np.array(desk.rows["weight"][rows])
    queue.evidence = np.array(desk.rows["evidence"][rows])
    queue.last = np.array(desk.rows["last"][rows], dtype=np.float64)
    queue.used = np.zeros((len(rows), len(desk.panel)), bool)
    touches = desk.touches[: desk.meta[TOUCHES]]
    held = np.isin(touches["row"], rows)
    queue.used[np.searchsorted(rows, touches["row"][held]), touches["labeler"][held]] = True
    return queue


def megabytes(desk: Desk) -> float:
    return sum(part.nbytes for part in desk) / 2**20


def one_slot() -> None:
    print("One slot of Algorithm 1")
    desk, _, slot = standing_queue(100_000, 1_000)
    times = time_slots(desk, slot, 7)
    ours = fast_slot(copied(desk), slot)
    standing = int((desk.rows["state"] == OUTSTANDING).sum())
    queue = numpy_copy(desk)
    start = time.perf_counter()
    theirs = queue.serve(slot)
    slow = time.perf_counter() - start
    same = "the same assignments" if ours == theirs else "OTHER ASSIGNMENTS"
    print(f"  {standing:,} outstanding, 1,000 labelers, {len(ours):,} assignments: {same}")
    print(f"  NumPy loop {slow:.3f} s, kernel {median(times) * 1e3:.3f} ms", end="")
    print(f" (of 7: {min(times) * 1e3:.3f} to {max(times) * 1e3:.3f})")
    print(f"  ratio {slow / median(times):,.0f}")
    small = median(times) / len(ours)
    desk, _, slot = standing_queue(1_000_000, 10_000)
    times = time_slots(desk, slot, 3)
    standing = int((desk.rows["state"] == OUTSTANDING).sum())
    n = len(fast_slot(copied(desk), slot))
    print(f"  {standing:,} outstanding, 10,000 labelers, {n:,} assignments:", end="")
    print(f" {median(times) * 1e3:.1f} ms, {megabytes(desk):,.0f} MB of state")
    print(f"  cost per assignment {small * 1e9:.0f} -> {median(times) / n * 1e9:.0f} ns,", end="")
    print(f" ratio {median(times) / n / small:.2f}")


def numpy_run(world: World, slots: int) -> Given:
    """The whole synthetic run by the NumPy loop."""
    items = world.items(slots)
    first = items.first(slots)
    p = world.competences
    run = NumpyRun(p, evidence(p), vote_weight(p), len(items))
    truth = np.where(items.truth == 0, 1.0, -1.0)
    for slot in range(slots):
        rows = np.arange(first[slot], first[slot + 1])
        run.slot(slot, rows, items.weight[rows], truth)
    return run.given


def whole_run() -> None:
    print("The paper's synthetic run, 10,000 slots")
    world = World.synthetic(SEED)
    run = simulate(world, Greedy())
    times = [seconds(lambda: simulate(world, Greedy())) for _ in range(5)]
    start = time.perf_counter()
    theirs = numpy_run(world, 10_000)
    slow = time.perf_counter() - start
    ours = list(zip(run.touches["row"].tolist(), run.touches["labeler"].tolist(), strict=True))
    same = "the same assignments" if ours == theirs else "OTHER ASSIGNMENTS"
    print(f"  {len(run.rows):,} items, {len(ours):,} assignments: {same}")
    print(f"  NumPy loop {slow:.2f} s, simulate {median(times) * 1e3:.1f} ms", end="")
    print(f" (of 5: {min(times) * 1e3:.1f} to {max(times) * 1e3:.1f})")
    print(f"  ratio {slow / median(times):,.0f}")


def main() -> None:
    one_slot()
    whole_run()
