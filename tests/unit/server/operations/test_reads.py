"""What can be read: items, explanations, labelers and figures."""

import random
from dataclasses import replace

import pytest

from tests.unit.server.support import bench, running
from venire.errors import NotFound
from venire.server import Lease, ServiceSettings
from venire.server.reports.skill_report import Report, measure


@running
async def test_an_explanation_has_the_unit_of_weight_that_held_at_the_time() -> None:
    async with bench(delay_cost=4.0, default_weight=8.0, policy="greedy") as b:
        await b.add("p1")
        lease = await b.take("ann")
        b.clock.advance(1)
        await b.service.change_stream("posts", {"delay_cost": 2.0}, "me")
        (given,) = (await b.service.explain("posts", "p1")).given
        assert given.gain == lease.gain


@running
async def test_an_item_shows_its_posterior_while_open_and_its_exit_afterwards() -> None:
    async with bench() as b:
        await b.add("p1", weight=4.0)
        lease = await b.take("ann")
        view = await b.service.item("posts", "p1")
        assert (view.status, view.held_by, view.verdict) == ("open", ("ann",), None)
        await b.service.label(str(lease.token), "spam")
        view = await b.service.item("posts", "p1")
        assert view.posterior == pytest.approx({"spam": 0.9, "ok": 0.1})
        assert view.verdict == "spam"
        assert view.confidence == pytest.approx(0.9)
        await b.service.add_labels("posts", [("p1", "bob", "spam")])
        await b.pass_time(10)
        view = await b.service.item("posts", "p1")
        assert view.exit is not None
        assert (view.status, view.exit.reason, view.exit.labels) == ("left", "overlap", 2)
        assert [label.source for label in view.labels] == ["lease", "bulk"]
        with pytest.raises(NotFound):
            await b.service.item("posts", "p2")


@running
async def test_an_explanation_is_what_the_scheduler_saw() -> None:
    async with bench(policy="greedy", server=ServiceSettings(snapshot_every=5)) as b:
        given: dict[str, list[tuple[str, float | None]]] = {}
        ranks: dict[tuple[str, str], list[str]] = {}
        for k in range(12):
            await b.add(f"p{k}", weight=5.0 + k % 4)
            for name in ("ann", "bob", "cec"):
                rank = [item for item, _ in b.live.engine.ranking(name, 6)]
                got = await b.service.next("posts", name)
                if isinstance(got, Lease):
                    given.setdefault(got.item, []).append((name, got.gain))
                    ranks[got.item, name] = [item for item in rank if item != got.item][:5]
                    await b.service.label(str(got.token), "spam")
            await b.pass_time(10)
        for item, expected in given.items():
            why = await b.service.explain("posts", item)
            assert [(g.labeler, g.gain) for g in why.given] == expected
            for g in why.given:
                assert [other.item for other in g.alternatives] == ranks[item, g.labeler]
            assert len(why.labels) == len(expected)
        assert len(given) == 12
        first = await b.service.explain("posts", "p0")
        assert first.exit is not None
        assert (first.exit.reason, first.why) == (
            "exhausted",
            "every labeler that may label it had done so, or was not expected any more",
        )


@running
async def test_insights_add_up() -> None:
    async with bench(policy="fixed-overlap:2", label_budget=100) as b:
        await b.add("p1", "p2", "p3")
        await b.service.add_labels("posts", [("p1", "ann", "spam"), ("p1", "bob", "ok")])
        await b.take("cec")
        await b.pass_time(10)
        figures = await b.service.insights("posts")
        assert (figures.open_items, figures.labels, figures.exits) == (2, 2, 1)
        assert figures.leased_items == 1
        assert figures.exits_per_minute == 1.0
        assert figures.oldest_seconds == 10.0
        assert figures.agreement == 0.5
        assert figures.budget_left == 97
        assert figures.response_median == 10.0
        assert figures.reasons == {"overlap": 1}
        assert figures.labelers == {"free": 0, "busy": 1, "away": 2}
        states = {view.id: view.state for view in await b.service.labelers("posts")}
        assert states == {"ann": "away", "bob": "away", "cec": "busy"}


@running
async def test_insights_are_the_same_after_a_restart() -> None:
    async with bench(policy="fixed-overlap:2") as b:
        await b.add("p1", "p2", "p3", "p4")
        rows = [
            ("p1", "ann", "spam"),
            ("p1", "bob", "ok"),
            ("p2", "ann", "ok"),
            ("p2", "bob", "ok"),
        ]
        await b.service.add_labels("posts", rows[:2])
        await b.pass_time(10)
        await b.service.withdraw("posts", "p3")
        await b.service.add_labels("posts", [*rows[2:], ("p1", "cec", "spam")])  # the last is late
        await b.pass_time(30)
        before = await b.service.insights("posts")
        assert (before.agreement, before.labels_per_item) == (0.75, 2.0)
        assert (before.response_median, before.response_p90) == (10.0, 40.0)
        assert before.verdicts == {"ok": 1, "spam": 1}
    b.clock.advance(3600)
    async with bench(b.storage, b.clock) as again:
        after = await again.service.insights("posts")
        now = {"oldest_seconds": 3640.0, "exits_per_minute": 0.0, "labels_per_minute": 0.0}
        hour = {"exits_by_minute": (0,) * 60, "queue_by_minute": (1,) * 60}
        assert after == replace(before, **now, **hour)  # type: ignore[arg-type]


def test_intervals_drift_and_clones_are_measured_from_labels() -> None:
    rng = random.Random(0)
    skills = {"a": 0.9, "b": 0.8, "c": 0.7, "d": 0.75, "e": 0.8, "f": 0.75}
    rows: list[tuple[str, str, str]] = []
    for k in range(1500):
        truth = rng.choice(["spam", "ok"])
        other = "ok" if truth == "spam" else "spam"
        said = {m: truth if rng.random() < p else other for m, p in skills.items()}
        said["copy of c"] = said["c"]
        if k > 700:
            said["a"] = rng.choice(["spam", "ok"])
        rows += [(f"p{k}", m, x) for m, x in said.items()]
    report = measure(rows, ("spam", "ok"))
    found = report.skills
    low, high = found["b"].low, found["b"].high
    assert low is not None
    assert high is not None
    assert low < 0.8 < high
    assert high - low < 0.5  # most of it allows for what the panel may err in as a whole
    assert found["copy of c"].low == found["c"].low
    assert [name for name, skill in found.items() if skill.drifting] == ["a"]
    assert {name: s.clone_of for name, s in found.items() if s.clone_of} == {"copy of c": "c"}


def test_of_few_labels_nothing_is_said() -> None:
    assert measure([], ("spam", "ok")) == Report({})
    rows = [("a", "ann", "ok"), ("a", "bob", "ok"), ("b", "ann", "ok"), ("b", "bob", "spam")]
    found = measure(rows, ("spam", "ok")).skills
    assert {name: (s.skill, s.agreement) for name, s in found.items()} == {
        "ann": (None, 0.5),
        "bob": (None, 0.5),
    }


def test_items_that_one_labeler_labelled_do_not_move_skills() -> None:
    """With gold of some, they made intervals narrow where they were wrong."""
    rng = random.Random(0)
    skills, classes = {"ann": 0.93, "bob": 0.82, "cat": 0.85, "dan": 0.7}, ("ok", "toxic", "threat")
    shared, alone = list[tuple[str, str, str]](), list[tuple[str, str, str]]()
    gold = dict[str, str]()
    for n in range(1600):
        truth = rng.choices(classes, [0.66, 0.30, 0.04])[0]
        for name in rng.sample(list(skills), 2 if n < 350 else 1):
            right = rng.random() < skills[name]
            label = truth if right else rng.choice([x for x in classes if x != truth])
            (shared if n < 350 else alone).append((f"i{n}", name, label))
        if n < 350 and rng.random() < 0.35:
            gold[f"i{n}"] = truth
    alone = [row for row in alone if row[0] != "i1599"] + [("i1599", "eve", "ok")]
    found = measure(shared + alone, classes, gold).skills
    assert found["eve"].skill is None
    for name, told in measure(shared, classes, gold).skills.items():
        assert (found[name].skill, found[name].low, found[name].high) == (
            told.skill,
            told.low,
            told.high,
        )
