"""Trends over the latest exits, against a plain count, and by the store."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.server.support import bench, running
from venire.server.reports.trends import Known, trends_over
from venire.server.store import Exited, LabelRow

KNOWN = Known({"ann": 0.5, "bob": 2.0}, frozenset({"pupil"}))
WHO = ("ann", "bob", "pupil")

LABELS = st.lists(
    st.tuples(st.integers(0, 29), st.sampled_from(WHO), st.sampled_from("abc"), st.booleans()),
    max_size=90,
    unique_by=lambda row: row[:2],
)


@given(rows=LABELS, n=st.integers(1, 30))
def test_votes_money_and_the_student_by_a_plain_count(
    rows: list[tuple[int, str, str, bool]], n: int
) -> None:
    exits = [
        Exited(
            item=str(k),
            arrived_slot=0,
            arrived_at=0.0,
            exit_slot=1,
            left_at=float(k),
            verdict="a",
            confidence=0.9,
            labels=1,
            reason="no_gain",
            said=1,
            agreed=1,
        )
        for k in range(n)
    ]
    labels = [
        LabelRow(
            stream="s",
            item=str(k),
            labeler=m,
            said=x,
            at=1.0,
            slot=0,
            late=late,
            lead_seconds=None,
            source="",
        )
        for k, m, x, late in rows
    ]
    came = list(range(-(-n // max(5, -(-n // 24)))))
    periods = trends_over("s", exits, labels, came, KNOWN).periods
    assert [period.arrivals for period in periods] == came
    first = 0
    for period in periods:
        names = [str(k) for k in range(first, first + period.exits)]
        first += period.exits
        of = {i: [x for x in labels if x.item == i and not x.late] for i in names}
        paid = sum(
            {"ann": 0.5, "bob": 2.0}.get(x.labeler, 0.0) for each in of.values() for x in each
        )
        assert period.money == pytest.approx(paid)
        alone = [i for i in names if of[i] and {x.labeler for x in of[i]} == {"pupil"}]
        assert period.student_share == pytest.approx(len(alone) / len(names))
        voted = [each for each in of.values() if each]
        for said in "abc":
            share = sum(sum(x.said == said for x in each) / len(each) for each in voted)
            expected = share / len(voted) if voted else 0.0
            assert period.votes.get(said, 0.0) == pytest.approx(expected)
    assert first == n


@running
async def test_arrivals_are_those_between_the_exits_and_money_is_at_the_prices() -> None:
    panel = [{"id": "ann", "competence": 0.9, "price": 0.25}, {"id": "bob", "competence": 0.8}]
    async with bench(policy="fixed-overlap:1", panel=panel) as b:
        for n in range(7):
            await b.add(f"i{n}")
            await b.service.add_labels("posts", [(f"i{n}", "ann" if n % 2 else "bob", "ok")])
            await b.pass_time(10)
        first, last = (await b.service.trends("posts")).periods
        assert (first.exits, last.exits) == (5, 2)
        assert (first.arrivals, last.arrivals) == (4, 2)  # the first came before the first exit
        assert (first.money, last.money) == (0.5, 0.25)
        assert first.votes == last.votes == {"ok": 1.0}


@running
async def test_items_that_left_without_a_label_have_no_part_in_the_estimated_accuracy() -> None:
    async with bench(deadline_slots=2) as b:
        await b.add("nobody", "saw", "these")
        await b.pass_time(30.0)
        now, trends = await b.service.insights("posts"), await b.service.trends("posts")
        assert (now.exits, now.verdicts) == (3, {})
        assert now.mean_confidence is now.accuracy_low is trends.accuracy is None
        await b.add("labelled")
        await b.service.add_labels("posts", [("labelled", "ann", "spam")])
        await b.pass_time(30.0)
        now, trends = await b.service.insights("posts"), await b.service.trends("posts")
        left = await b.service.item("posts", "labelled")
        assert now.mean_confidence == trends.accuracy == left.confidence
        assert trends.periods[-1].confidence == left.confidence
