"""Equal labels: the streams, the budget, the rivals, and how they are compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from venire.errors import InputError, UnknownName
from venire.labels import LabelTable
from venire.scheduling import LearnWhileServing
from venire_research.equal_labels import (
    MODES,
    PLAIN_LOOP,
    RULE,
    Replay,
    buy,
    compare,
    even_overlap,
    measure,
    measure_stream,
    plain_loop,
    sets_in,
    two_plus_one,
)
from venire_research.equal_labels.buying import Mode
from venire_research.equal_labels.measures import COLUMNS, OURS, cell
from venire_research.equal_labels.replay import DEADLINE, SLOTS
from venire_research.equal_labels.rivals import shares
from venire_research.equal_labels.summary import concluding, sheets, skipped, summarise
from venire_research.sweeps.store import Store
from venire_research.sweeps.sweep import Point

Triple = tuple[int, int, int]


def crowd(items: int, labelers: int, each: int, seed: int = 0, right: float = 0.8) -> Replay:
    """Two classes; each item was labelled by so many of the labelers."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(2, size=items)
    rows = [
        (i, int(m), int(truth[i] if rng.random() < right else 1 - truth[i]))
        for i in range(items)
        for m in rng.permutation(labelers)[:each]
    ]
    return Replay.of(LabelTable.from_rows(rows, classes=[0, 1]), truth, seed)


def triples(table: LabelTable) -> list[Triple]:
    columns = table.item.tolist(), table.labeler.tolist(), table.said.tolist()
    return list(zip(*columns, strict=True))


# the stream


def test_every_item_comes_once_and_evenly() -> None:
    stream = crowd(400, 20, 5)
    assert Counter(stream.arrival.tolist()) == dict.fromkeys(range(SLOTS), 2)
    assert len(stream.table.items) == 400


def test_a_large_set_is_thinned_half_of_it_with_truth() -> None:
    table = LabelTable.from_matrix(np.zeros((5000, 3), int))
    truth = np.where(np.arange(5000) < 1500, 0, -1)
    made = Replay.of(table, truth, seed=1, most=2000)
    assert (len(made.truth), int((made.truth >= 0).sum())) == (2000, 1000)
    few = Replay.of(table, np.where(truth < 0, -1, truth)[::-1].copy(), seed=1, most=4000)
    assert (len(few.truth), int((few.truth >= 0).sum())) == (4000, 1500)
    other = Replay.of(table, truth, seed=2, most=2000)
    assert not np.array_equal(made.truth, other.truth)


def test_labelers_come_while_something_they_may_label_is_open() -> None:
    stream = crowd(100, 40, 4)
    table = stream.table
    visits = stream.visits(2)
    assert (len(visits), sum(map(len, visits))) == (SLOTS + DEADLINE, 220)
    for slot, here in enumerate(visits):
        for m in here.tolist():
            items = table.item[table.labeler == m]
            since = stream.arrival[items]
            assert ((since <= slot) & (slot < since + DEADLINE)).any()
    most = Counter(table.labeler.tolist())
    assert all(n <= most[m] for m, n in Counter(np.concatenate(visits).tolist()).items())


def test_only_labels_that_the_set_holds_can_be_asked_for() -> None:
    stream = Replay.of(
        LabelTable.from_rows([("a", "ann", 0), ("b", "bob", 1)]), np.zeros(2, int), 0
    )
    held = triples(stream.table)
    assert [stream.said(i, m) for i, m, _ in held] == [k for _, _, k in held]
    (i, m, _), (j, _, _) = held
    with pytest.raises(InputError, match="has no label"):
        stream.said(j, m)
    assert i != j


# the budget


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("labels", [1.5, 2.0, 2.37])
def test_what_is_bought_is_the_budget_and_of_the_set(mode: Mode, labels: float) -> None:
    stream = crowd(160, 12, 6, right=0.65)
    bought = buy(stream, mode, labels)
    budget = int(labels * 160)
    assert bought.labels == budget if mode == "chosen" else 0.9 * budget <= bought.labels <= budget
    found = triples(bought.table)
    assert set(found) <= set(triples(stream.table))
    assert len(found) == len(set(found))
    assert bought.response.max() <= DEADLINE
    if mode == "come":
        came = Counter(np.concatenate(stream.visits(labels)).tolist())
        asked = Counter(bought.table.labeler.tolist())
        assert all(asked[m] <= came[m] for m in asked)


def test_nothing_is_bought_before_it_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    from venire_research.equal_labels import buying

    spent: list[tuple[int, int]] = []
    told = buying._Buyer._note

    def note(self: Any, exits: Any) -> None:
        spent.append((self.scheduler.slot - 1, len(self.bought)))
        told(self, exits)

    monkeypatch.setattr(buying._Buyer, "_note", note)
    stream = crowd(100, 10, 5)
    buy(stream, "chosen", 2)
    for slot, labels in spent:
        assert labels <= 2 * int((stream.arrival <= slot).sum())


def test_a_set_that_holds_too_little_is_bought_whole() -> None:
    stream = crowd(60, 9, 2, right=0.6)
    assert buy(stream, "chosen", 5).labels == 120


def test_the_way_of_learning_is_left_as_it_was() -> None:
    how = LearnWhileServing("one-coin")
    first, second = (buy(crowd(50, 8, 4), "come", 2, learning=how) for _ in range(2))
    assert np.array_equal(first.confidence, second.confidence)


def test_an_unknown_mode_is_an_error() -> None:
    with pytest.raises(UnknownName, match="did you mean 'come'"):
        buy(crowd(10, 3, 2), cast(Mode, "comes"), 2)


# the rivals


def plain_shares(held: Sequence[int], labels: int) -> list[int]:
    """One label at a time to whoever has fewest and can take one; the counts in order."""
    got = [0] * len(held)
    for _ in range(labels):
        able = [i for i in range(len(held)) if got[i] < held[i]]
        if not able:
            break
        got[min(able, key=lambda i: got[i])] += 1
    return sorted(got)


@given(st.lists(st.integers(0, 6), min_size=1, max_size=20), st.integers(0, 60), st.integers(0, 9))
def test_shares_are_those_of_one_label_at_a_time(held: list[int], labels: int, seed: int) -> None:
    found = shares(np.array(held), labels, np.random.default_rng(seed))
    assert sorted(found.tolist()) == plain_shares(held, labels)
    assert (found <= np.array(held)).all()


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(MODES), st.integers(1, 6), st.data())
def test_even_overlap_buys_just_so_many_of_the_set(
    mode: Mode, each: int, data: st.DataObject
) -> None:
    stream = crowd(30, 8, each, seed=each)
    labels = data.draw(st.integers(0, 30 * each))
    found = even_overlap(stream, mode, labels, seed=3)
    assert len(found.said) == labels
    assert set(triples(found)) <= set(triples(stream.table))
    if mode == "chosen":
        counts = np.diff(found.start)
        assert counts.max() - counts.min() <= 1


def test_even_overlap_draws_every_label_of_an_item_alike() -> None:
    stream = crowd(40, 10, 4)
    drawn: Counter[Triple] = Counter()
    for seed in range(200):
        drawn.update(triples(even_overlap(stream, "chosen", 40, seed)))
    assert len(drawn) == 160
    assert 20 < min(drawn.values()) <= max(drawn.values()) < 90


@pytest.mark.parametrize("mode", MODES)
def test_two_labels_and_a_third_where_they_differ(mode: Mode) -> None:
    stream = crowd(300, 12, 6, right=0.7)
    found = two_plus_one(stream, mode, seed=0)
    counts = np.diff(found.start)
    third = 0
    for i, n in enumerate(counts.tolist()):
        said = found.said[found.start[i] : found.start[i + 1]].tolist()
        assert n <= 3
        if n == 3:
            assert len(set(said)) == 2
            third += 1
        if n == 2 and mode == "chosen":
            assert len(set(said)) == 1
    assert 80 < third < 170
    assert (counts >= 2).mean() > 0.95


@settings(max_examples=20, deadline=None)
@given(st.sampled_from(MODES), st.integers(2, 5), st.integers(0, 99), st.data())
def test_the_plain_loop_keeps_to_the_budget_and_to_open_items(
    mode: Mode, each: int, seed: int, data: st.DataObject
) -> None:
    stream = crowd(40, 8, each, seed=seed)
    labels = data.draw(st.integers(0, 40 * each))
    found, posteriors = plain_loop(stream, mode, labels, seed)
    assert len(found.said) <= labels
    assert mode == "come" or len(found.said) == labels
    assert set(triples(found)) <= set(triples(stream.table))
    assert np.allclose(posteriors.sum(axis=1), 1)
    assert np.allclose(posteriors[np.diff(found.start) == 0], 0.5)
    if mode == "come":
        came = Counter(np.concatenate(stream.visits(labels / 40)).tolist())
        asked = Counter(found.labeler.tolist())
        assert all(asked[m] <= came[m] for m in asked)


def test_the_plain_loop_asks_for_the_most_doubtful_item_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nobody is learned here: a label of an open item never makes a surer one come first."""
    module: Any = import_module("venire_research.equal_labels.plain_loop")
    monkeypatch.setattr(module, "OFTEN", 2.0)
    stream, votes = crowd(200, 10, 6, right=0.7), np.zeros((200, 2), np.int64)
    bought = module._Loop._buy

    def buy(self: Any, entry: int) -> None:
        item = int(self.table.item[entry])
        lead = abs(votes[:, 0] - votes[:, 1])
        here = np.flatnonzero(self.left > 0)
        now = stream.arrival[item]
        same = here[stream.arrival[here] == now]  # they came together, so they are open together
        assert lead[item] == lead[same].min()
        votes[item, self.table.said[entry]] += 1
        bought(self, entry)

    monkeypatch.setattr(module._Loop, "_buy", buy)
    module.plain_loop(stream, "chosen", 600, seed=0)
    assert votes.sum() == 600


# what is measured


def plain_majority(table: LabelTable, truth: Sequence[int]) -> float:
    """Right verdicts of a majority; a tie counts as its share, nothing as one in two."""
    total = 0.0
    for i, right in enumerate(truth):
        votes = Counter(table.said[table.start[i] : table.start[i + 1]].tolist())
        top = [k for k in (0, 1) if votes[k] == max(votes[0], votes[1])]
        total += (right in top) / len(top)
    return total / len(truth)


@pytest.mark.parametrize("labels", [1.5, RULE])
def test_everybody_gets_as_many_labels_and_is_judged_alike(labels: float | str) -> None:
    stream = crowd(120, 10, 5)
    rows = {row["contestant"]: row for row in measure_stream(stream, "come", labels, seed=4)}
    names = {*OURS, "majority", "dawid-skene", "auto", PLAIN_LOOP} | (
        {RULE} if labels == RULE else set()
    )
    assert set(rows) == names
    bought = round(rows["streamed"]["labels"] * 120)
    same = {name: row for name, row in rows.items() if name not in (RULE, PLAIN_LOOP)}
    assert rows[PLAIN_LOOP]["labels"] * 120 <= bought
    assert {row["labels"] * 120 for row in same.values()} == {bought}
    even = even_overlap(stream, "come", bought, seed=4)
    assert rows["majority"]["accuracy"] == pytest.approx(
        plain_majority(even, stream.truth.tolist())
    )
    if labels == RULE:
        rule = two_plus_one(stream, "come", seed=4)
        expected = plain_majority(rule, stream.truth.tolist())
        assert rows[RULE]["accuracy"] == pytest.approx(expected)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_set(tmp_path / "four", each=4)
    write_set(tmp_path / "two", each=2)
    (tmp_path / "no-truth").mkdir()
    (tmp_path / "no-truth" / "labels.csv").write_text("task,worker,label\n")
    return tmp_path


def write_set(folder: Path, each: int, items: int = 40) -> None:
    rng = np.random.default_rng(each)
    folder.mkdir()
    truth = rng.integers(2, size=items)
    said = [
        f"i{i},w{m},{truth[i] if rng.random() < 0.8 else 1 - truth[i]}"
        for i in range(items)
        for m in rng.permutation(6)[:each]
    ]
    (folder / "labels.csv").write_text("\n".join(["task,worker,label", *said]) + "\n")
    right = [f"i{i},{truth[i]}" for i in range(items - 5)]
    (folder / "truth.csv").write_text("\n".join(["task,label", *right]) + "\n")


def test_the_sets_of_a_folder(folder: Path) -> None:
    assert sets_in(folder) == ["four", "two"]
    assert sets_in(folder, ["two"]) == ["two"]
    with pytest.raises(UnknownName, match="did you mean 'four'"):
        sets_in(folder, ["for"])
    with pytest.raises(InputError, match="there is no label set"):
        sets_in(folder / "two")


def test_points_above_what_a_set_holds_are_left_out_and_said(folder: Path) -> None:
    assert measure("two", "chosen", 3, data=folder) == []
    rows = compare(data=folder, seeds=1, labels=[1.5, 3.0], modes=["chosen"])
    assert tuple(rows[0]) == COLUMNS
    lines = summarise(rows)
    assert [(line["set"], line["point"]) for line in lines] == [
        ("four", "1.5"), ("four", "3"), ("two", "1.5"),
    ]  # fmt: skip
    assert skipped(lines, [1.5]) is None
    assert (
        skipped(lines, [1.5, 3.0])
        == "Left out, since the set does not have enough labels: two at 3."
    )
    assert {row["judged"] for row in rows} == {35}


class Nothing:
    """An executor for when there is nothing left to run."""

    def run(self, points: Sequence[Point]) -> Iterator[tuple[Point, Any]]:
        assert not points
        return iter(())


def test_finished_cells_are_not_run_again(folder: Path, tmp_path: Path) -> None:
    how: dict[str, Any] = {"data": folder, "seeds": 1, "labels": [2.0], "modes": ["come"]}
    with Store(tmp_path / "points.sqlite") as store:
        first = compare(["two"], store=store, **how)
        kept = len(store)
        assert compare(["two"], store=store, executor=Nothing(), **how) == first
        compare(store=store, **how)
        assert (kept, len(store)) == (1, 2)


def test_a_cell_is_kept_under_its_files_and_learning(folder: Path) -> None:
    one = cell("two", "come", 2.0, 0, folder)
    assert cell("two", "come", 2.0, 0, folder).key == one.key
    assert cell("two", "come", 2.0, 0, folder, learning=LearnWhileServing()).key != one.key
    assert cell("two", "chosen", 2.0, 0, folder).key != one.key
    other = folder / "other"
    other.mkdir()
    write_set(other / "two", each=2, items=41)
    assert cell("two", "come", 2.0, 0, other).key != one.key


# summary


def row(contestant: str, seed: int, accuracy: float, mode: str = "chosen") -> dict[str, Any]:
    return {
        "set": "rte", "mode": mode, "point": "2", "seed": seed, "contestant": contestant,
        "items": 10, "judged": 10, "labels": 2.0, "accuracy": accuracy, "ece": 0.1,
        "sure": 0.0, "sure_wrong": None, "response": 3.0,
    }  # fmt: skip


def test_the_best_rival_is_that_of_the_highest_mean() -> None:
    found = {
        "streamed": (0.8, 0.9), "revised": (0.9, 0.9),
        "majority": (0.95, 0.75), "dawid-skene": (0.88, 0.88), "auto": (0.7, 0.7),
        "plain-loop": (0.86, 0.86),
    }  # fmt: skip
    rows = [row(name, seed, value) for name, v in found.items() for seed, value in enumerate(v)]
    (line,) = summarise(rows)
    assert line["best"] == "dawid-skene"
    assert line["streamed_gain"] == pytest.approx(-0.03)
    assert line["revised_gain"] == pytest.approx(0.02)
    assert line["streamed_gain_spread"] == pytest.approx(np.std([-0.08, 0.02], ddof=1))
    said = "\n".join(concluding([line]))
    assert "streamed: -3.0 points on average" in said
    assert "in 1 of 1 cells, at worst -3.0 (rte at 2)" in said
    assert "never more than 1 point below the best rival: no" in said
    assert "above the plain loop on average: -1.0 at 2; more than 1 point" in said
    (short,) = sheets([line])
    assert short.rows == [["rte", "-3.0 / +2.0"], ["mean", "-3.0 / +2.0"]]
    assert "85.0 ± 7.1" in sheets([line], full=True)[1].markdown()
