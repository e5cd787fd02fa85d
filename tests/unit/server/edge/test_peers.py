"""Requests for streams that are elsewhere: how long they wait for an owner."""

from __future__ import annotations

import asyncio
import time
from types import SimpleNamespace
from typing import Any, cast

import pytest
from starlette.requests import Request
from starlette.responses import Response

from venire.errors import StreamElsewhere
from venire.server.edge import peers
from venire.server.edge.guard import Gate
from venire.server.store import Members


class Sharing:
    """Nobody owns anything."""

    members = Members(0, {}, {})

    def holds(self, name: str) -> bool:
        return False

    async def look_again(self) -> None:
        await asyncio.sleep(0.01)


def post() -> Request:
    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    scope = {"type": "http", "method": "POST", "headers": [], "path_params": {"stream": "posts"}}
    return Request(scope, receive)


@pytest.mark.parametrize("stopping", [False, True])
def test_who_stops_does_not_wait_for_an_owner(
    stopping: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would not be gone before that."""
    patience = 1e6 if stopping else 0.2
    monkeypatch.setattr(peers, "PATIENCE", patience)

    async def inner(request: Request) -> Response:
        raise StreamElsewhere("posts")

    async def ask() -> float:
        gate = SimpleNamespace(
            service=SimpleNamespace(runtime=SimpleNamespace(sharing=Sharing())),
            settings=SimpleNamespace(max_wait=patience),
            stopping=asyncio.Event(),
        )
        if stopping:
            gate.stopping.set()
        begun = time.monotonic()
        with pytest.raises(StreamElsewhere):
            await peers.Peers(cast(Gate, gate)).run(post(), inner)
        return time.monotonic() - begun

    took = asyncio.run(ask())
    assert stopping or took >= 0.2
