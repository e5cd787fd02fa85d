"""The suite trust-2: its worlds are what they say, and what is measured on them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from venire import FixedOverlap, LearnThenServe, LearnWhileServing, Realised, World, simulate
from venire.errors import UnknownName
from venire_research.sweeps.store import Store
from venire_research.sweeps.sweep import Point
from venire_research.trust import WORLDS, compare, labels_of, measure, world_named
from venire_research.trust.posts import JUDGES, posts
from venire_research.trust.summary import concluding, sheets, summarise

ROOT = Path(__file__).parent.parent.parent.parent


def said_in(world: World, slots: int) -> tuple[np.ndarray, np.ndarray]:
    """The truth of each item, and what everybody says of it: items x labelers, -1 for nothing."""
    items, table = world.items(slots), world.recorded_labels
    assert table is not None
    said = np.full((len(table.items), len(table.labelers)), -1)
    said[table.item, table.labeler] = table.said
    return items.truth.astype(int), said[items.source]


def made(name: str, slots: int = 300, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    return said_in(world_named(name).make(seed, slots), slots)


@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.name)
def test_a_world_can_be_served_and_depends_on_its_seed(world: Any) -> None:
    first, again, other = (world.make(seed, 40) for seed in (0, 0, 1))
    assert np.array_equal(said_in(first, 40)[1], said_in(again, 40)[1])
    assert not np.array_equal(said_in(first, 40)[1], said_in(other, 40)[1])
    run = simulate(first, FixedOverlap(3), slots=40)
    table = labels_of(run)
    _, said = said_in(first, 40)
    assert (said[table.item, table.labeler] == table.said).all()
    assert world.sentence


def test_spammers_say_the_first_class_and_nothing_else() -> None:
    truth, said = made("spammers-6")
    assert said.shape[1] == 18
    assert (said[:, 12:] == 0).all()
    assert np.allclose((said[:, :12] == truth[:, None]).mean(axis=0), 0.8, atol=0.06)
    assert made("spammers-0")[1].shape[1] == 12


@pytest.mark.parametrize("many", [3, 4, 5, 8])
def test_small_panels(many: int) -> None:
    truth, said = made(f"panel-{many}", 2000)
    right = (said == truth[:, None]).mean(axis=0)
    assert np.allclose(right, np.linspace(0.9, 0.6, many), atol=0.04)


def test_classes_and_their_shares() -> None:
    assert set(made("five-classes")[0]) == set(range(5))
    truth, _ = made("rare", 2000)
    assert 0.012 < truth.mean() < 0.03


def test_specialists_know_a_class_or_a_kind() -> None:
    truth, said = made("class-specialists", 1000)
    for m in range(12):
        own = truth == m % 4
        assert (said[own, m] == truth[own]).mean() > 0.9
        assert (said[~own, m] == truth[~own]).mean() < 0.55
    truth, said = made("type-specialists", 1000)
    right = said == truth[:, None]
    assert np.allclose(right.mean(axis=0), 0.75, atol=0.05)
    together = np.corrcoef(right.T.astype(float))
    assert together[0, 2] > 0.1 > together[0, 1]


def test_families_err_together() -> None:
    truth, said = made("families", 1000)
    wrong = (said != truth[:, None]).astype(float)
    together = np.corrcoef(wrong.T)
    assert together[0, 1] > 0.5
    assert abs(together[0, 4]) < 0.1
    assert np.allclose(1 - wrong.mean(axis=0), np.repeat(np.linspace(0.85, 0.65, 4), 4), atol=0.05)


def test_adversaries_are_below_chance() -> None:
    truth, said = made("adversaries", 1000)
    right = (said == truth[:, None]).mean(axis=0)
    assert (right[:10] > 0.6).all()
    assert (right[10:] < 0.4).all()


def test_people_come_and_go() -> None:
    world = world_named("come-and-go").make(0, 400)
    _, said = said_in(world, 400)
    arrival = world.items(400).arrival
    here = said >= 0
    assert 7 < here.sum(axis=1).mean() < 13
    spans = [np.ptp(arrival[here[:, m]]) for m in range(40) if here[:, m].any()]
    assert max(spans) < 100


def test_few_labels_each() -> None:
    _, said = made("few-labels")
    assert Counter((said >= 0).sum(axis=1).tolist()) == {5: len(said)}
    assert 8 < (said >= 0).sum(axis=0).mean() < 17


def test_the_walk_through_is_that_of_the_documentation() -> None:
    text = (ROOT / "docs" / "serve.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    code = next(block for block in blocks if "def keywords" in block)
    theirs: dict[str, Any] = {}
    exec(compile(code, "docs/serve.md", "exec", dont_inherit=True), theirs)
    names = {"spam": 0, "ok": 1}
    for post in posts([0, 1] * 200, seed=1):
        for judge in JUDGES:
            assert judge(post) == names[theirs[judge.__name__]({"text": post})]
    for words in (["BUY", "now", "cheap", "offer"], ["see", "you", "at", "lunch"]):
        assert str(words).replace("'", '"') in text


def test_what_is_measured_is_of_the_same_labels() -> None:
    row = measure("spammers-4", FixedOverlap(3), LearnWhileServing(), seed=1, slots=80)
    world = world_named("spammers-4").make(1, 80)
    run = simulate(world, FixedOverlap(3), LearnWhileServing(), slots=80)
    table, truth = labels_of(run), run.items.truth.tolist()
    total = own = 0.0
    for i, right in enumerate(truth):
        votes = Counter(table.said[table.start[i] : table.start[i + 1]].tolist())
        top = [k for k in (0, 1) if votes[k] == max(votes[0], votes[1])]
        total += (right in top) / len(top)
        verdict = int(run.rows["verdict"][i])
        own += 0.5 if verdict < 0 else verdict == right
    assert row["majority"] == pytest.approx(total / len(truth))
    assert row["streamed"] == pytest.approx(own / len(truth))
    assert row["labels"] == len(run.touches) / len(truth)
    assert run.learner is not None
    alarms = run.learner.alarms()
    assert alarms is not None
    assert (row["labelers"], row["alarms"]) == (16, alarms.sum())
    assert row["alarms_allowed"] == pytest.approx(0.001 * len(run.touches) / 1000)


def test_items_of_a_learning_phase_do_not_count() -> None:
    row = measure("panel-4", FixedOverlap(3), LearnThenServe(30), slots=80)
    arrival = world_named("panel-4").make(0, 80).items(80).arrival
    assert row["items"] == int((arrival >= 30).sum())


class Nothing:
    """An executor for when there is nothing left to run."""

    def run(self, points: Sequence[Point]) -> Iterator[tuple[Point, Any]]:
        assert not points
        return iter(())


def test_finished_cells_are_not_run_again(tmp_path: Path) -> None:
    how: dict[str, Any] = {
        "quick": True, "seeds": 1, "policies": [FixedOverlap(3)], "learning": [LearnWhileServing()],
    }  # fmt: skip
    with Store(tmp_path / "points.sqlite") as store:
        first = compare(["panel-3"], store=store, **how)
        assert compare(["panel-3"], store=store, executor=Nothing(), **how) == first
        compare(["panel-3", "panel-4"], store=store, **how)
        assert len(store) == 2
    with pytest.raises(UnknownName, match="did you mean"):
        compare(["panel"])


@pytest.mark.parametrize(
    ("streamed", "majority", "auto", "passed"),
    [
        (0.90, 0.91, 0.93, True),
        (0.90, 0.92, 0.90, False),
        (0.90, 0.80, 0.94, False),
        (0.90, 0.91, 0.929, True),
    ],
)
def test_pass_or_fail(streamed: float, majority: float, auto: float, passed: bool) -> None:
    names = ("confidence", "ece", "sure", "sure_wrong", "auto_ece")
    known = dict.fromkeys((*names, "labelers", "alarms", "alarms_allowed"), 0.1)
    one = {
        "suite": "trust-2", "world": "rare", "learning": "while-serving",
        "policy": Realised().describe(), "items": 5, "labels": 2.0, "dawid-skene": 0.9,
        "streamed": streamed, "majority": majority, "auto": auto,
    }  # fmt: skip
    rows = [one | known | {"seed": seed} for seed in range(2)]
    (line,) = lines = summarise(rows)
    assert line["passed"] is passed
    said = concluding(lines)
    assert said[0].startswith(f"{int(passed)} of 1 pass")
    assert any(text.startswith("fails: rare, realised") for text in said) is not passed
    (sheet,) = sheets(lines)
    assert sheet.rows[0][1].endswith("!") is not passed
