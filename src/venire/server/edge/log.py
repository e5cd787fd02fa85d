"""The server's log on stderr: venire and its libraries in one format."""

from __future__ import annotations

import difflib
import json
import logging
import sys
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from types import TracebackType
from typing import Final, NamedTuple, Self, TextIO

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from structlog.stdlib import ProcessorFormatter
from structlog.typing import Processor

from venire.server.edge.settings import ServerSettings

#: Variables that are no settings of the server.
OTHERS: Final = frozenset({"VENIRE_CONFIG", "VENIRE_DATA", "VENIRE_KEY", "VENIRE_URL"})

#: Libraries that log every migration, and every webhook that is sent.
CHATTY: Final = ("alembic", "httpx2")


def configure_log(settings: ServerSettings) -> None:
    """Configure logging as the settings say."""
    level = getattr(logging, settings.log_level.upper())
    as_json = settings.log_format == "json"
    first: list[Processor] = [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    if as_json:
        first.append(structlog.processors.format_exc_info)
    render = _renderer(as_json)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.add_logger_name, *first],
            processors=[ProcessorFormatter.remove_processors_meta, render],
        )
    )
    logging.basicConfig(level=level, handlers=[handler], force=True)
    for name in CHATTY:
        logging.getLogger(name).setLevel(library_level(settings).upper())
    structlog.configure(
        processors=[*first, render],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(file=sys.stderr),
    )


def as_line(settings: ServerSettings, said: str, level: str = "info") -> str:
    """A line for the operator on stdout: as it is, or as a JSON object like those of the log.

    >>> as_line(ServerSettings(log_format="console"), "listening on http://127.0.0.1:8400")
    'listening on http://127.0.0.1:8400'
    >>> json.loads(as_line(ServerSettings(log_format="json"), "stopped"))["event"]
    'stopped'
    """
    if settings.log_format != "json":
        return said
    moment = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    return json.dumps({"event": said, "level": level, "timestamp": moment})


def unknown_variables(environment: Iterable[str]) -> Iterator[tuple[str, str | None]]:
    """Variables that begin with VENIRE_ and are nothing, each with the one that may be meant.

    >>> list(unknown_variables(["VENIRE_PROT", "VENIRE_PORT", "VENIRE_KEY", "PATH"]))
    [('VENIRE_PROT', 'VENIRE_PORT')]
    """
    known = {f"VENIRE_{name.upper()}" for name in ServerSettings.model_fields} | OTHERS
    for name in sorted(environment):
        if name.upper().startswith("VENIRE_") and name.upper() not in known:
            near = difflib.get_close_matches(name.upper(), known, n=1, cutoff=0.8)
            yield name, near[0] if near else None


def library_level(settings: ServerSettings) -> str:
    """The log level of libraries: warnings only by default, the same as ours otherwise.

    >>> library_level(ServerSettings(log_level="info"))
    'warning'
    """
    return "warning" if settings.log_level == "info" else settings.log_level


def _renderer(as_json: bool) -> Processor:
    if as_json:
        return structlog.processors.JSONRenderer()
    return structlog.dev.ConsoleRenderer(
        colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
    )


#: Seconds between two writes, and lines that wait for one: where more come they are dropped, which
#: a line says.
PERIOD: Final = 0.25
MOST_LINES: Final = 50_000


def wanted(settings: ServerSettings) -> bool:
    """Whether there is an access log: as the settings say, or with the log as JSON and with debug.

    >>> wanted(ServerSettings()), wanted(ServerSettings(log_format="json"))
    (False, True)
    """
    if settings.access_log is not None:
        return settings.access_log
    chatty = settings.log_level in ("debug", "info")
    return settings.log_level == "debug" or (chatty and settings.log_format == "json")


@contextmanager
def logged(app: ASGIApp, settings: ServerSettings) -> Iterator[ASGIApp]:
    """An application with an access log on stderr, if the settings want one."""
    if not wanted(settings):
        yield app
        return
    with RequestLines(sys.stderr, settings.log_format == "json") as lines:
        yield RequestLog(app, lines)


class Request(NamedTuple):
    """What is known of a request when it has ended; without a status the caller has gone."""

    at: float
    method: str
    route: str
    status: int | None
    seconds: float
    bytes: int
    role: str | None
    key: str | None

    def line(self, as_json: bool) -> str:
        """As a line of the log.

        >>> one = Request(0.0, "GET", "/v1/streams/{stream}/next", 204, 0.0012, 0, "labeler", "k_1")
        >>> one.line(as_json=False)
        '1970-01-01T00:00:00.000Z request GET /v1/streams/{stream}/next 204 1.2 ms 0 B labeler k_1'
        >>> json.loads(one.line(as_json=True))["ms"]
        1.2
        """
        moment = datetime.fromtimestamp(self.at, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"
        ms = round(self.seconds * 1000, 1)
        if as_json:
            return json.dumps(
                {
                    **{"event": "request", "level": "info", "timestamp": moment},
                    **{"method": self.method, "route": self.route, "status": self.status},
                    **{"ms": ms, "bytes": self.bytes, "role": self.role, "key": self.key},
                }
            )
        words = (moment, "request", self.method, self.route, self.status or "gone", ms, "ms")
        return " ".join(map(str, (*words, self.bytes, "B", self.role or "-", self.key or "-")))


class RequestLines:
    r"""Lines that wait to be written; a context that writes the last of them at its end.

    >>> import io
    >>> file = io.StringIO()
    >>> with RequestLines(file, as_json=False) as lines:
    ...     lines.add(Request(0.0, "GET", "/health", 200, 0.0004, 15, None, None))
    >>> file.getvalue()
    '1970-01-01T00:00:00.000Z request GET /health 200 0.4 ms 15 B - -\n'
    """

    def __init__(self, file: TextIO, as_json: bool, most: int = MOST_LINES) -> None:
        """Write to a file, which the rest of the log may be written to as well."""
        self._waiting: deque[Request] = deque()
        self._logger = structlog.PrintLogger(file)  # of one file, all have the same lock
        self._as_json, self._most, self._dropped = as_json, most, 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="access log", daemon=True)

    def add(self, request: Request) -> None:
        """Have a request written soon."""
        if len(self._waiting) < self._most:
            self._waiting.append(request)
        else:
            self._dropped += 1

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Write the rest; no longer than a second if nobody reads it."""
        self._ended.set()
        self._thread.join(1.0)

    def write(self) -> None:
        """Write what waits."""
        lines = [self._waiting.popleft().line(self._as_json) for _ in range(len(self._waiting))]
        if self._dropped:
            dropped, self._dropped = self._dropped, 0
            said = f"{dropped} requests are not in the access log: it is not read fast enough"
            told = {"event": said, "level": "warning"}
            lines.append(json.dumps(told) if self._as_json else said)
        if lines:
            self._logger.msg("\n".join(lines))

    def _run(self) -> None:
        ended = False
        while not ended:
            ended = self._ended.wait(PERIOD)
            self.write()


class RequestLog:
    """An ASGI application that notes each request to another one."""

    def __init__(self, app: ASGIApp, lines: RequestLines) -> None:
        self._app, self._lines = app, lines

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request: the server speaks HTTP alone."""
        begun, status, sent = time.perf_counter(), None, 0

        async def counted(message: Message) -> None:
            nonlocal status, sent
            if message["type"] == "http.response.start":
                status = message["status"]
            else:
                sent += len(message.get("body", b""))
            await send(message)

        try:
            await self._app(scope, receive, counted)
        finally:
            seconds = time.perf_counter() - begun
            who = scope.get("state", {}).get("caller")
            role, key = (None, None) if who is None else (str(who.role), who.key)
            if (refused := scope.get("venire.refused")) is not None:  # its key is no longer valid
                key = refused.id
            route = scope.get("venire.route", "other")
            made = Request(time.time(), scope["method"], route, status, seconds, sent, role, key)
            self._lines.add(made)
