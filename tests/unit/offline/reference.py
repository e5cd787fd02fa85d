"""The optimum by trying every schedule, and small random instances."""

from __future__ import annotations

import itertools
import math

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from venire.offline import Instance


def best_by_trying(instance: Instance) -> float:
    """Every item with every choice of slots, as long as the blocks last."""
    choices = []
    for s in range(len(instance)):
        who, arrival = instance.may_label(s), int(instance.arrival[s])
        when = [None, *range(arrival, instance.slots)]
        one = []
        for slots in itertools.product(when, repeat=len(who)):
            blocks = [(m, t) for m, t in zip(who, slots, strict=True) if t is not None]
            one.append((earned(instance, s, blocks), blocks))
        choices.append([c for c in one if c[0] > 0])

    left = {
        (m, t): int(instance.capacity[m])
        for m in range(len(instance.capacity))
        for t in range(instance.slots)
    }

    def go(s: int) -> float:
        if s == len(instance):
            return 0.0
        best = go(s + 1)
        for value, blocks in choices[s]:
            if all(left[block] > 0 for block in blocks):
                for block in blocks:
                    left[block] -= 1
                best = max(best, value + go(s + 1))
                for block in blocks:
                    left[block] += 1
        return best

    return go(0)


def best_set_by_trying(
    weight: float, evidence: NDArray[np.float64], price: NDArray[np.float64]
) -> float:
    """The most that one item gains in one slot, by every set of labelers."""
    best = 0.0
    for chosen in itertools.product([False, True], repeat=len(evidence)):
        some = np.array(chosen)
        best = max(best, -weight * math.expm1(-evidence[some].sum()) - price[some].sum())
    return best


def earned(instance: Instance, item: int, blocks: list[tuple[int, int]]) -> float:
    if not blocks:
        return 0.0
    total = sum(float(instance.evidence[instance.phase_of(t), m]) for m, t in blocks)
    wait = max(t for _, t in blocks) - int(instance.arrival[item])
    money = sum(float(instance.money[m]) for m, _ in blocks)
    return -float(instance.weight[item]) * math.expm1(-total) - wait - money


@st.composite
def tiny_instances(draw: st.DrawFn) -> Instance:
    """Small enough to try everything: capacities, masks, phases, ties, prices of labels."""
    labelers, slots = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    items = draw(st.integers(1, 3 if labelers < 3 else 2))
    phases = draw(st.integers(1, min(2, slots)))
    evidence = st.sampled_from([0.0, 0.01, 0.2, 0.2, 0.5, 0.9, 1.3, 3.0])
    weight = st.sampled_from([0.5, 1.0, 2.0, 3.0, 3.0, 8.0, 40.0])
    money = st.sampled_from([0.0, 0.05, 0.4, 0.4, 1.5, 6.0] if draw(st.booleans()) else [0.0])
    groups = [np.zeros(0, np.int32)]
    some = draw(st.sets(st.integers(0, labelers - 1)))
    groups.append(np.array(sorted(some), np.int32))
    pairs = st.tuples(st.integers(0, items - 1), st.integers(0, labelers - 1))
    barred = draw(st.sets(pairs, max_size=2)) if draw(st.booleans()) else set()
    return Instance(
        np.array([draw(weight) for _ in range(items)]),
        np.array(sorted(draw(st.integers(0, slots - 1)) for _ in range(items))),
        slots,
        np.array([[draw(evidence) for _ in range(labelers)] for _ in range(phases)]),
        np.array([draw(st.sampled_from([1, 1, 2])) for _ in range(labelers)]),
        np.array([0, slots - 1][:phases]),
        np.array([draw(st.integers(0, 1)) for _ in range(items)], np.int32),
        tuple(groups),
        np.array(sorted(barred), np.int32).reshape(-1, 2),
        np.array([draw(money) for _ in range(labelers)]),
    )
