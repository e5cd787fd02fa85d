"""A name that resolves to another address a moment later gets a webhook nowhere else."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from venire.errors import InputError
from venire.server import ServiceSettings, SystemClock
from venire.server.store.records import WebhookRow
from venire.server.webhooks.posting import Poster
from venire.tools import untrusted

#: Both are of this machine; the first stands for a public address.
PUBLIC, PRIVATE = "127.0.0.2", "127.0.0.1"


def test_a_name_that_is_bound_anew_leads_to_the_address_that_was_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []
    reached: list[str] = []

    async def run() -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            reached.append(writer.get_extra_info("sockname")[0])
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(serve, PUBLIC, 0)
        port = server.sockets[0].getsockname()[1]
        inside = await asyncio.start_server(serve, PRIVATE, port)
        loop = asyncio.get_running_loop()
        real = loop.getaddrinfo

        async def bound_anew(host: Any, *args: Any, **more: Any) -> Any:
            if host != "rebound.example":
                return await real(host, *args, **more)
            asked.append(host)
            address = PUBLIC if len(asked) == 1 else PRIVATE
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

        monkeypatch.setattr(loop, "getaddrinfo", bound_anew)
        monkeypatch.setattr(untrusted, "is_public", lambda address: address == PUBLIC)
        secret = "whsec_c2VjcmV0c2VjcmV0c2VjcmV0"
        hook = WebhookRow(
            id="hook",
            stream="posts",
            url=f"http://rebound.example:{port}/",
            secret=secret,
            created_at=0.0,
        )
        poster = Poster(ServiceSettings(), SystemClock())
        try:
            assert (await poster.post(hook, "msg_1", b"{}"))[0] == 200
            with pytest.raises(InputError, match="not a public address"):
                await poster.post(hook, "msg_2", b"{}")
        finally:
            await poster.close()
            server.close()
            inside.close()

    asyncio.run(run())
    assert reached == [PUBLIC]
    assert len(asked) == 2, "it was resolved once for each message"
