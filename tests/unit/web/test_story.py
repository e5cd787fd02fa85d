"""Stories: why an item was asked, and not one that seems worth more; one number for a belief."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from venire import Item, Label, Labeler, Scheduler
from venire.model import ExitReason, ItemStatus
from venire.server.messages import (
    Alternative,
    Belief,
    ExitView,
    Explanation,
    Given,
    ItemView,
)
from venire.server.pages.story import _asked, story_of
from venire.server.store.maintenance.export import agreeing


@pytest.mark.parametrize(
    ("other", "told"),
    [
        (Alternative("x", 0.1), "; the next best was x, worth 0.1."),
        (Alternative("x", 0.9, "bob"), "; x, worth 0.9, went to bob at the same time."),
        (Alternative("x", 0.9), "x alone was worth more, 0.9, but the policy looks at more"),
        (Alternative("x", None), "a label was worth 0.2."),
    ],
)
def test_why_it_was_this_item(other: Alternative, told: str) -> None:
    assert told in _asked(Given(1, 0, 0.0, "ann", 0.2, None, (other,)), False)


@given(
    st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("xyz")), max_size=4, unique=True)
)
@settings(max_examples=20, deadline=None)
def test_the_probability_of_the_verdict_is_its_confidence(said: list[tuple[str, str]]) -> None:
    panel = [Labeler(name, 0.6 + 0.1 * n) for n, name in enumerate("abcd")]
    scheduler = Scheduler(panel, classes=list("xyz"))
    scheduler.arrive(Item("i"))
    for labeler, label in dict(said).items():
        scheduler.observe(Label("i", labeler, label))
    verdict, shares = scheduler.verdict("i"), scheduler.posterior("i")
    assert sum(shares.values()) == pytest.approx(1)
    if verdict.label is not None:
        assert shares[verdict.label] == pytest.approx(verdict.confidence)


@given(
    st.lists(st.floats(0, 1), min_size=2, max_size=6).filter(lambda x: sum(x) > 0.01),
    st.floats(0, 1),
    st.integers(0, 5),
)
def test_exported_probabilities_agree_with_the_confidence(
    odds: list[float], sure: float, place: int
) -> None:
    classes = tuple("abcdef"[: len(odds)])
    verdict = classes[place % len(classes)]
    told = agreeing(tuple(p / sum(odds) for p in odds), classes, verdict, sure)
    assert told[classes.index(verdict)] == sure
    assert sum(p or 0 for p in told) == pytest.approx(1, abs=1e-6)


def left_as(verdict: str, shares: dict[str, float], cost: float) -> str:
    """The sentence about the exit of an item with these probabilities."""
    exit = ExitView(1, "i", verdict, shares[verdict], 1, ExitReason.UNDECIDED, 0, 1, 1.0)
    about = None, (), 0, 0.0, (), verdict, shares[verdict], None, ()
    item = ItemView("i", ItemStatus.LEFT, "text", 1.0, *about, exit)
    belief = Belief(1, 0, 0.0, "label", shares, "ann", verdict)
    told = Explanation("i", 0, (), (), exit, "so", True, (belief,))
    costs = [{"truth": "spam", "verdict": "ok", "cost": cost}]
    return next(line.text for line in story_of(item, told, costs) if line.kind == "left")


def test_a_story_says_what_costs_had_to_do_with_the_verdict() -> None:
    shares = {"ok": 0.7, "spam": 0.3}
    assert "on average: 0.6 as ok, 0.7 as spam." in left_as("ok", shares, 2.0)
    assert "By what errors cost it would be spam, but costs do not count" in left_as(
        "ok", shares, 20.0
    )


def test_a_story_says_that_somebody_was_asked_again() -> None:
    given = Given(1, 0, 0.0, "ann", -17.4, 2e-5, (Alternative("x", 0.1),))
    assert _asked(given, False) == "ann was asked."
    assert _asked(given, True).startswith("ann was asked again: the work had been given back")
