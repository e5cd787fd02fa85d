"""The streams of all servers, for lists: those of others as they show them to the caller."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Any, Final, TypeVar

from starlette.requests import Request

from venire.server.edge.guard import Gate
from venire.server.edge.peers import PASSED_ON, Peers
from venire.server.messages import Insights, StreamView
from venire.server.runtime.sharing import Sharing

__all__ = ["all_insights", "all_streams"]

T = TypeVar("T")

#: How often to ask again while a stream moves between servers.
TRIES: Final = 6


async def all_streams(gate: Gate, request: Request) -> list[StreamView]:
    """All streams by name; a server that asks for another gets those of this one."""
    own = await gate.service.streams()
    if gate.peers is None or PASSED_ON in request.headers:
        return own
    sharing, found = gate.service.runtime.sharing, dict[str, StreamView]()
    for _ in range(TRIES):
        answers = await gate.peers.ask(request, "/v1/streams")
        found = {row["name"]: _read(StreamView, row) for answer in answers for row in answer}
        found |= {view.name: view for view in own}
        if all(name in found or sharing.members.owner(name) is not None for name in sharing.names):
            break
        await sharing.look_again()
        own = await gate.service.streams()
    return [found[name] for name in sorted(found)]


async def all_insights(gate: Gate, request: Request) -> list[Insights]:
    """The statistics of all streams by name; one that moves at this moment is left out."""
    own = await gate.service.overview()
    if gate.peers is None:
        return own
    sharing, peers = gate.service.runtime.sharing, gate.peers
    others = sharing.names - {one.stream for one in own}
    found = await asyncio.gather(*(_asked(sharing, peers, request, name) for name in others))
    return sorted([*own, *(one for one in found if one is not None)], key=lambda one: one.stream)


async def _asked(sharing: Sharing, peers: Peers, request: Request, name: str) -> Insights | None:
    owner, path = sharing.members.owner(name), f"/v1/streams/{name}/insights"
    if owner is None or owner == sharing.members.me:
        return None
    row = await peers.ask_one(request, owner, path)
    return None if row is None else _read(Insights, row)


def _read(kind: type[T], row: dict[str, Any]) -> T:
    """A view from its JSON; what only a newer version knows is left out."""
    names = {field.name for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    return kind(**{name: value for name, value in row.items() if name in names})
