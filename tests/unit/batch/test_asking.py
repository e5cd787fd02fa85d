"""Labelers of every kind, what they cost, and what happens when they fail."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import venire as vn
from venire.batch.asking import Entry, Journal
from venire.errors import NotNow

ITEMS = {f"p{i}": i for i in range(30)}


class Said(NamedTuple):
    """As a judge answers: with more fields than venire reads."""

    label: str
    confidence: float
    cost: float


class Judge:
    """An object with an id and a coroutine function, as the judges are."""

    def __init__(self, name: str, stops_after: int = 10**9) -> None:
        self.id, self.calls, self.stops_after = name, 0, stops_after
        self.stopped: str | None = None

    async def answer(self, item: Any, classes: Any = None) -> Said:
        await asyncio.sleep(0)
        self.calls += 1
        if self.calls >= self.stops_after:
            self.stopped = "no quota is left"
        return Said("even" if item % 2 == 0 else "odd", 0.9, 0.01 * (1 + item % 3))


def parity(item: int) -> str:
    return "even" if item % 2 == 0 else "odd"


def test_functions_coroutines_and_lists_answer_alike() -> None:
    async def later(item: int) -> str:
        await asyncio.sleep(0)
        return parity(item)

    def many(items: list[int]) -> list[str]:
        return [parity(item) for item in items]

    panel = [vn.Caller("plain", parity), vn.Caller("later", later, parallel=4)]
    panel.append(vn.Caller("many", many, many=True))
    done = vn.label(ITEMS, panel, vn.Budget(labels=75))
    assert all(v.label == parity(ITEMS[i]) for i, v in done.verdicts.items())
    assert {one.labels > 0 for one in done.labelers} == {True}


def test_an_answer_may_say_what_it_cost() -> None:
    judges = [Judge("one"), Judge("two"), Judge("three")]
    done = vn.label(ITEMS, judges, 0.8)
    assert done.spent <= 0.8 + 1e-9
    assert done.spent == pytest.approx(sum(one.spent for one in done.labelers))
    assert all(0.01 <= one.price <= 0.03 for one in done.labelers)


def test_a_judge_that_stops_is_not_asked_again() -> None:
    judges = [Judge("one"), Judge("two", stops_after=3), Judge("three")]
    done = vn.label(ITEMS, judges, vn.Budget(labels=80))
    assert judges[1].calls <= 3 + 8
    assert sum(judge.calls for judge in judges) == done.asked


def test_no_answer_is_paid_for_and_not_asked_again() -> None:
    asked: list[int] = []

    def moody(item: int) -> str:
        asked.append(item)
        raise vn.NoAnswer("refused", cost=0.5)

    panel = [vn.Caller("moody", moody, 1.0), vn.Caller("calm", parity, 1.0)]
    done = vn.label(ITEMS, panel, 60.0)
    assert len(asked) == len(set(asked)) > 0
    assert done.spent == pytest.approx(0.5 * len(asked) + int(done.counts.sum()))
    assert done.counts.tolist() == [1] * 30


def test_a_failure_is_an_error_and_what_was_paid_is_kept(tmp_path: Path) -> None:
    def broken(item: int) -> str:
        if item == 17:
            raise ZeroDivisionError("oh")
        return parity(item)

    journal = tmp_path / "journal"
    with pytest.raises(
        vn.InputError, match=r"'broken' failed at item 'p17' with ZeroDivisionError"
    ):
        vn.label(ITEMS, {"broken": broken}, vn.Budget(labels=30), journal=journal)
    with Journal(journal, list(ITEMS)) as kept:
        before = len(kept.entries)
    calls: list[int] = []

    def mended(item: int) -> str:
        calls.append(item)
        return parity(item)

    done = vn.label(ITEMS, {"broken": mended}, vn.Budget(labels=30), journal=journal)
    assert len(calls) == 30 - before
    assert done.asked == 30


def test_a_complete_journal_answers_without_a_call(tmp_path: Path) -> None:
    journal, panel = tmp_path / "journal", {"a": parity, "b": parity, "c": parity}
    first = vn.label(ITEMS, panel, vn.Budget(labels=50), journal=journal)

    def never(item: int) -> str:
        raise AssertionError("it was asked again")

    again = vn.label(ITEMS, dict.fromkeys("abc", never), vn.Budget(labels=50), journal=journal)
    assert list(first.rows()) == list(again.rows())
    smaller = vn.label(ITEMS, dict.fromkeys("abc", never), vn.Budget(labels=40), journal=journal)
    assert smaller.asked == 50  # what is paid for is used


def test_a_label_that_is_none_of_the_classes_is_an_error() -> None:
    with pytest.raises(vn.InputError, match="'a' said 'odd', expected one of the classes"):
        vn.label(ITEMS, {"a": parity}, vn.Budget(labels=50), classes=["even", "neither"])


def test_a_list_of_the_wrong_length_is_an_error() -> None:
    caller = vn.Caller("many", lambda items: ["even"], many=True)
    with pytest.raises(vn.InputError, match="gave 1 answers to"):
        vn.label(ITEMS, [caller], vn.Budget(labels=30))


def test_it_works_inside_a_running_loop() -> None:
    async def notebook() -> vn.Labelled:
        return vn.label(ITEMS, {"a": parity, "b": parity}, vn.Budget(labels=40))

    assert asyncio.run(notebook()).asked == 40


def test_a_journal_cut_off_in_a_line_is_whole_again(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    with Journal(path, ["a", "b"]) as journal:
        journal.append([Entry("a", "ann", "spam", 0.5), Entry("b", "ann", None, 0.25)])
    whole = path.read_bytes()
    for cut in range(1, len(whole)):
        path.write_bytes(whole[:cut])
        with Journal(path, ["a", "b"]) as journal:
            count = len(journal.entries)
            journal.append([Entry("b", "bob", 7, 0.0)])
        with Journal(path, ["a", "b"]) as journal:
            assert journal.entries[count:] == [Entry("b", "bob", 7, 0.0)]


def test_a_journal_of_other_items_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    Journal(path, ["a", "b"]).close()
    with pytest.raises(vn.FileError, match="is the journal of other items"):
        Journal(path, ["a", "c"])
    path.write_text("something else\n")
    with pytest.raises(vn.FileError, match="is not a journal of venire label"):
        Journal(path, ["a"])
    path.unlink()
    with Journal(path, ["a"]) as journal:
        journal.append([Entry("a", "ann", "x", 0.0)])
    path.write_text(path.read_text() + "[1, 2]\n")
    with pytest.raises(vn.FileError, match="line 3"):
        Journal(path, ["a"])


def test_a_labeler_that_is_away_is_asked_again_by_the_next_run(tmp_path: Path) -> None:
    away = [True]

    def sometimes(item: int) -> str:
        if away[0]:
            raise NotNow("the server does not answer")
        return parity(item)

    panel = {"sure": parity, "sometimes": sometimes}
    options: dict[str, Any] = {"journal": tmp_path / "journal", "seed": 1}
    first = vn.label(ITEMS, panel, vn.Budget(labels=60), **options)
    assert first.record()["labels"] == 30
    away[0] = False
    again = vn.label(ITEMS, panel, vn.Budget(labels=60), **options)
    assert again.record()["labels"] > 30


def test_who_has_become_too_dear_does_not_end_the_batch() -> None:
    class Dearer:
        id, price, calls = "dearer", 0.1, 0

        def answer(self, item: int) -> vn.Answer:
            self.calls += 1
            return vn.Answer(parity(item), cost=0.1 if self.calls < 4 else 3.0)

    cheap = [vn.Caller(name, parity, 0.01) for name in ("a", "b")]
    done = vn.label(ITEMS, [Dearer(), *cheap], vn.Budget(money=8.0))
    assert all(done.counts)


def test_labels_of_numpy_are_labels() -> None:
    panel = {name: lambda item: np.int64(item % 2) for name in "abc"}
    done = vn.label(ITEMS, panel, vn.Budget(labels=60), truth={k: v % 2 for k, v in ITEMS.items()})
    assert done.accuracy == 1.0


def test_truth_and_costs_may_be_text_where_labels_are_numbers() -> None:
    panel = {name: lambda item: item % 2 for name in "abc"}
    truth = {name: str(item % 2) for name, item in ITEMS.items()}
    done = vn.label(ITEMS, panel, vn.Budget(labels=60), truth=truth, costs={("1", "0"): 5.0})
    assert done.accuracy == 1.0


def test_a_judge_serves_in_two_batches() -> None:
    class Locked(Judge):
        def __init__(self, name: str) -> None:
            super().__init__(name)
            self.lock = asyncio.Lock()

        async def answer(self, item: Any, classes: Any = None) -> Said:
            async with self.lock:
                await asyncio.sleep(0.001)
                return await super().answer(item, classes)

    judges = [Locked("a"), Locked("b")]
    for _ in range(2):
        assert vn.label(ITEMS, judges, vn.Budget(labels=40)).asked > 0


def test_a_journal_keeps_names_with_any_line_break(tmp_path: Path) -> None:
    with Journal(tmp_path / "journal", ["a\u2028b"]) as journal:
        journal.append([Entry("a\u2028b", "ann", "x\u0085y", 0.5)])
    with Journal(tmp_path / "journal", ["a\u2028b"]) as journal:
        assert journal.entries == [Entry("a\u2028b", "ann", "x\u0085y", 0.5)]


def test_without_any_label_the_error_says_who_was_away() -> None:
    def away(item: int) -> str:
        raise NotNow("connection refused")

    with pytest.raises(vn.InputError, match="no label was bought: labeler 'a' was away"):
        vn.label(ITEMS, {"a": away}, vn.Budget(labels=60))
