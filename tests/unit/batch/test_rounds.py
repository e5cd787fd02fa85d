"""A budget is never exceeded, and spent where it pays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import venire as vn
from venire.batch.labelers import Recorded
from venire.batch.rounds import IN_BATCHES
from venire.labels import LabelTable


def world(
    seed: int, items: int = 300, skills: tuple[float, ...] = (0.6, 0.7, 0.75, 0.8, 0.9)
) -> tuple[LabelTable, dict[int, int]]:
    rng = np.random.default_rng(seed)
    truth = rng.integers(2, size=(items, 1))
    said = np.where(rng.random((items, len(skills))) < skills, truth, 1 - truth)
    return LabelTable.from_matrix(said), dict(enumerate(truth[:, 0].tolist()))


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10_000))
def test_a_budget_is_never_exceeded(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, M, K = int(rng.integers(3, 30)), int(rng.integers(1, 7)), int(rng.integers(2, 4))
    said = rng.integers(-1, K, (n, M))
    said[:, 0] = rng.integers(K, size=n)
    table = LabelTable.from_matrix(said, K)
    prices = {m: float(p) for m, p in enumerate(rng.choice([0.0, 0.5, 1.0, 3.0], M))}
    prices[0] = 1.0
    budget = vn.Budget(
        money=float(rng.integers(1, 40)),
        labels=int(rng.integers(1, 60)) if rng.random() < 0.5 else None,
    )
    done = vn.label_recorded(table, budget, prices=prices, seed=seed)
    assert budget.money is not None
    assert done.spent <= budget.money + 1e-9
    assert budget.labels is None or done.asked <= budget.labels
    assert done.asked == len(done.table.said) == done.counts.sum()
    paid = sum(prices[int(m)] for m in done.table.labeler)
    assert done.spent == pytest.approx(paid)
    assert done.costs_paid.sum() == pytest.approx(done.spent)
    assert [p.labels for p in done.curve] == sorted(p.labels for p in done.curve)


def test_the_same_seed_buys_the_same_labels() -> None:
    table, _ = world(0)
    one, two, other = (
        vn.label_recorded(table, vn.Budget(labels=700), seed=seed) for seed in (3, 3, 4)
    )
    assert one.table.labeler.tolist() == two.table.labeler.tolist()
    assert list(one.rows()) == list(two.rows())
    assert one.table.labeler.tolist() != other.table.labeler.tolist()


def test_every_item_gets_a_label_first() -> None:
    table, _ = world(1)
    done = vn.label_recorded(table, vn.Budget(labels=300))
    assert done.counts.tolist() == [1] * 300


def test_the_heaviest_items_come_first_where_the_budget_is_short() -> None:
    items = [{"id": str(i), "weight": 5 if i % 10 == 0 else 1} for i in range(100)]
    panel = {"a": lambda item: "yes", "b": lambda item: "no" if item["weight"] > 1 else "yes"}
    done = vn.label(items, panel, vn.Budget(labels=10))
    assert [i for i, n in enumerate(done.counts.tolist()) if n] == list(range(0, 100, 10))


def test_three_labels_do_more_than_an_even_overlap_of_three() -> None:
    ours, evenly = [], []
    for seed in range(4):
        table, truth = world(seed, 600, (0.55, 0.6, 0.65, 0.7, 0.8, 0.85, 0.95))
        ours.append(vn.label_recorded(table, vn.Budget(labels=1800), truth=truth).accuracy or 0.0)
        rng = np.random.default_rng(seed)
        rank = rng.random((600, 7)).argsort(axis=1) < 3
        even = LabelTable.from_matrix(np.where(rank, table.said.reshape(600, 7).astype(int), -1))
        verdicts = vn.Auto().fit(even).labels_
        evenly.append(np.mean([verdicts[i] == truth[i] for i in range(600)]))
    assert np.mean(ours) > np.mean(evenly) + 0.04


def test_of_two_labelers_as_good_the_cheap_one_is_asked() -> None:
    table, _ = world(2, 400, (0.8, 0.8, 0.8, 0.8))
    done = vn.label_recorded(table, 600.0, prices={0: 1.0, 1: 1.0, 2: 4.0, 3: 4.0})
    cheap, dear = (sum(one.labels for one in done.labelers[a : a + 2]) for a in (0, 2))
    assert cheap > 3 * dear


def test_an_item_is_done_at_its_target() -> None:
    table, truth = world(3, 400, (0.75, 0.8, 0.8, 0.85, 0.85, 0.9, 0.9))
    done = vn.label_recorded(table, target=0.9, truth=truth)
    ends = {str(why) for why in done.reasons}
    assert ends <= {"confident", "undecided"}
    assert done.asked < 0.8 * len(table.said)
    for why, q in zip(done.reasons, done.confidence, strict=True):
        assert (q >= 0.9) == (why == "confident")
    higher = vn.label_recorded(table, target=0.97, truth=truth)
    assert higher.asked > done.asked


def test_items_have_targets_of_their_own() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=200)
    said = np.where(rng.random((200, 8)) < 0.8, truth[:, None], 1 - truth[:, None])
    items = [{"id": str(i), "n": i, "target": 0.97 if i % 2 else 0.7} for i in range(200)]
    panel = {f"m{m}": (lambda item, m=m: int(said[item["n"], m])) for m in range(8)}
    done = vn.label(items, panel)
    assert done.counts[1::2].mean() > done.counts[::2].mean() + 1


def test_costs_move_verdicts_and_labels() -> None:
    table, truth = world(4, 400)
    plain = vn.label_recorded(table, vn.Budget(labels=1000), truth=truth)
    dear = vn.label_recorded(table, vn.Budget(labels=1000), truth=truth, costs={(1, 0): 20.0})
    missed = [
        sum(v.label == 0 and truth[i] == 1 for i, v in done.verdicts.items())
        for done in (plain, dear)
    ]
    assert missed[1] < missed[0] / 2


def test_labels_that_tell_nothing_are_not_bought() -> None:
    """Everybody agrees on everything: the budget is not spent until it is gone."""
    rows = [(i, w, i % 2) for i in range(200) for w in "abcdefgh"]
    done = vn.label_recorded(rows, vn.Budget(labels=1600))
    assert done.asked < 1600
    assert "no_gain" in {str(why) for why in done.reasons}


def test_a_labeler_left_out_changes_what_it_decided() -> None:
    table, truth = world(5, 300, (0.55, 0.6, 0.95))
    done = vn.label_recorded(table, vn.Budget(labels=800), truth=truth)
    weak, _, strong = done.labelers
    assert strong.changed is not None
    assert weak.changed is not None
    assert strong.changed > weak.changed
    assert done.accuracy is not None
    assert strong.right_without is not None
    assert strong.right_without < done.accuracy


def test_one_class_and_one_labeler_will_do() -> None:
    done = vn.label({"a": 1, "b": 2}, {"only": lambda x: "yes"}, vn.Budget(labels=5))
    assert [v.label for v in done.verdicts.values()] == ["yes", "yes"]
    assert done.record()["items"] == 2
    assert "yes" in done.record()["classes"]


def test_cheap_labelers_who_are_bad_do_not_turn_the_vote_round() -> None:
    """Forty labelers, the worse the cheaper: the odds 1 / price had verdicts below chance."""
    ours, evenly = [], []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        skill = np.linspace(0.35, 0.9, 40)
        truth = rng.integers(2, size=200)
        said = np.where(rng.random((200, 40)) < skill, truth[:, None], 1 - truth[:, None])
        prices = dict(enumerate(np.linspace(1, 5, 40).tolist()))
        done = vn.label_recorded(
            LabelTable.from_matrix(said),
            vn.Budget(money=3.0 * 3 * 200),
            prices=prices,
            truth=dict(enumerate(truth.tolist())),
            seed=seed,
        )
        ours.append(done.accuracy or 0.0)
        rank = rng.random((200, 40)).argsort(axis=1).argsort(axis=1) < 3
        verdicts = vn.Auto().fit(LabelTable.from_matrix(np.where(rank, said, -1))).labels_
        evenly.append(np.mean([verdicts[i] == truth[i] for i in range(200)]))
    assert np.mean(ours) > np.mean(evenly)


def test_rounds_that_take_hours_do_not_end_in_crumbs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Labels that cost less than the dearest leave a little of the budget, round after round."""
    table, _ = world(0, items=400)
    sizes: list[int] = []
    ask = Recorded.ask

    def dear_at_times(self: Recorded, entries: Any) -> Any:
        sizes.append(len(entries))
        said, _ = ask(self, entries)
        self.most = np.full(5, 1.5)
        return said, np.where(entries % 2, 1.5, 0.5)

    monkeypatch.setattr(Recorded, "ask", dear_at_times)
    done = vn.label_recorded(table, vn.Budget(money=1200), growth=IN_BATCHES)
    assert done.spent <= 1200
    assert done.spent >= 0.95 * 1200
    assert min(sizes) >= 0.02 * sum(sizes)
    batches = len(sizes)
    sizes.clear()
    vn.label_recorded(table, vn.Budget(money=1200), growth=0.99 * IN_BATCHES)
    assert len(sizes) > batches
    assert min(sizes) < 0.02 * sum(sizes)
