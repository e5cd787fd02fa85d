"""A student is taught what the panel says without it, and never fools itself."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.student.worlds import World, world
from venire.estimators import Auto
from venire.labels import LabelTable
from venire.student import Student
from venire.student.student import lessons, with_voices

STUDENT = Student(bins=1)


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10_000), st.integers(1, 4))
def test_its_own_votes_change_nothing_of_what_it_is_taught(seed: int, bins: int) -> None:
    """To the bit what a panel says on which it never sat, whatever it votes."""
    rng = np.random.default_rng(seed)
    n, K, student = 30, int(rng.integers(2, 4)), Student(bins=bins)
    said = rng.integers(-1, K, (n, 4))
    said[0, 0] = 0
    table = LabelTable.from_matrix(said, K)
    votes = rng.integers(bins, size=n), rng.integers(K, size=n)
    both = with_voices(table, student, np.arange(n), *votes)
    with_them, without = lessons(both, frozenset(student.voices)), lessons(table)
    assert with_them.posterior.tolist() == without.posterior.tolist()
    assert with_them.known.tolist() == without.known.tolist() == (said >= 0).any(axis=1).tolist()


def test_the_posterior_is_bayes_rule_over_the_labels_of_the_others() -> None:
    from venire.estimators import Anchored

    made = world(0, items=100, labels=3)
    fitted = Anchored().fit(made.table)
    found = lessons(made.table).posterior
    for i in range(100):
        plain = fitted.priors_.copy()
        for m, said in enumerate(made.said[i].tolist()):
            if said >= 0:
                plain = plain * fitted.confusions_[m][:, said]
        assert np.allclose(found[i], plain / plain.sum())


def test_gold_is_taught_as_it_is() -> None:
    rows = [("a", "ann", "yes"), ("a", "bob", "yes"), ("b", "ann", "no"), ("b", "bob", "no")]
    taught = lessons(LabelTable.from_rows(rows), gold={"a": "no"})
    assert taught.posterior[0].tolist() == [1.0, 0.0]


def school(made: World, contents: list[list[float]], own: frozenset[str]) -> tuple[float, float]:
    """Eight versions, each taught with the votes of the last one in the table.

    `own` are those that are left out. How right the verdicts are in the end, if it votes as
    soon as it is found to have learned anything, and how often it agrees with its teachers.
    """
    rng, n = np.random.default_rng(1), len(contents)
    seen, votes = STUDENT.look(contents), rng.integers(2, size=n)
    for _ in range(8):
        voted = with_voices(made.table, STUDENT, np.arange(n), np.zeros(n, np.int64), votes)
        taught = STUDENT.learn(seen, lessons(voted, own))
        assert taught
        votes = taught.answers(taught.held_out)[1]
    assert taught is not None
    last = with_voices(made.table, STUDENT, np.arange(n), np.zeros(n, np.int64), votes)
    verdicts = Auto().fit(last if taught.ready else made.table).posteriors_.argmax(axis=1)
    return made.right(verdicts), taught.agreement


@pytest.mark.slow
def test_one_that_was_fed_its_own_votes_would_fool_itself() -> None:
    """It sees noise. Fed its own votes it agrees with itself, is believed, and does harm."""
    harm = []
    for seed in range(3):
        made = world(seed, labels=1)
        noise = np.random.default_rng(seed + 100).normal(size=(600, 8)).tolist()
        alone = made.right(Auto().fit(made.table).posteriors_.argmax(axis=1))
        fed, believed = school(made, noise, frozenset())
        left_out, measured = school(made, noise, frozenset(STUDENT.voices))
        assert left_out == alone
        assert measured < 0.6
        assert believed > 0.65
        harm.append(alone - fed)
    assert min(harm) >= 0.0
    assert float(np.mean(harm)) > 0.03
