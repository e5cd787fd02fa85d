"""The streams that this server owns: all, or its fair share among the servers of a store.

A server that shares looks at the members and their claims every half second, claims what is free up
to its share, and gives up what is above it: snapshot, no more requests, everything on disk, no
claim any more.
Operations on a stream of another server raise `StreamElsewhere`, before anything is done.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from venire.errors import NotFound, StoreDown, StreamElsewhere
from venire.server.store import Members, StreamRow

if TYPE_CHECKING:
    from venire.server.runtime.runtime import Runtime

#: Seconds between two looks at the members, and between two that somebody asks for.
PERIOD: Final = 0.5
PAUSE: Final = 0.05

_log = logging.getLogger("venire.service")


class Sharing:
    """Which streams are here, and where the others are."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime, self._storage = runtime, runtime.storage
        self.members = Members(0, {}, {})
        self.purge: Callable[[str], None] = lambda name: None  # what to do with a deleted stream
        self._names: frozenset[str] = frozenset()
        self._archived: frozenset[str] = frozenset()
        self._deleted: frozenset[str] = frozenset()
        self._leaving: set[str] = set()  # no more requests
        self._left: set[str] = set()  # nothing more is written
        self._creating: set[str] = set()
        self._departures: dict[int, asyncio.Event] = {}
        self._asked, self._looked = asyncio.Event(), asyncio.Event()
        self._acting: asyncio.Task[None] | None = None
        self._resigned = False

    @property
    def names(self) -> frozenset[str]:
        """The streams of all servers, as seen last; those that are archived are not."""
        return self._names - self._archived

    @property
    def shared(self) -> bool:
        return self._storage.shared

    def holds(self, name: str) -> bool:
        """Whether requests for a stream are served here; it need not be loaded, nor exist."""
        return self._storage.holds(name) and name not in self._leaving

    def may_write(self, name: str) -> bool:
        """Whether rows of a stream may be written here: also while it is given up, to the end."""
        return self._storage.holds(name) and name not in self._left

    async def check(self, name: str) -> None:
        """`StreamElsewhere` if the stream is not served here, `NotFound` if there is none."""
        if self.holds(name):
            return
        if name not in self._names:
            rows = await self._runtime.read(self._storage.streams)
            if name not in {row.name for row in rows}:
                raise NotFound("stream", name)
        raise StreamElsewhere(name)

    async def start(self) -> None:
        """Claim streams, and begin to load those that are ours."""
        if not self.shared:
            rows = await self._runtime.read(self._storage.streams)
            # those that are archived are loaded when somebody reads them
            self._runtime.loading.want(row.name for row in rows if row.archived_at is None)
            return
        await self._look()
        await self._act()
        self._runtime.spawn(self._look_forever())

    def resign(self) -> None:
        """Give up all streams, since the server stops: others claim them at once."""
        self._resigned = True
        self._asked.set()

    @contextlib.asynccontextmanager
    async def creating(self, name: str) -> AsyncIterator[None]:
        """Claim a stream to create it inside; `StreamElsewhere` if another server has it."""
        self._creating.add(name)
        try:
            if not self.holds(name) and not (
                name not in self._names and await self._runtime.keep(self._storage.claim, name)
            ):
                raise StreamElsewhere(name)
            yield
        finally:
            self._creating.discard(name)

    # looking

    async def look_again(self) -> None:
        """Return after another look at the members, which is soon."""
        looked = self._looked
        self._asked.set()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PERIOD):
                await looked.wait()

    def departure(self, server: int) -> asyncio.Event:
        """Set when a server is no longer among the members."""
        event = self._departures.setdefault(server, asyncio.Event())
        if server not in self.members.addresses:
            event.set()
        return event

    async def _look_forever(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(PERIOD):
                    await self._asked.wait()
            try:
                await self._look()
                if self._acting is None or self._acting.done():
                    self._acting = self._runtime.spawn(self._act())
            except StoreDown:
                pass  # the store is down: what was seen last is all there is
            except Exception:
                _log.exception("looking for the other servers failed; retrying")
            await asyncio.sleep(PAUSE)

    async def _look(self) -> None:
        """See who is there and owns what; a server that is not there itself has lost everything."""
        self._asked.clear()
        looked, self._looked = self._looked, asyncio.Event()
        try:
            self.members, rows, self._deleted = await self._runtime.keep(self._read)
        finally:
            looked.set()
        self._names = frozenset(row.name for row in rows)
        self._archived = frozenset(row.name for row in rows if row.archived_at is not None)
        for server in [x for x in self._departures if x not in self.members.addresses]:
            self._departures.pop(server).set()
        gone = self.members.me not in self.members.addresses
        if gone and self.members.me == self._storage.session and self._runtime.writer.up:
            self._runtime.writer.refuse("its session with the store has ended")
            self._runtime.ticker.wake()

    def _read(self) -> tuple[Members, list[StreamRow], frozenset[str]]:
        storage = self._storage
        members, rows = storage.members(), storage.streams()
        return members, rows, frozenset(row.name for row in storage.deleted_streams())

    # acting

    async def _act(self) -> None:
        try:
            if not self._runtime.writer.up:
                return
            if self._resigned:
                await self._runtime.keep(self._storage.resign)
            plan = self._plan()
            for name in plan.give:
                await self._give_up(name)
            for name in plan.take:
                if self._runtime.running and await self._runtime.keep(self._storage.claim, name):
                    _log.info("this server owns stream %r now", name)
            for name in () if self._resigned else sorted(self._storage.claims()):
                self._serve(name)
        except StoreDown:
            pass  # after it is up again
        except Exception:
            _log.exception("sharing out the streams failed; retrying")

    def _plan(self) -> Plan:
        claims = self._storage.claims()
        if self._resigned:
            return Plan([], sorted(claims))
        members, names = self.members, self._names | self._deleted
        owners = {name: members.owner(name) for name in names}
        owners |= dict.fromkeys(claims & names, members.me)  # since the look
        passed_over = members.not_taking - {members.me}  # they keep what they have
        owners = {name: owner for name, owner in owners.items() if owner not in passed_over}
        plan = fair_plan(owners, {*members.addresses, members.me} - passed_over, members.me)
        unused = claims - names - self._creating - self._runtime.streams.keys()
        return Plan(plan.take, [*plan.give, *(unused - self._runtime.deleting.keys())])

    def _serve(self, name: str) -> None:
        runtime = self._runtime
        if not self.holds(name) or name in runtime.streams or name in runtime.set_aside:
            return
        if name in self._names - self._archived:
            runtime.loading.want([name])
        elif name in self._deleted and name not in runtime.deleting:
            self.purge(name)

    async def _give_up(self, name: str) -> None:
        """Let another server have a stream; requests that come meanwhile are passed on to it."""
        runtime = self._runtime
        if name in runtime.deleting:
            return  # it is ours until the last row is gone
        live = runtime.streams.get(name)
        if live is not None:
            await runtime.snapshot(live)
        self._leaving.add(name)
        try:
            while (live := runtime.streams.get(name)) is not None and live.busy is not None:
                await asyncio.shield(live.busy)
            self._left.add(name)
            runtime.let_go(name)
            await runtime.flush()
            await runtime.keep(self._storage.disclaim, name)
            _log.info("this server gave up stream %r", name)
        finally:
            self._leaving.discard(name)
            self._left.discard(name)


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
