"""Confidence on labels in a stream: voices are learned, logged, replayed and restored."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import venire as vn
from tests.unit.engine.test_live import POLICIES
from venire import Bounds, FixedOverlap, Item, Label, Labeler, LearnWhileServing, Scheduler
from venire.estimators.voices import FEWEST, SURE, UNSURE, Tones, edge, voices_of
from venire.events import Observed
from venire.server.store import decode, encode

PANEL = [Labeler("ann", capacity=6), Labeler("bob", capacity=6), Labeler("net", capacity=9)]
CLASSES = ["spam", "ok", "ad"]


def made(learning: Any = None, policy: Any = None, **how: Any) -> Scheduler:
    learning = learning or LearnWhileServing(longest=3)
    return Scheduler(PANEL, CLASSES, policy or FixedOverlap(3), learning, **how)


def serve(s: Scheduler, seed: int, slots: int, heed: bool = True, batch: bool = True) -> float:
    """Whoever is sure is right; "net" says when it is. The share of right verdicts."""
    rng, right, left = np.random.default_rng(seed), 0, 0
    for n in range(slots):
        s.arrive([Item(f"{seed}-{n}-{k}", weight=30) for k in range(5)])
        truth = {item: int(str(item)[-1]) % 3 for item in s.outstanding}
        labels = []
        for a in s.assign():
            sure, own = rng.random() < 0.5, a.labeler == "net"
            skill = (0.98 if sure else 0.4) if own else 0.65
            said = (truth[a.item] + (rng.random() > skill) * rng.integers(1, 3)) % 3
            how = (0.9 if sure else 0.6) + rng.random() / 20 if own and heed else None
            labels.append(Label(a.item, a.labeler, CLASSES[said], how))
        for group in [labels] if batch else [[label] for label in labels]:
            s.observe(group)
        for e in s.close():
            left, right = left + 1, right + (e.verdict.label == CLASSES[truth[e.item]])
    return right / left


def again(s: Scheduler, fresh: Scheduler) -> None:
    """The log is replayed as it was written, to the bit."""
    stored = [event for row in encode("posts", 0, 0.0, s.log) for event in decode([row])]
    assert stored == s.log
    assert fresh.replay(stored).fingerprint() == s.fingerprint()


def test_voices_are_learned_and_a_sure_answer_counts_for_more() -> None:
    s = made()
    serve(s, 0, 40)
    assert list(s.state.tones.edges) == [2]
    belief = s.state.raw.queue.belief
    assert belief is not None
    assert belief.tones is not None
    assert s.competences is not None
    sure, unsure = (float(np.mean(np.diag(belief.tones[2, tone]))) for tone in (SURE, UNSURE))
    assert unsure + 0.05 < s.competences["net"] < sure - 0.05
    assert (belief.tones[:2, SURE] == belief.tones[:2, 0]).all()
    s.arrive([Item("a"), Item("b")])
    s.observe([Label("a", "net", "ok", 0.95), Label("b", "net", "ok", 0.6)])
    assert s.verdict("a").confidence > s.verdict("b").confidence + 0.2
    again(s, made())


def test_heeded_it_is_better_than_ignored() -> None:
    gains = [serve(made(), n, 40) - serve(made(), n, 40, heed=False) for n in range(3)]
    assert min(gains) > 0


@settings(max_examples=20)
@given(
    st.integers(0, 9),
    st.sampled_from(POLICIES),
    st.sampled_from([Bounds(), Bounds(min_confidence=0.9), Bounds(max_labels=2)]),
    st.booleans(),
)
def test_batches_replays_and_snapshots_are_the_same_to_the_bit(
    seed: int, policy: Any, bounds: Bounds, one_coin: bool
) -> None:
    learning = LearnWhileServing("one-coin" if one_coin else "dawid-skene", longest=2)
    how = {"bounds": bounds, "revisions": 20, "families": {"net": "n", "bob": "n"}}
    s, single = made(learning, policy, **how), made(learning, policy, **how)
    serve(s, seed, 8)
    serve(single, seed, 8, batch=False)
    assert single.fingerprint() == s.fingerprint()
    again(s, made(learning, policy, **how))
    restored = Scheduler.restore(s.snapshot())
    assert restored.fingerprint() == s.fingerprint()
    serve(s, seed + 1, 5)
    serve(restored, seed + 1, 5)
    assert restored.fingerprint() == s.fingerprint()
    followed = made(learning, policy, **how).follow(s.log, obey=True)
    assert followed.state.tones.state() == s.state.tones.state()


def test_another_way_of_learning_and_one_that_knows() -> None:
    s = made(revisions=50)
    serve(s, 0, 12)
    s.change(learning="while-serving:one-coin")
    serve(s, 1, 6)
    s.change(learning="then-serve:3")
    s.join(Labeler("eve", capacity=2))
    serve(s, 2, 14)
    again(s, made(revisions=50))
    known = Scheduler([Labeler("ann", 0.9, 5)], CLASSES, vn.Greedy())
    known.arrive([Item(f"{k}") for k in range(30)])
    known.observe([Label(f"{k}", "ann", "ok", k / 30) for k in range(30)])
    assert not known.state.tones
    assert known.verdict("0").confidence == known.verdict("29").confidence


def test_a_label_is_the_same_whatever_its_confidence() -> None:
    s = made()
    serve(s, 0, 10)
    s.arrive(Item("a"))
    s.observe(Label("a", "net", "ok", 0.95))
    before = s.fingerprint()
    s.observe(Label("a", "net", "ok", 0.55))
    assert s.fingerprint() == before
    with pytest.raises(vn.StateError, match="said 'ok' of item 'a' before and 'ad' now"):
        s.observe(Label("a", "net", "ad", 0.95))
    with pytest.raises(vn.InputError, match=r"confidence of 1\.5, expected 0 to 1, or none"):
        s.observe(Label("a", "bob", "ok", 1.5))


def test_confidences_are_in_the_log_only_if_there_are_any() -> None:
    plain, sure = Label("a", "ann", "ok"), Label("a", "net", "ok", 0.75)
    for run, size in (([plain], 4), ([plain, sure], 5)):
        events = [Observed(3, label, False) for label in run]
        ((count, body),) = Observed.body_of(events)
        assert (count, len(body)) == (len(run), size)
        assert list(Observed.read_all(3, body)) == events
    assert [e.view().get("confidence") for e in events] == [None, 0.75]


@given(st.lists(st.sampled_from([None, 0.2, 0.5, 0.9]), min_size=2 * FEWEST, max_size=90))
def test_the_edge_is_that_of_the_batch_and_stays(said: list[float | None]) -> None:
    tones = Tones()
    for k, sure in enumerate(said):
        tones.note(0, sure)
        known = [c for c in said[: k + 1] if c is not None][-FEWEST:]
        if len(known) == FEWEST and len(set(known)) > 1:
            break
    if tones.edges:
        assert tones.edges[0] == edge(known)
        rows = voices_of(np.zeros(FEWEST, np.int64), np.array(known), ["l"])
        assert rows is not None
        assert [tones.of(0, c) for c in known] == [SURE if v == 0 else UNSURE for v in rows.voice]
        tones.note(0, 0.0)
        assert tones.edges[0] == edge(known)
    assert Tones.restored(tones.state()).state() == tones.state()
