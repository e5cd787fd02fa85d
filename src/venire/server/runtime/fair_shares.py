"""Who should own which streams: shares that differ by one at most, with as few moves as possible.

Every server computes the same plan from what it sees, and does its own part of it. Two that see
different things for a moment may want the same stream: the lock gives it to one of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple


class Plan(NamedTuple):
    """What a server does: the free streams that it claims, and the own ones that it gives up."""

    take: list[str]
    give: list[str]


def quotas(held: Mapping[int, int]) -> dict[int, int]:
    """How many streams each server should have, given how many each holds and how many are free.

    `held[-1]` is the number of free ones. Those that hold most get the larger shares, so that
    nothing moves without need.

    >>> quotas({-1: 1, 7: 4, 8: 0, 9: 2})
    {7: 3, 9: 2, 8: 2}
    """
    servers = sorted((server for server in held if server >= 0), key=lambda s: (-held[s], s))
    share, more = divmod(sum(held.values()), len(servers))
    return {server: share + (place < more) for place, server in enumerate(servers)}


def fair_plan(
    owners: Mapping[str, int | None], servers: Iterable[int], me: int, at_once: int = 2
) -> Plan:
    """The part of one server in sharing streams out.

    Parameters
    ----------
    owners
        All streams, with the server that owns each; None for a free one.
    servers
        The numbers of the servers, `me` among them.
    me
        The server that asks.
    at_once
        A stream is given up only while fewer streams than this have no owner.

    Examples
    --------
    >>> owners = {"a": 1, "b": 1, "c": 1, "d": None}
    >>> fair_plan(owners, [1, 2], me=1), fair_plan(owners, [1, 2], me=2)
    (Plan(take=[], give=['c']), Plan(take=['d'], give=[]))
    """
    held = dict.fromkeys(servers, 0)
    free = []
    for name in sorted(owners):
        owner = owners[name]
        if owner in held:
            held[owner] += 1
        else:
            free.append(name)
    quota = quotas({-1: len(free), **held})
    wanting = [server for server in sorted(held) for _ in range(quota[server] - held[server])]
    take = [name for name, server in zip(free, wanting, strict=False) if server == me]
    mine = sorted(name for name, owner in owners.items() if owner == me)
    give = mine[quota[me] :][: max(0, at_once - len(free))]
    return Plan(take, give)
