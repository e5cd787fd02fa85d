"""Families of labelers in a stream: they reach the estimator, the log, snapshots and replays."""

from __future__ import annotations

import json
from typing import Any

import pytest

from venire import FixedOverlap, Item, Label, Labeler, LearnWhileServing, Scheduler
from venire.errors import InputError
from venire.events import Changed
from venire.server.store import decode, encode

PANEL = ["llama-a", "llama-b", "llama-c", "ann", "bob"]
KIN: dict[Any, Any] = dict.fromkeys(PANEL[:3], "llama")


def made(families: Any = None) -> Scheduler:
    learning = LearnWhileServing(longest=2)
    return Scheduler(PANEL, ["spam", "ok"], FixedOverlap(5), learning, families=families)


def serve(s: Scheduler, first: int, slots: int) -> None:
    """Three judges on one model say the same, and are wrong on every third item."""
    for n in range(first, first + slots):
        s.arrive([Item(f"i{2 * n}"), Item(f"i{2 * n + 1}")])
        for a in s.assign():
            number = int(str(a.item)[1:])
            wrong = number % 3 == 0 if str(a.labeler).startswith("llama") else number % 5 == 1
            s.observe(Label(a.item, a.labeler, ("spam", "ok")[(number + wrong) % 2]))
        s.close()


def weights(s: Scheduler) -> Any:
    """The families of the estimator, by the number of the labeler."""
    learner: Any = s.state.learner
    return learner.estimate.estimator.families


def test_families_reach_the_estimator_by_number_also_those_who_come_later() -> None:
    s = made(KIN | {"llama-d": "llama", "nobody": "qwen"})
    assert weights(s) == {0: "llama", 1: "llama", 2: "llama"}
    s.join(Labeler("llama-d"))
    assert weights(s) == {0: "llama", 1: "llama", 2: "llama", 5: "llama"}
    s.change(learning="while-serving")
    assert weights(s) == {0: "llama", 1: "llama", 2: "llama", 5: "llama"}
    s.change(families={})
    assert s.families == {}
    assert weights(s) is None
    with pytest.raises(InputError, match="got families of type list, expected a mapping"):
        made(["llama-a"])


def test_a_log_with_families_is_replayed_and_a_snapshot_restored() -> None:
    s, plain = made(KIN), made()
    serve(s, 0, 8)
    serve(plain, 0, 8)
    assert s.fingerprint() != plain.fingerprint()  # it learns otherwise
    assert made(KIN).replay(s.log).fingerprint() == s.fingerprint()
    again = Scheduler.restore(s.snapshot())
    assert again.families == KIN
    assert again.fingerprint() == s.fingerprint()
    before = len(s.log)
    for one in (s, again):
        one.change(families={"ann": "people", "bob": "people"})
        serve(one, 8, 6)
    assert again.log == s.log[before:]
    assert again.fingerprint() == s.fingerprint()
    stored = [event for row in encode("posts", 0, 0.0, s.log) for event in decode([row])]
    assert stored == s.log
    assert made(KIN).replay(stored).fingerprint() == s.fingerprint()
    followed = made(KIN).follow(stored, obey=True)
    assert followed.families == {"ann": "people", "bob": "people"}
    assert followed.competences == pytest.approx(s.competences)


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        ({"policy": "greedy"}, 5),
        ({"costs": (("spam", "ok", 2.0),)}, 7),
        ({"families": ()}, 8),
        ({"families": (("a", "x"), ("b", "x"))}, 8),
    ],
)
def test_changes_without_families_are_written_as_before(change: Any, parts: int) -> None:
    event = Changed(3, **change)
    [row] = encode("posts", 0, 0.0, [event])
    assert decode([row]) == [event]
    body: Any = row.body
    assert len(json.loads(body) if isinstance(body, str | bytes) else body) == parts
