"""A connection to PostgreSQL that fails as networks do: a proxy whose faults are chosen."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Literal
from urllib.parse import parse_qs, urlsplit

__all__ = ["FAULTS", "LASTING", "Fault", "Wire", "wire_to"]

#: stall: nothing gets through, nothing is refused. halfopen: connections are silent for ever, new
#: ones work. halfdrop: what is asked gets through, answers do not; new ones work. reset:
#: connections end, new ones work. refuse: connections end, and there are no new ones.
Fault = Literal["stall", "halfopen", "halfdrop", "reset", "refuse"]
FAULTS: Final[tuple[Fault, ...]] = ("stall", "halfopen", "halfdrop", "reset", "refuse")

#: Those that last until they are mended.
LASTING: Final[frozenset[Fault]] = frozenset({"stall", "refuse"})


class _Link:
    """A client's connection, and the one to PostgreSQL."""

    def __init__(self, client: asyncio.StreamWriter) -> None:
        self.ends = [client]
        self.dead = self.deaf = False

    def reset(self) -> None:
        for end in self.ends:
            _reset(end)


class Wire:
    """Between a server and PostgreSQL; its methods may be called in any thread."""

    def __init__(self, storage: str) -> None:
        """In front of a database at a socket of this machine."""
        at = urlsplit(storage)
        self._socket = f"{parse_qs(at.query)['host'][0]}/.s.PGSQL.5432"
        self._links: set[_Link] = set()
        self._refusing = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._ready = threading.Event()
        self.thread = threading.Thread(target=asyncio.run, args=(self._serve(),), daemon=True)
        self.thread.start()
        assert self._ready.wait(60)
        self.url = f"postgresql://{at.username}@127.0.0.1:{self._port}{at.path}"

    async def _serve(self) -> None:
        self.loop, self._closed = asyncio.get_running_loop(), asyncio.Event()
        self._flowing = asyncio.Event()
        self._flowing.set()
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self._port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._closed.wait()
        server.close()
        for link in self._links:
            link.reset()
        await asyncio.sleep(0.05)  # until the transports are closed

    def close(self) -> None:
        """Be gone."""
        self.loop.call_soon_threadsafe(self._closed.set)
        self.thread.join(60)

    def fail(self, how: Fault) -> None:
        """Fail, from now on or for the connections that there are."""
        asyncio.run_coroutine_threadsafe(self._fail(how), self.loop).result(60)

    def mend(self) -> None:
        """Let new connections through, and those that were stalled."""
        asyncio.run_coroutine_threadsafe(self._mend(), self.loop).result(60)

    async def _fail(self, how: Fault) -> None:
        links = tuple(self._links)
        if how == "stall":
            self._flowing.clear()
        elif how in ("halfopen", "halfdrop"):
            for link in links:
                link.dead, link.deaf = how == "halfopen", how == "halfdrop"
        else:
            self._refusing = how == "refuse"
            for link in links:
                link.reset()

    async def _mend(self) -> None:
        self._refusing = False
        self._flowing.set()

    async def _accept(self, reader: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        if self._refusing:
            _reset(client)
            return
        link = _Link(client)
        self._links.add(link)
        await self._flowing.wait()
        try:
            answers, server = await asyncio.open_unix_connection(self._socket)
        except OSError:
            link.reset()
            self._links.discard(link)
            return
        link.ends.append(server)
        pumps = self._pump(link, reader, server, False), self._pump(link, answers, client, True)
        for pump in pumps:
            task = self.loop.create_task(pump)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _pump(
        self, link: _Link, reader: asyncio.StreamReader, to: asyncio.StreamWriter, down: bool
    ) -> None:
        try:
            while data := await reader.read(65536):
                await self._flowing.wait()
                if link.dead:
                    return  # and both sides stay open
                if not (link.deaf and down):
                    to.write(data)
                    await to.drain()
        except OSError:
            pass
        if not link.dead and not link.deaf:
            self._links.discard(link)
            to.close()


def _reset(end: asyncio.StreamWriter) -> None:
    made: socket.socket = end.get_extra_info("socket")
    if made.family == socket.AF_INET and made.fileno() >= 0:  # else it is closed already
        made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    end.transport.abort()


@contextmanager
def wire_to(storage: str) -> Iterator[Wire]:
    """A wire to a database, as long as it is needed."""
    wire = Wire(storage)
    try:
        yield wire
    finally:
        wire.close()
