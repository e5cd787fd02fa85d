"""Where items go when they leave: the setting `routes`, followed once, whatever is killed when.

A row (`RoutedRow`) is written with the exit of an item, in one transaction. From then on two steps
bring the item to another stream, each of which may be taken again without effect. Whoever owns the
stream that it goes to adds the item there, under its own id. Whoever owns the stream that it comes
from sees in the store that it is there, or why it never will be, writes that into the log, and
settles the row in the same transaction. A verdict for a webhook is delivered as any other (see
`webhooks.deliveries`); here the log is told.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from venire.errors import InputError, StoreError, TooMuch, VenireError
from venire.model import StreamStatus
from venire.server.actors import Actor
from venire.server.messages import ItemIn
from venire.server.operations.items import contents
from venire.server.store import ERASED, ItemRow, RoutedRow, SettleRoute, Storage
from venire.server.stream.change_batch import Batch

if TYPE_CHECKING:
    from venire.server.operations.items import ItemOperations
    from venire.server.runtime.runtime import Runtime
    from venire.server.settings import StreamSettings

#: Seconds between two looks for what waits, and how much is read at once.
POLL_SECONDS: Final = 1.0
PAGE: Final = 5000

#: How many items are added to a stream at once.
CHUNK: Final = 200

_log = logging.getLogger("venire.service")

#: To which streams each stream sends items.
Graph = Mapping[str, Sequence[str]]


def graph_of(storage: Storage) -> dict[str, list[str]]:
    """To which streams each stream in the store sends items."""
    found = {}
    for row in storage.streams():
        routes = json.loads(storage.settings(row.name)[-1].body)["settings"].get("routes", ())
        found[row.name] = [route["stream"] for route in routes if route.get("stream")]
    return found


def check_routes(
    name: str, settings: StreamSettings, graph: Graph, hooks: Mapping[str, None]
) -> None:
    """Refuse routes to what there is not, and those that lead back to the stream itself.

    >>> from venire.server.settings import StreamSettings
    >>> settings = StreamSettings(classes=["a", "b"], routes=[{"stream": "experts"}])
    >>> check_routes("posts", settings, {"experts": ["last"], "last": ["posts"]}, {})
    Traceback (most recent call last):
    venire.errors.InputError: routes lead in a circle, posts > experts > last > posts: ...
    """
    for hook in settings.routed_hooks - hooks.keys():
        raise InputError(
            f"routes names the webhook {hook!r}, expected the id of a webhook of stream {name!r}, "
            f"one of {list(hooks)}: create the webhook first, then set routes"
        )
    targets = [route.stream for route in settings.routes if route.stream is not None]
    paths = [[name, target] for target in dict.fromkeys(targets)]
    seen = set[str]()
    while paths:
        path = paths.pop()
        if path[-1] == name:
            raise InputError(
                f"routes lead in a circle, {' > '.join(path)}: an item would come back to where it "
                "has been; send it to a stream from which no route leads back"
            )
        if path[-1] not in graph and len(path) == 2:
            raise InputError(
                f"routes names the stream {path[-1]!r}, which does not exist: create it first"
            )
        if path[-1] not in seen:
            seen.add(path[-1])
            paths += [[*path, target] for target in graph.get(path[-1], ())]


class Routing:
    """Brings items to where their verdicts send them."""

    def __init__(self, runtime: Runtime, items: ItemOperations) -> None:
        self._runtime, self._items = runtime, items
        self._one = asyncio.Lock()
        self._more = True  # something may wait, also from before the start

    def start(self) -> None:
        """Look for what waits until the service stops."""
        self._runtime.spawn(self._forever())

    async def _forever(self) -> None:
        while True:
            try:
                await self.follow()
            except StoreError:
                pass  # the store is down: later
            except Exception:
                _log.exception("following routes failed; retrying")
            await asyncio.sleep(POLL_SECONDS)

    async def follow(self) -> None:
        """Bring what waits to where it goes, and settle what is there.

        What cannot go on now, as to a full stream, keeps nothing else waiting: the next page is
        read without what the same stream sends to the same place.
        """
        runtime = self._runtime
        routes = any(live.settings.routes for live in runtime.loaded())
        if not (routes or self._more or runtime.storage.shared) or not runtime.accepting:
            return
        async with self._one:
            stuck, rows = set[tuple[str, str]](), None
            while rows is None or len(rows) == PAGE:
                rows = await runtime.read_committed(runtime.storage.routed_waiting, PAGE, stuck)
                settled = await self._follow(rows)
                stuck |= {(row.stream, row.target) for row in rows if row not in settled}
            self._more = bool(stuck)

    async def _follow(self, rows: list[RoutedRow]) -> set[RoutedRow]:
        """Bring some rows to where they go; those that are settled."""
        coming, leaving = defaultdict[str, list[RoutedRow]](list), defaultdict(list)
        for row in rows:
            if row.kind == "stream":
                coming[row.target].append(row)
            leaving[row.stream].append(row)
        holds, settled = self._runtime.sharing.holds, set[RoutedRow]()
        for target in filter(holds, coming):
            await self._arrive(target, coming[target])
        for stream in filter(holds, leaving):
            settled |= await self._settle(stream, leaving[stream])
        return settled

    async def _arrive(self, target: str, rows: list[RoutedRow]) -> None:
        """Add items to the stream that they go to, until it is full; `_outcomes` tells which."""
        runtime = self._runtime
        for first in range(0, len(rows), CHUNK):
            some = rows[first : first + CHUNK]
            found = await runtime.read(_sources, runtime.storage, some)
            items = [
                (row, _item(source)) for row, source in zip(some, found, strict=True) if source
            ]
            sources = {row.stream for row, _ in items}
            who = Actor(f"routes of {', '.join(sorted(sources))}")
            if await self._refusal(target, [item for _, item in items], who) is None:
                continue
            for row, item in items:
                refusal = await self._refusal(target, [item], Actor(f"routes of {row.stream}"))
                if isinstance(refusal, TooMuch):
                    return

    async def _refusal(self, target: str, items: list[ItemIn], who: Actor) -> VenireError | None:
        """Add items; why the stream refused one, and so all of them, if it did."""
        try:
            if items:
                await self._items.add_items(target, items, who)
        except StoreError:
            raise
        except VenireError as error:
            return error
        return None

    async def _settle(self, stream: str, rows: list[RoutedRow]) -> set[RoutedRow]:
        """Write into the log what has arrived, and what cannot; these rows."""
        runtime = self._runtime
        done = await runtime.read_committed(_outcomes, runtime.storage, rows)
        if not done:
            return set()
        live = await runtime.live_stream(stream)
        if live.status == StreamStatus.ARCHIVED:
            return set()
        batch, moment = Batch(), runtime.moment()
        for row, fault in done:
            live.engine.route(row.item, row.kind, row.target, fault)
            now = row._replace(settled_at=moment.wall, fault=fault)
            batch.last.append(SettleRoute(now))
        live.collect(batch, moment)
        await runtime.commit(live, batch)
        return {row for row, _ in done}


def _sources(storage: Storage, rows: Sequence[RoutedRow]) -> list[ItemRow | None]:
    """The items that go elsewhere, but those that are no longer there, or were erased."""
    found = (storage.item(row.stream, row.item) for row in rows)
    return [None if row is None or row.digest == ERASED else row for row in found]


def _item(row: ItemRow) -> ItemIn:
    """An item as it arrives elsewhere: its content, and who may label it."""
    only = None if row.eligible is None else tuple(json.loads(row.eligible))
    barred = tuple(json.loads(row.excluded))
    return ItemIn(row.id, json.loads(row.payload), eligible=only, excluded=barred)


def _outcomes(storage: Storage, rows: Sequence[RoutedRow]) -> list[tuple[RoutedRow, str | None]]:
    """What has arrived, with None, and what never will, with the reason."""
    done: list[tuple[RoutedRow, str | None]] = []
    for row in rows:
        if row.kind == "webhook":
            done.append((row, None))
            continue
        there = storage.known_ids(row.target, [row.item])
        gone = storage.archived(row.target, [row.item])
        digest = there.get(row.item) or (gone[row.item].digest if gone else None)
        source = _sources(storage, [row])[0]
        if digest is not None:
            other = source is not None and digest not in (ERASED, _digest(source))
            done.append((row, "it has another item of that id" if other else None))
            continue
        target = storage.stream(row.target)
        if target is None or target.deleted_at is not None:
            done.append((row, "there is no such stream any more"))
        elif target.status == StreamStatus.CLOSED:
            done.append((row, "it is closed"))
        elif source is None:
            done.append((row, "its payload was erased before it arrived"))
    return done


def _digest(source: ItemRow) -> str:
    item = _item(source)
    return contents([item])[item.id].digest
