"""An expert on the panel: who is asked, what it costs, and what becomes of the answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import venire as vn
from venire.batch import Caller, label_recorded
from venire.labels import LabelTable


def world(items: int, skills: list[float], seed: int) -> tuple[LabelTable, dict[int, int]]:
    rng = np.random.default_rng(seed)
    truth = rng.integers(2, size=items)
    right = rng.random((items, len(skills))) < skills
    said = np.where(right, truth[:, None], 1 - truth[:, None])
    return LabelTable.from_matrix(said, 2), dict(enumerate(truth.tolist()))


def live(seed: int = 0, asked: list[int] | None = None) -> tuple[dict[str, Any], list[Caller]]:
    """Sixty items and three weak labelers, and an expert who keeps a list of what it was asked."""
    table, truth = world(60, [0.75, 0.7, 0.65], seed)
    said = np.full((60, 3), -1)
    said[table.item, table.labeler] = table.said

    def weak(m: int) -> Any:
        return lambda i: int(said[i, m])

    def expert(i: int) -> int:
        if asked is not None:
            asked.append(i)
        return truth[i]

    panel = [Caller(f"weak-{m}", weak(m), 1.0) for m in range(3)]
    return {str(i): i for i in range(60)}, [*panel, Caller("dana", expert, 5.0, trusted=True)]


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    money=st.floats(20.0, 200.0),
    price=st.floats(0.5, 30.0),
    share=st.floats(0.05, 0.6),
)
def test_within_share_and_budget_and_always_right_there(
    seed: int, money: float, price: float, share: float
) -> None:
    table, truth = world(50, [0.8, 0.7, 0.6], seed)
    done = label_recorded(
        table, money, seed=seed, expert=truth, expert_price=price, expert_share=share
    )
    assert done.expert is not None
    assert done.expert.spent <= share * money + 1e-6
    assert done.spent <= money + 1e-6
    assert np.isclose(done.costs_paid.sum(), done.spent)
    assert len(done.expert.answers) == len(done.expert.costs)
    for item, label in done.expert.answers.items():
        assert done.verdicts[item] == vn.Verdict(label, 1.0)
        assert label == truth[item]


def test_the_least_sure_items_are_settled_and_the_others_stay_as_they_were() -> None:
    table, truth = world(80, [0.8, 0.75, 0.7, 0.65], 3)
    panel = label_recorded(table, 160.0 * 0.9, seed=1)
    done = label_recorded(table, 160.0, seed=1, expert=truth, expert_price=2.0)
    assert done.expert is not None
    # plainly: the money buys eight labels, of the eight verdicts with the least confidence
    by_doubt = sorted(range(80), key=lambda i: (panel.confidence[i], i))
    assert sorted(done.expert.answers) == sorted(by_doubt[:8])
    others = [i for i in range(80) if i not in done.expert.answers]
    assert np.array_equal(done.codes[others], panel.codes[others])
    assert np.array_equal(done.confidence[others], panel.confidence[others])
    assert done.rests_on == "by labels alone"
    turned = sum(panel.codes[i] != truth[i] for i in by_doubt[:8])
    assert done.expert.changed == turned


def test_a_live_expert_is_paid_by_its_share_and_is_in_the_record() -> None:
    asked: list[int] = []
    items, panel = live(asked=asked)
    done = vn.label(items, panel, 120.0, expert_share=0.25)
    assert done.expert is not None
    assert len(asked) == 6  # 30 of 120, at 5 each
    assert sorted(done.expert.answers) == sorted(map(str, asked))
    assert done.spent <= 120.0
    record = done.record()
    assert record["expert"]["labels"] == 6
    assert record["budget"]["money"] == 120.0
    assert [one["id"] for one in record["labelers"]] == ["weak-0", "weak-1", "weak-2"]
    assert "dana, who is trusted" in done.html()
    assert set(done.bought()["worker"]) <= {"weak-0", "weak-1", "weak-2"}


def test_a_run_that_resumes_pays_an_expert_once(tmp_path: Path) -> None:
    journal, asked = tmp_path / "journal", list[int]()
    items, panel = live(asked=asked)
    first = vn.label(items, panel, 120.0, expert_share=0.25, journal=journal)
    again = vn.label(items, panel, 120.0, expert_share=0.25, journal=journal)
    assert len(asked) == 6
    assert again.expert == first.expert
    assert again.spent == first.spent
    more = vn.label(items, panel, 160.0, expert_share=0.25, journal=journal)
    assert more.expert is not None
    assert len(asked) <= 8  # 40 of 160: what was paid before counts
    assert set(asked) == set(map(int, more.expert.answers))
    assert more.spent <= 160.0


def test_items_that_name_who_may_label_them() -> None:
    asked: list[int] = []
    _, panel = live(asked=asked)
    items = [{"id": str(i), "eligible": ["weak-0", "weak-1"]} for i in range(20)]
    items += [{"id": str(i), "eligible": ["weak-0", "dana"]} for i in range(20, 40)]

    def by_number(call: Any) -> Any:
        return lambda item: call(int(item["id"]))

    named = [Caller(c.id, by_number(c.call), c.price, trusted=c.trusted) for c in panel]
    vn.label(items, named, 80.0, expert_share=0.25)
    assert len(asked) == 4
    assert min(asked) >= 20


def test_a_class_that_only_the_expert_says() -> None:
    items = {str(i): i for i in range(30)}
    panel = [Caller("ann", lambda i: "ok", 1.0), Caller("bob", lambda i: "ok", 1.0),
             Caller("dana", lambda i: "spam", 2.0, trusted=True)]  # fmt: skip
    done = vn.label(items, panel, 60.0)
    assert done.expert is not None
    for item in done.expert.answers:
        assert done.verdicts[item].label == "spam"


@pytest.mark.parametrize(
    ("change", "budget", "options", "message"),
    [
        ({"trusted": "yes"}, 50.0, {}, "trusted='yes', expected true or false"),
        ({"price": 0.0}, 50.0, {}, "expert .* without a price"),
        ({}, vn.Budget(labels=50), {}, "no budget in money"),
        ({}, 50.0, {"expert_share": 1.5}, "expert_share=1.5, expected a share between 0 and 1"),
        ({"trusted": False}, 50.0, {"expert_share": 0.1}, "no expert: mark a labeler as trusted"),
    ],
)
def test_bad_input(
    change: dict[str, Any], budget: Any, options: dict[str, Any], message: str
) -> None:
    items, panel = live()
    told: dict[str, Any] = {"price": 5.0, "trusted": True} | change
    with pytest.raises(vn.InputError, match=message):
        vn.label(items, [*panel[:3], Caller("dana", panel[3].call, **told)], budget, **options)


def test_one_expert_and_somebody_else() -> None:
    items, panel = live()
    with pytest.raises(vn.InputError, match="'dana', 'eve' as trusted, expected one expert"):
        vn.label(items, [*panel, Caller("eve", len, 1.0, trusted=True)], 50.0)
    with pytest.raises(vn.InputError, match="an expert and nobody else"):
        vn.label(items, panel[3:], 50.0)
    table, truth = world(20, [0.8, 0.7], 0)
    with pytest.raises(vn.InputError, match="no labels of one: give expert="):
        label_recorded(table, 30.0, expert_price=3.0)
    with pytest.raises(vn.InputError, match="without a price"):
        label_recorded(table, 30.0, expert=truth)
