"""What a scheduler is after it was restored, and how everything on its desk is filed anew."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import typeof

from venire import (
    Everyone,
    FixedOverlap,
    Greedy,
    Item,
    Label,
    Labeler,
    LookAhead,
    Policy,
    Random,
    Realised,
    RoundRobin,
    Scheduler,
    Waterfill,
)
from venire.engine.snapshot import Unpacking
from venire.scheduling.kernel.build import refile_all
from venire.scheduling.kernel.desk import Desk
from venire.scheduling.kernel.rows import revalue

POLICIES = (
    Greedy(),
    Waterfill(),
    LookAhead(),
    Realised(),
    FixedOverlap(3),
    RoundRobin(3),
    Random(3, seed=3),
    Everyone(),
)


def busy(policy: Policy) -> Scheduler:
    """Some items with labels, some without, some given out, in two groups."""
    panel = [Labeler(f"m{n}", 0.6 + 0.05 * n, capacity=3) for n in range(5)]
    s = Scheduler(panel, ("spam", "ok"), policy)
    few = frozenset(("m0", "m1", "m2"))
    s.arrive([Item(f"i{n}", 5.0 + n % 7, few if n % 4 == 0 else None) for n in range(40)])
    for work in s.assign()[::2]:
        s.observe(Label(work.item, work.labeler, "spam" if len(work.item) > 2 else "ok"))
    return s


def numba_type(value: Any) -> Any:
    return typeof(value)  # type: ignore[no-untyped-call]


def test_a_restored_desk_has_the_numba_types_of_a_fresh_one() -> None:
    fresh = busy(Realised())
    restored = Scheduler.restore(fresh.snapshot())
    ours, theirs = restored.state.queue.desk, fresh.state.queue.desk
    for name, array in theirs._asdict().items():
        assert numba_type(getattr(ours, name)) == numba_type(array), name
        assert getattr(ours, name).dtype.isalignedstruct == array.dtype.isalignedstruct, name
    assert numba_type(ours) == numba_type(theirs)


def copied(desk: Desk) -> Desk:
    arrays: Any = [array.copy() for array in desk]
    return Desk(*arrays)


def fields(desk: Desk) -> dict[str, Any]:
    return {name: array.tolist() for name, array in desk._asdict().items()}


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
def test_filing_all_rows_in_one_call_is_filing_them_one_by_one(policy: Policy) -> None:
    desk = busy(policy).state.queue.desk
    kernels = policy.kernels()

    def one_by_one(desk: Desk, rows: Any, slot: int) -> None:
        for row in rows:
            revalue(desk, row)
            kernels.enter(desk, row, slot)

    once, each = copied(desk), copied(desk)
    assert refile_all(once, kernels, 1) == refile_all(each, kernels._replace(refile=one_by_one), 1)
    np.testing.assert_equal(fields(once), fields(each))


@settings(max_examples=25)
@given(
    policy=st.sampled_from(POLICIES),
    acts=st.lists(st.sampled_from(("join", "leave", "ask", "label", "close")), max_size=12),
)
def test_who_comes_and_goes_is_filed_later_with_the_same_outcome(
    policy: Policy, acts: list[str]
) -> None:
    """The plain reference looks after each step, so that everything is filed at once."""
    lazy, eager = busy(policy), busy(policy)
    for n, act in enumerate(acts):
        for s in (lazy, eager):
            _do(s, act, n)
        eager.fingerprint()
    assert lazy.log == eager.log
    assert lazy.fingerprint() == eager.fingerprint()


def _do(s: Scheduler, act: str, n: int) -> None:
    match act:
        case "join":
            s.arrive(Item(f"for-{n}", 8.0, frozenset((f"n{n}", "m1")), frozenset((f"x{n}",))))
            s.join(Labeler(f"n{n}", 0.75))
            s.join(Labeler(f"x{n}", 0.65))
        case "leave":
            s.leave(s.seated[0]) if len(s.seated) > 1 else None
        case "ask":
            s.assign(s.seated[-1:])
        case "label":
            for item, labeler in s.in_flight[:1]:
                s.observe(Label(item, labeler, "ok"))
        case "close":
            s.close()


def test_whoever_looks_at_an_item_changes_nothing() -> None:
    s = busy(Realised())
    before = s.fingerprint()
    for item in s.outstanding:
        s.verdict(item)
        s.posterior(item)
    s.ranking("m0")
    assert s.fingerprint() == before


@given(lines=st.lists(st.binary(max_size=300_000)), rest=st.binary(max_size=200_000))
def test_what_is_unpacked_in_pieces_is_what_was_packed(lines: list[bytes], rest: bytes) -> None:
    lines = [line.replace(b"\n", b" ") for line in lines]
    body = zlib.compress(b"".join(line + b"\n" for line in lines) + rest, 1)
    packed = Unpacking(body)
    assert [packed.line() for _ in lines] == lines
    assert packed.take(len(rest) // 2) + packed.take(len(rest) - len(rest) // 2) == rest
    packed.end()


def test_a_snapshot_that_is_cut_off_or_changed_is_not_restored() -> None:
    whole = Scheduler([Labeler("ann", 0.9)], ["spam", "ok"]).snapshot()
    for bad in (whole[:-1], whole[:-30], whole[:-1] + bytes([whole[-1] ^ 1])):
        with pytest.raises(zlib.error):
            Scheduler.restore(bad)
