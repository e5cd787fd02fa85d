"""Running the application: one process, one loop, graceful shutdown.

On SIGTERM or Ctrl-C waiting requests are answered at once, running requests are finished, snapshots
are written and the store is closed. A second signal stops at once.
"""

from __future__ import annotations

import asyncio
import errno
import gc
import os
import socket
import sys
import time
import warnings
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Final

import uvicorn
from starlette.types import ASGIApp
from structlog import get_logger

from venire.errors import InputError, StoreDown, StoreInUse
from venire.server.app import Front, create_app
from venire.server.edge.limits import timed
from venire.server.edge.monitoring import (
    as_line,
    configure_log,
    library_level,
    logged,
    unknown_variables,
)
from venire.server.edge.settings import ServerSettings
from venire.server.reports import skill_report
from venire.server.service import Service
from venire.server.settings import ServiceSettings
from venire.server.store import Storage, open_storage
from venire.server.stream import engine_setup

Tell = Callable[[str], None]

#: The thread switch interval in seconds: a tenth of Python's default, so that the loop runs soon.
SWITCH = 0.0005

#: Seconds between attempts of a standby to own the store; each waits for its lock a while itself.
_RETRY = 0.2

#: What to do where one cannot listen, by why.
_WHAT_TO_DO: Final = {
    errno.EADDRINUSE: "Stop what listens there, or give another port with --port",
    errno.EACCES: "Ports below 1024 are for root: give another one with --port, and put a proxy "
    "before it",
    errno.EADDRNOTAVAIL: "This machine does not have that address: give another one with --host",
}


def run_server(
    settings: ServerSettings, tell: Tell, early: Iterable[warnings.WarningMessage] = ()
) -> None:
    """Serve until stopped; `tell` prints the lines that the operator has to see.

    The log begins with the warnings that came `early`, before it was known how it looks.
    """
    configure_log(settings)
    for warning in early:
        get_logger("venire").warning(str(warning.message))
    for name, near in unknown_variables(os.environ):
        hint = f"did you mean {near}?" if near else "remove it, or correct its name"
        get_logger("venire").warning(f"the variable {name} is not a setting: {hint}")
    sys.setswitchinterval(SWITCH)
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(_serve(settings, lambda said: tell(as_line(settings, said))))


async def _serve(settings: ServerSettings, tell: Tell) -> None:
    """Listen at once, and answer 503 until everything is loaded."""
    if settings.shared and settings.standby:
        raise InputError("got both shared and standby: servers that share need no standby")
    waits = settings.standby or settings.shared
    with ExitStack() as closing:
        sockets = [closing.enter_context(one) for one in _bound(settings)]
        front = Front()
        server = _Server(settings, front, closing.enter_context(logged(front, settings)))
        storage = None if waits else open_storage(settings.storage, copy=settings.upgrade_copy)
        leading = asyncio.create_task(_lead(settings, storage, server, tell))
        try:
            await server.serve(sockets)
        finally:
            leading.cancel()
            await asyncio.wait({leading})
    if not leading.cancelled():
        leading.result()  # raises if the start failed
    tell("stopped")


def _bound(settings: ServerSettings) -> list[socket.socket]:
    """Sockets at the address, before anything else is done: what takes the port says so at once."""
    host, port = settings.host, settings.port
    try:
        found = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except OSError as error:
        raise InputError(f"cannot listen on {host!r}: {error.strerror or error}") from None
    bound: list[socket.socket] = []
    for family, kind, _, _, address in dict.fromkeys(found):
        try:
            listening = socket.socket(family, kind)
        except OSError:  # this machine has no such network
            continue
        try:
            if sys.platform != "win32":
                listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            where = (address[0], bound[0].getsockname()[1] if bound and not port else address[1])
            listening.bind((*where, *address[2:]))
            listening.listen(2048)
        except OSError as error:
            for one in (listening, *bound):
                one.close()
            hint = _WHAT_TO_DO.get(error.errno or 0, "Give another address with --host or --port")
            raise InputError(
                f"cannot listen on {host} port {port}: {error.strerror or error}. {hint}"
            ) from None
        bound.append(listening)
    return bound


async def _lead(
    settings: ServerSettings, storage: Storage | None, server: _Server, tell: Tell
) -> None:
    """Own the store and serve its streams, until cancelled."""
    try:
        with storage or await _when_free(settings, server, tell) as owned:
            tell("starting")
            service = Service(owned, settings=service_settings(settings))
            app = create_app(service, settings)
            server.front.open(app, app.state.gate)
            try:
                await _start(service, settings, server, tell)
                await asyncio.Event().wait()
            finally:
                async with _within(settings.grace - server.stopping_for(), owned):
                    await service.stop()
                if app.state.gate.peers is not None:
                    await app.state.gate.peers.close()
    except Exception:
        server.should_exit = True
        raise


@asynccontextmanager
async def _within(seconds: float, storage: Storage) -> AsyncIterator[None]:
    """Inside, wait for the store, but give up after a number of seconds if it does not answer."""

    async def give_up() -> None:
        await asyncio.sleep(seconds)
        while not storage.silent:
            await asyncio.sleep(_RETRY)
        storage.abandon()

    late = asyncio.create_task(give_up())
    try:
        yield
    finally:
        late.cancel()


async def _when_free(settings: ServerSettings, server: _Server, tell: Tell) -> Storage:
    """The store, as soon as nobody else owns it; who shares it joins when it can serve.

    Who waits for it compiles meanwhile: when the store is free that would keep everybody waiting.
    """
    told, address = False, None
    if settings.shared:
        await server.listening.wait()
        address = settings.address or server.own_address()
        await asyncio.to_thread(prepare)
    while True:
        try:
            return await asyncio.to_thread(
                open_storage, settings.storage, True, address, copy=settings.upgrade_copy
            )
        except (StoreInUse, StoreDown) as why:
            if not told:
                await server.listening.wait()
                for listening in server.addresses():
                    tell(f"standing by on {listening}: {_without_advice(why)}")
                told = True
                if not settings.shared:
                    await asyncio.to_thread(prepare)
        await asyncio.sleep(_RETRY)


def _without_advice(why: Exception) -> str:
    """Why one stands by, without what to do about it, which is for those who did not mean to.

    >>> _without_advice(StoreInUse("the store is in use: stop it first, or take another"))
    'the store is in use'
    """
    return str(why).partition(": stop it first")[0]


async def _start(service: Service, settings: ServerSettings, server: _Server, tell: Tell) -> None:
    """Announce the addresses as soon as requests are served, and load the streams."""
    empty = not await asyncio.to_thread(service.runtime.storage.streams)
    _collect_seldom()
    known = bool(await asyncio.to_thread(service.runtime.storage.keys))
    with _first_key_to(None if known else settings.admin_key_file, tell) as say:
        first_key = await service.start(wait=False)
        if first_key is not None:
            say(first_key)
    await server.listening.wait()
    for address in server.addresses():
        tell(f"listening on {address}")
    if server.front.gate is not None and server.front.gate.provider is not None:
        service.runtime.spawn(server.front.gate.provider.check())
    if empty:  # otherwise what is loaded is warmed up
        await service.prepare()
    await service.loaded()
    for name in sorted(service.set_aside):
        tell(f"stream {name!r} is set aside: it cannot be loaded (see the log)")
    gc.freeze()


@contextmanager
def _first_key_to(path: Path | None, tell: Tell) -> Iterator[Tell]:
    """Say the first key, or write it into a file, which is there before the key is made."""
    if path is None:
        yield lambda key: tell(f"admin key (shown only once): {key}")
        return
    try:
        file = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w")
    except FileExistsError:
        raise InputError(
            f"the store has no key, and the file for its first one, {path}, exists already: "
            "remove it, or name another file in admin_key_file"
        ) from None
    except OSError as error:
        raise InputError(f"the admin key cannot be written to {path}: {error.strerror}") from None
    written = False
    try:
        with file:

            def write(key: str) -> None:
                nonlocal written
                file.write(f"{key}\n")
                written = True
                tell(f"the admin key is in {path}")

            yield write
    finally:
        if not written:
            with suppress(OSError):
                path.unlink()


def prepare() -> None:
    """Do what takes long and needs no store: who takes a store over is waited for."""
    for settings in engine_setup.TYPICAL:
        engine_setup.warm_up(settings)
        skill_report.warm_up(settings.classes)
    _collect_seldom()


def _collect_seldom() -> None:
    """Run the cyclic garbage collector fourteen times less often than Python's default.

    A server holds many objects and makes few cycles: scanning all of them again and again took two
    fifths of the time of a bulk request. Objects from the start are frozen, and again once all
    streams are loaded. A young collection scans 50,000 objects at most, about twelve milliseconds,
    during which nobody is served.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 5, 10)


def service_settings(settings: ServerSettings) -> ServiceSettings:
    return ServiceSettings(
        max_waiting=settings.max_waiting,
        max_wait_seconds=settings.max_wait,
        max_batch=settings.max_batch,
        max_labelers=settings.max_labelers,
        allow_private_webhooks=settings.allow_private_webhooks,
        webhook_retry_seconds=settings.webhook_retry_hours * 3600,
        archive=settings.archive,
    )


class _Server(uvicorn.Server):
    """Uvicorn, with an event for when it listens, and a shutdown that ends long polls."""

    def __init__(self, settings: ServerSettings, front: Front, app: ASGIApp) -> None:
        self.front = front
        config = uvicorn.Config(
            app,
            host=settings.host,
            port=settings.port,
            http=timed(settings.header_timeout, settings.body_timeout),
            ws="none",
            lifespan="off",
            log_config=None,
            log_level=library_level(settings),
            proxy_headers=False,  # nothing depends on who a proxy says has called
            access_log=False,  # Uvicorn's has paths, with the tokens of assignments
            server_header=False,
            timeout_graceful_shutdown=max(1, round(settings.grace)),
            timeout_keep_alive=75,
            backlog=2048,
        )
        super().__init__(config)
        self.listening = asyncio.Event()
        self._stopped_at: float | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listening.set()

    def addresses(self) -> list[str]:
        names = [s.getsockname()[:2] for server in self.servers for s in server.sockets]
        return [f"http://{f'[{host}]' if ':' in host else host}:{port}" for host, port in names]

    def own_address(self) -> str:
        """Where other servers reach this one, if it listens on one address."""
        address = self.addresses()[0]
        if "//0.0.0.0:" in address or "//[::]:" in address:
            raise InputError(
                f"the server listens on {address}, which others cannot use: say where they reach "
                "it with --address http://HOST:PORT"
            )
        return address

    def stopping_for(self) -> float:
        return 0.0 if self._stopped_at is None else time.monotonic() - self._stopped_at

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Shut down gracefully; the second time at once."""
        if self.should_exit:
            self.force_exit = True
        self.should_exit = True
        self._stopped_at = self._stopped_at or time.monotonic()
        if self.front.gate is not None:
            self.front.gate.stopping.set()
            self.front.gate.service.runtime.sharing.resign()


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
