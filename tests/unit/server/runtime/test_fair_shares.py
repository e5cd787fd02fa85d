"""Shares that differ by one at most, with as few moves as possible, whoever comes and goes."""

from __future__ import annotations

import itertools
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from venire.server.runtime.sharing import Plan, fair_plan, quotas

Owners = dict[str, int | None]


@st.composite
def shared_out(draw: st.DrawFn) -> tuple[Owners, list[int]]:
    """Streams with their owners, some free, some of a server that is gone; and the servers."""
    servers = draw(st.lists(st.integers(1, 9), min_size=1, max_size=5, unique=True))
    count = draw(st.integers(0, 12))
    owner = st.sampled_from([None, 99, *servers])
    return {f"s{n:02}": draw(owner) for n in range(count)}, servers


def plans(owners: Owners, servers: list[int]) -> dict[int, Plan]:
    return {server: fair_plan(owners, servers, server, at_once=len(owners)) for server in servers}


def carried_out(owners: Owners, of: dict[int, Plan]) -> Owners:
    after = {name: owner if owner in of else None for name, owner in owners.items()}
    for plan in of.values():
        after |= dict.fromkeys(plan.give)
    for server, plan in of.items():
        after |= dict.fromkeys(plan.take, server)
    return after


def fewest_moves(owners: Owners, servers: list[int]) -> int:
    """The plain reference: over all ways to say who gets one more."""
    held = Counter(owner for owner in owners.values() if owner in servers)
    share, more = divmod(len(owners), len(servers))
    ways = itertools.combinations(servers, more)
    return min(sum(max(0, held[one] - share - (one in large)) for one in servers) for large in ways)


@given(shared_out())
def test_what_all_do_together_is_fair_in_two_steps(case: tuple[Owners, list[int]]) -> None:
    owners, servers = case
    for _ in range(2):  # give up and take what is free, then take what was given up
        owners = carried_out(owners, plans(owners, servers))
    counts = Counter(owners.values())
    sizes = [counts[server] for server in servers]
    assert sum(sizes) == len(owners)
    assert max(sizes) - min(sizes) <= 1
    assert all(plan == Plan([], []) for plan in plans(owners, servers).values()), "it stays so"


@given(shared_out())
def test_no_more_moves_than_needed(case: tuple[Owners, list[int]]) -> None:
    owners, servers = case
    given_up = sum(len(plan.give) for plan in plans(owners, servers).values())
    assert given_up == fewest_moves(owners, servers)


@given(shared_out())
def test_no_two_want_the_same_and_nobody_gives_what_is_not_theirs(
    case: tuple[Owners, list[int]],
) -> None:
    owners, servers = case
    wanted = [name for plan in plans(owners, servers).values() for name in plan.take]
    assert len(wanted) == len(set(wanted))
    for server, plan in plans(owners, servers).items():
        assert all(owners[name] == server for name in plan.give)
        assert all(owners[name] not in servers for name in plan.take)


@given(shared_out(), st.integers(0, 3))
def test_few_streams_are_free_at_a_time(case: tuple[Owners, list[int]], most: int) -> None:
    owners, servers = case
    free = sum(owner not in servers for owner in owners.values())
    for server in servers:
        plan = fair_plan(owners, servers, server, at_once=most)
        assert len(plan.give) <= max(0, most - free)


@given(st.dictionaries(st.integers(1, 9), st.integers(0, 20), min_size=1), st.integers(0, 20))
def test_who_has_most_keeps_most(held: dict[int, int], free: int) -> None:
    quota = quotas({-1: free, **held})
    assert sum(quota.values()) == sum(held.values()) + free
    for one, other in itertools.permutations(held, 2):
        assert held[one] <= held[other] or quota[one] >= quota[other]
