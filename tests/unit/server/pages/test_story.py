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
    GoldSaid,
    GoldView,
    ItemView,
    RevisionView,
)
from venire.server.pages.story import _asked, chart_of, story_of
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


def golden(label: str, at: float, *earlier: GoldSaid) -> GoldView:
    return GoldView("i", label, at, "review", "chief", None, earlier)


def item_with(
    shares: dict[str, float], gold: GoldView | None, *revisions: RevisionView
) -> tuple[ItemView, list[Belief]]:
    """An item that left at 2 by these beliefs, and what was said of it since."""
    verdict = max(shares, key=lambda name: shares[name])
    exit = ExitView(1, "i", verdict, shares[verdict], 2, ExitReason.CONFIDENT, 0, 1, 2.0)
    about = None, (), 0, 0.0, (), verdict, shares[verdict], None, ()
    item = ItemView("i", ItemStatus.LEFT, "text", 1.0, *about, exit, revisions, gold_said=gold)
    even = dict.fromkeys(shares, 1 / len(shares))
    beliefs = [Belief(1, 0, 0.0, "arrived", even), Belief(2, 1, 1.0, "label", shares, "ann", "ok")]
    return item, beliefs


def ends(item: ItemView, beliefs: list[Belief]) -> dict[str, float | None]:
    """Where the curves of the picture end."""
    chart = chart_of(item, beliefs)
    assert chart is not None
    return {curve.name: curve.last for curve in chart.curves}


def test_the_picture_ends_with_what_the_page_says() -> None:
    shares = {"ok": 0.9, "toxic": 0.06, "threat": 0.04}
    revision = RevisionView(1, "i", "ok", 0.9, "toxic", 0.7, 2, 3, 3.0)
    certain = {"ok": 1.0, "toxic": 0.0, "threat": 0.0}
    assert ends(*item_with(shares, None)) == shares
    assert ends(*item_with(shares, golden("ok", 3.0))) == certain
    assert ends(*item_with(shares, golden("ok", 1.5))) == certain  # known before it left
    assert ends(*item_with(shares, None, revision)) == {"toxic": 0.7, "ok": None, "threat": None}
    two, beliefs = item_with({"ok": 0.9, "toxic": 0.1}, None, revision)
    assert ends(two, beliefs) == pytest.approx({"toxic": 0.7, "ok": 0.3})


def test_gold_that_agrees_is_told_and_gold_that_differs_is_told_once() -> None:
    shares = {"ok": 0.9, "toxic": 0.1}
    item, beliefs = item_with(shares, golden("ok", 3.0))
    told = Explanation("i", 0, (), (), item.exit, "so", True, tuple(beliefs))
    said = [line.text for line in story_of(item, told) if line.at == 3.0]
    assert said == ["Somebody trusted said ok: that is certain."]
    revision = RevisionView(1, "i", "ok", 0.9, "toxic", 1.0, 2, 3, 3.0)
    item, beliefs = item_with(shares, golden("toxic", 3.0), revision)
    said = [line.text for line in story_of(item, told) if line.at == 3.0]
    assert said == ["The verdict was revised from ok to toxic, by gold."]
