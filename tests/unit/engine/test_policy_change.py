"""A change of policy while a stream runs: what the old one remembered is no news to the new one.

The rule: a policy begins with a fresh memory (its gauges, counters and settings, the order of its
queue), unless the one before it was of the same class, with other settings or not. So after a
change a scheduler does, to the bit, what one does that was on the new policy from the start, has
seen the same items and labels, and remembers nothing of its own.
"""

from __future__ import annotations

from itertools import permutations
from zlib import crc32

import numpy as np
import pytest

from venire import Bounds, Item, Label, Labeler, LookAhead, Policy, Scheduler
from venire.engine.queue import FILING
from venire.events import Changed
from venire.scheduling.by_name import exported, policy_named
from venire.scheduling.kernel.desk import COUNTER, LEAST, POOLED, SETTING, TURN

POLICIES = sorted(exported(Policy))
PAIRS = list(permutations(POLICIES, 2))
PRICED = ("lookahead", "realised", "realised-proxy", "waterfill")
CLASSES = ("spam", "ok")


def scheduler(policy: str) -> Scheduler:
    panel = [Labeler(f"m{k}", 0.6 + 0.05 * k) for k in range(6)]
    return Scheduler(panel, CLASSES, policy_named(policy))


def live(s: Scheduler, slots: int) -> Scheduler:
    """Some slots of a stream in which everything depends on the slot alone."""
    for _ in range(slots):
        count = (3, 6, 5, 4)[s.slot % 4]
        weights = [(8.0, 12.0, 20.0, 30.0)[(s.slot + k) % 4] for k in range(count)]
        s.arrive([Item(f"i{s.slot}-{k}", weight) for k, weight in enumerate(weights)])
        s.observe([Label(a.item, a.labeler, _said(a.item, a.labeler)) for a in s.assign()])
        s.close()
    return s


def _said(item: str, labeler: str) -> str:
    return CLASSES[crc32(f"{item}/{labeler}".encode()) % 10 < 3]


def forget(s: Scheduler) -> None:
    """What a fresh memory is, written out."""
    desk = s.state.raw.desk
    desk.gauges[:] = 0.0
    desk.meta[COUNTER:LEAST] = 0
    desk.meta[TURN] = desk.meta[POOLED] = 0
    desk.rows["key"] = 0.0
    s.state.raw.queue.stale = True


def memory(s: Scheduler) -> list[object]:
    desk = s.state.raw.desk
    return [desk.gauges.tolist(), desk.meta[COUNTER:LEAST].tolist(), desk.meta[SETTING:12].tolist()]


def waiting(s: Scheduler) -> dict[str, list[object]]:
    """All there is to say of the items that have not left.

    Not how they happen to be filed, nor a reason to leave: it counts once they are due.
    """
    rows = s.state.queue.desk.rows[s.state.queue.outstanding()]
    passing = (*FILING, "reason")
    return {name: rows[name].tolist() for name in rows.dtype.names or () if name not in passing}


@pytest.mark.parametrize(("old", "new"), PAIRS)
def test_a_new_policy_does_what_one_does_that_was_always_there_with_a_fresh_memory(
    old: str, new: str
) -> None:
    changed = live(scheduler(old), 40)
    always = scheduler(new).follow(changed.log, obey=True)  # the same items and labels
    forget(always)
    changed.change(policy=new)
    assert memory(changed) == memory(scheduler(new))
    before = len(changed.log), len(always.log)
    for _ in range(30):
        live(changed, 1), live(always, 1)
        assert changed.price == always.price
    assert changed.log[before[0] :] == always.log[before[1] :]
    assert memory(changed) == memory(always)
    assert waiting(changed) == waiting(always)


@pytest.mark.parametrize(("old", "new"), [pair for pair in PAIRS if pair[1] in PRICED])
def test_prices_end_up_where_they_always_were(old: str, new: str) -> None:
    changed, always = live(scheduler(old), 40), live(scheduler(new), 40)
    changed.change(policy=new)
    live(changed, 60), live(always, 60)
    prices = [(live(changed, 1).price, live(always, 1).price) for _ in range(8)]
    ours, theirs = np.array(prices, float).T
    np.testing.assert_allclose(ours, theirs, rtol=0.02)


def test_what_was_seen() -> None:
    """It read the arrival rate for a price, and quoted half of what it should for ever."""
    s = live(scheduler("lookahead"), 40)
    s.change(policy="realised-proxy")
    assert s.price == 0.0  # it has quoted none
    assert live(s, 20).price == pytest.approx(10.8, abs=0.3)


def test_the_same_policy_remembers() -> None:
    changed, other = live(scheduler("lookahead"), 40), live(scheduler("lookahead"), 40)
    before = memory(changed)
    changed.change(policy=LookAhead().describe())
    changed.change(bounds=Bounds(deadline=1000))
    assert memory(changed) == before
    live(changed, 20), live(other, 20)
    told = [event for event in changed.log if not isinstance(event, Changed)]
    assert told == other.log


@pytest.mark.parametrize(
    ("policy", "other"), [("lookahead", "lookahead:900"), ("round-robin:2", "round-robin:3")]
)
def test_with_other_settings_it_remembers_too(policy: str, other: str) -> None:
    s = live(scheduler(policy), 40)
    before, keys = memory(s)[:2], s.state.queue.desk.rows["key"].copy()
    s.change(policy=other)
    assert memory(s)[:2] == before
    np.testing.assert_array_equal(s.state.raw.desk.rows["key"], keys)


def test_another_way_of_learning_is_no_other_policy() -> None:
    s = live(scheduler("realised"), 40)
    before = memory(s)
    s.change(learning="while-serving")
    assert memory(s) == before
    live(s, 5)
    assert np.any(np.array(memory(s)[0]) != np.array(before[0]))


def test_a_learning_phase_is_another_policy() -> None:
    s = live(scheduler("realised"), 40)
    s.change(learning="then-serve:50")  # for ten slots more, one item is labelled by all
    live(s, 10)
    assert memory(s) == memory(scheduler("realised"))


def test_counters_are_of_the_policy_at_work() -> None:
    s = live(scheduler("lookahead"), 10)
    assert s.counters == {"planned": 10, "grouped": 0, "fell_back": 0}
    s.change(policy="greedy")
    live(s, 5)
    s.change(policy="lookahead")
    assert s.counters == {"planned": 0, "grouped": 0, "fell_back": 0}


@pytest.mark.parametrize(("old", "new"), [("lookahead", "realised"), ("greedy", "round-robin")])
def test_a_log_with_a_change_replays_and_restores(old: str, new: str) -> None:
    s = live(scheduler(old), 20)
    s.change(policy=new)
    middle = Scheduler.restore(s.snapshot())
    live(s, 20), live(middle, 20)
    assert middle.fingerprint() == s.fingerprint()
    assert scheduler(old).replay(s.log).fingerprint() == s.fingerprint()
