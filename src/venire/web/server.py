"""Running the application: one process, one loop, a clean end.

SIGTERM or Ctrl-C lets those who wait go at once, finishes the requests that are under way, writes
snapshots and closes the store. A second one does not wait.
"""

from __future__ import annotations

import asyncio
import gc
import socket
from collections.abc import Callable
from types import FrameType

import uvicorn

from venire.service import Service, ServiceSettings, StreamSettings, building, skills
from venire.storage import open_storage
from venire.web.app import create_app
from venire.web.guard import Gate
from venire.web.log import configure_log, library_level
from venire.web.protocol import timed
from venire.web.settings import ServerSettings

__all__ = ["run_server"]

Tell = Callable[[str], None]


def run_server(settings: ServerSettings, tell: Tell) -> None:
    """Serve until told to stop; `tell` gets the lines that the operator has to see."""
    configure_log(settings)
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(_serve(settings, tell))


async def _serve(settings: ServerSettings, tell: Tell) -> None:
    with open_storage(settings.storage) as storage:
        tell("starting (the first start compiles, which takes up to a minute)")
        if not storage.streams():  # the kernels of those that there are, `start` sees to
            warm_up()
        service = Service(storage, settings=service_settings(settings))
        first_key = await service.start()
        try:
            if first_key is not None:
                tell(f"admin key (shown this once): {first_key}")
            app = create_app(service, settings)
            _collect_seldom()
            await _Server(settings, app, tell).serve()
        finally:
            await service.stop()
    tell("stopped")


def warm_up() -> None:
    """Compile what a usual stream needs, or load it, so that no request has to wait for it.

    Those of the store are warmed up when they are loaded, which is also before any request.
    """
    for classes in (("yes", "no"), ("yes", "no", "unsure")):  # two have kernels of their own
        building.warm_up(StreamSettings(classes=classes))
        skills.warm_up(classes)


def _collect_seldom() -> None:
    """Look for cycles of garbage seventy times less often than Python does by default.

    A server holds a great many objects and makes few cycles: going through all of them again and
    again took two fifths of the time of a bulk request. What is there at the start stays.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 10, 10)


def service_settings(settings: ServerSettings) -> ServiceSettings:
    """What of the server's settings concerns the service."""
    return ServiceSettings(
        max_waiting=settings.max_waiting,
        max_wait_seconds=settings.max_wait,
        max_batch=settings.max_batch,
        allow_private_webhooks=settings.allow_private_webhooks,
        webhook_retry_seconds=settings.webhook_retry_hours * 3600,
    )


class _Server(uvicorn.Server):
    """Uvicorn, with a word when it listens and an end that does not keep people waiting."""

    def __init__(self, settings: ServerSettings, app: object, tell: Tell) -> None:
        config = uvicorn.Config(
            app,  # type: ignore[arg-type] # FastAPI is an ASGI application
            host=settings.host,
            port=settings.port,
            http=timed(settings.header_timeout),
            lifespan="off",
            log_config=None,
            log_level=library_level(settings),
            access_log=settings.log_level == "debug",
            server_header=False,
            timeout_graceful_shutdown=max(1, round(settings.grace)),
            timeout_keep_alive=75,
            backlog=2048,
        )
        super().__init__(config)
        self._gate: Gate = app.state.gate  # type: ignore[attr-defined] # create_app put it there
        self._tell = tell

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and say where."""
        await super().startup(sockets)
        for server in self.servers:
            for listening in server.sockets:
                host, port = listening.getsockname()[:2]
                at = f"[{host}]" if ":" in host else host
                self._tell(f"listening on http://{at}:{port}")

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop: let those who wait go, finish the rest; the second time at once."""
        if self.should_exit:
            self.force_exit = True
        self.should_exit = True
        self._gate.stopping.set()


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
