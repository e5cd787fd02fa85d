"""What operators see of a server: its log on stderr, with a line a request, and Prometheus metrics.

Venire and its libraries are logged in one format. The metrics are of requests by route, of every
stream, of the store and of webhooks.
"""

from __future__ import annotations

import difflib
import json
import logging
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from types import TracebackType
from typing import Final, NamedTuple, Self, TextIO

import structlog
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Histogram,
    Info,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from structlog.stdlib import ProcessorFormatter
from structlog.typing import Processor

from venire import __version__
from venire.server.edge.settings import ServerSettings
from venire.server.messages import Insights
from venire.server.runtime.health import PARTS, Condition

#: Variables that are no settings of the server.
OTHERS: Final = frozenset({"VENIRE_CONFIG", "VENIRE_DATA", "VENIRE_KEY", "VENIRE_URL"})

#: Libraries that log every migration, and every webhook that is sent.
CHATTY: Final = ("alembic", "httpx2")


def configure_log(settings: ServerSettings) -> None:
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


SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)

STREAM_FIGURES = {
    "open_items": "Items that wait for labels.",
    "leased_items": "Items that a labeler holds.",
    "labels": "Labels accepted.",
    "late_labels": "Labels that arrived after their item had left.",
    "exits": "Items that left.",
    "exits_per_minute": "Items that left in the last minute.",
    "revisions": "Verdicts that changed after their item had left.",
    "gold": "Items whose class somebody trusted has said.",
    "audits": "Verdicts drawn at random and audited.",
    "audits_due": "Verdicts drawn at random that wait for a trusted labeler.",
    "error_upper": "Upper bound on the rate of errors, at 95 %, by the audits.",
    "labels_per_minute": "Labels accepted in the last minute.",
    "unsure": "How often a labeler was not sure.",
    "flags": "Flags that labelers put on items.",
    "comments": "Comments of labelers.",
    "oldest_seconds": "Age of the oldest open item.",
    "alarms": "Alarms that are on.",
    "single_label_share": "The share of the latest exits that had one label.",
    "waiting": "Requests that wait for work.",
    "money": "What all labels cost, at the present prices.",
    "budget_left": "Labels left of the budget.",
    "slots_skipped": "Slots skipped because they could not be closed in time.",
}


class Metrics(Collector):
    r"""The metrics of one server, in a registry of their own.

    >>> from venire.server.store import WriterStats
    >>> metrics = Metrics()
    >>> metrics.recorder("GET", "/health")(200, 0.001)
    >>> stored = Condition({"writes": 3.0}, WriterStats(commits=7), 0, {"bytes": 4096}, [])
    >>> page = metrics.page([], waiting=0, up=True, condition=stored).decode().splitlines()
    >>> told = "venire_requests_total", "venire_store_commits_total", "venire_store_bytes"
    >>> print(*(line for line in page if line.startswith(told)), sep="\n")
    venire_requests_total{method="GET",route="/health",status="200"} 1.0
    venire_store_commits_total 7.0
    venire_store_bytes 4096.0
    >>> [line for line in page if line.startswith("venire_down") and line.endswith(" 3.0")]
    ['venire_down_seconds{part="writes"} 3.0']

    The usual process metrics, such as open files, are included (on Linux).
    """

    def __init__(self) -> None:
        # otherwise there is a series beside each counter, which nothing reads
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self._registry = registry = CollectorRegistry()
        names = ["method", "route", "status"]
        self._requests = Counter("venire_requests", "Requests.", names, registry=registry)
        self._seconds = Histogram(
            "venire_request_seconds",
            "Response time.",
            names[:2],
            registry=registry,
            buckets=SECONDS,
        )
        ProcessCollector(registry=registry)
        build = Info("venire_build", "The version that runs.", registry=registry)
        build.info({"version": __version__})
        self._now: list[Metric] = []
        registry.register(self)

    def recorder(self, method: str, route: str) -> Callable[[int, float], None]:
        """A function that records a request of one route, given its status and seconds."""
        seconds: Histogram | None = None  # a route that nobody asks for is not on the page
        by_status: dict[int, Counter] = {}

        def record(status: int, elapsed: float) -> None:
            nonlocal seconds
            if status not in by_status:
                by_status[status] = self._requests.labels(method, route, str(status))
            if seconds is None:
                seconds = self._seconds.labels(method, route)
            by_status[status].inc()
            seconds.observe(elapsed)

        return record

    def page(
        self,
        streams: list[Insights],
        waiting: int,
        up: bool,
        condition: Condition | None = None,
        aside: int = 0,
        loading: int = 0,
    ) -> bytes:
        """All metrics, in the text format."""
        states = {
            "waiting": ("Long polls and event streams.", waiting),
            "store_up": ("Whether the store accepts writes.", up),
            "streams_set_aside": (
                "Streams that are not served because they cannot be loaded.",
                aside,
            ),
            "streams_loading": ("Streams that are not loaded yet.", loading),
        }
        self._now = [] if condition is None else [*_store(condition), *_webhooks(condition)]
        for name, (text, value) in states.items():
            self._now.append(GaugeMetricFamily(f"venire_{name}", text, value=value))
        for name, text in STREAM_FIGURES.items():
            figure = GaugeMetricFamily(f"venire_stream_{name}", text, labels=["stream"])
            for stream in streams:
                if (value := getattr(stream, name)) is not None:
                    figure.add_metric([stream.stream], value)
            self._now.append(figure)
        return generate_latest(self._registry)

    def collect(self) -> list[Metric]:
        return self._now


COMMITTED = {
    "commits": "Committed transactions.",
    "requests": "Committed requests; several share a transaction.",
    "changes": "Committed changes.",
    "failures": "Failed transactions.",
}
SIZES = {
    "bytes": "Size of the store.",
    "wal_bytes": "Size of the write-ahead log (SQLite).",
    "free_bytes": "Free space on the disk of the store (SQLite).",
}
DELIVERED = {
    "delivered": "Messages delivered to a webhook.",
    "failed": "Failed attempts to deliver a message.",
    "given_up": "Messages that were dead-lettered.",
}
HELD = {
    "pending": "Messages that wait for their first attempt or a retry.",
    "dead": "Dead letters in the store.",
}


def _store(now: Condition) -> Iterator[Metric]:
    text = "How long writes or reads of the store, or opening files, have been failing."
    down = GaugeMetricFamily("venire_down_seconds", text, labels=["part"])
    for part in PARTS:
        down.add_metric([part], now.down.get(part, 0.0))
    yield down
    stats = now.stats
    for name, text in COMMITTED.items():
        yield CounterMetricFamily(f"venire_store_{name}", text, value=float(getattr(stats, name)))
    seconds = "Total time of the commits."
    yield CounterMetricFamily("venire_store_commit_seconds", seconds, value=stats.seconds)
    last = "Time of the last commit."
    yield GaugeMetricFamily("venire_store_last_commit_seconds", last, value=stats.last_seconds)
    queued = "Requests that wait for the next commit."
    yield GaugeMetricFamily("venire_store_queued", queued, value=now.queued)
    for name, text in SIZES.items():
        if name in now.sizes:
            yield GaugeMetricFamily(f"venire_store_{name}", text, value=now.sizes[name])


def _webhooks(now: Condition) -> Iterator[Metric]:
    labels = ["stream", "webhook"]
    for name, text in DELIVERED.items():
        counter = CounterMetricFamily(f"venire_webhook_{name}", text, labels=labels)
        for tally in now.webhooks:
            counter.add_metric([tally.stream, tally.webhook], getattr(tally, name))
        yield counter
    for name, text in HELD.items():
        gauge = GaugeMetricFamily(f"venire_webhook_{name}", text, labels=labels)
        for tally in now.webhooks:
            if getattr(tally, name) is not None:  # the store answered
                gauge.add_metric([tally.stream, tally.webhook], getattr(tally, name))
        yield gauge
    text = "Failures of a webhook since its last success."
    failing = GaugeMetricFamily("venire_webhook_failing", text, labels=labels)
    for tally in now.webhooks:
        failing.add_metric([tally.stream, tally.webhook], tally.failing)
    yield failing
