from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.batch import plain
from venire.batch.choice import Belief, best_entries, first_entries
from venire.batch.labelers import BatchItem, Work
from venire.estimators import Auto


def random_work(rng: np.random.Generator) -> Work:
    n, M = int(rng.integers(1, 8)), int(rng.integers(1, 6))
    names = [f"l{m}" for m in range(M)]
    items = [
        BatchItem(
            f"i{i}",
            eligible=None
            if rng.random() < 0.5
            else frozenset(names[m] for m in np.flatnonzero(rng.random(M) < 0.6)),
        )
        for i in range(n)
    ]
    return Work.of(items, names)


@given(st.integers(0, 10_000))
def test_the_kernel_equals_the_plain_reference(seed: int) -> None:
    rng = np.random.default_rng(seed)
    work = random_work(rng)
    n, M, K = len(work.items), len(work.labelers), 3
    said = rng.integers(-2, K, work.labeler.size).astype(np.int32)
    risk, verdict = rng.choice([0.0, 0.1, 0.5], n), rng.integers(K, size=n)
    rival = (verdict + rng.integers(1, K, n)) % K
    evidence = rng.choice([0.0, 0.1, 0.4], (M, K, K))
    kinship = rng.random((M, M)) if M > 1 else np.zeros((1, 1))
    price = rng.choice([1.0, 2.0, np.inf], M)
    q = np.full((n, K), 1 / K)
    belief = Belief(Auto(), q, verdict, risk, rival, evidence, kinship, np.zeros(M, np.int64))
    entries, value = best_entries(work, said, belief, np.ones(n), price, seed)
    pairs = list(zip(verdict.tolist(), rival.tolist(), strict=True))
    wanted = plain.best(
        work, said.tolist(), risk.tolist(), pairs, evidence, kinship, price.tolist(), seed
    )
    assert value.tolist() == pytest.approx([v for _, v in wanted])
    assert [e for e, v in zip(entries.tolist(), value, strict=True) if v > 0] == [
        e for e, v in wanted if v > 0
    ]


@given(st.integers(0, 10_000))
def test_a_first_label_is_by_somebody_who_may_give_it(seed: int) -> None:
    rng = np.random.default_rng(seed)
    work = random_work(rng)
    free = rng.random(work.labeler.size) < 0.7
    first = first_entries(work, free, np.ones(len(work.labelers)), seed)
    for i, e in enumerate(first.tolist()):
        able = np.flatnonzero(free[work.start[i] : work.start[i + 1]]) + work.start[i]
        assert e in able.tolist() if able.size else e == -1
