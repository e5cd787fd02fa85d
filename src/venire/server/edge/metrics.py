"""Prometheus metrics: requests by route, statistics of every stream, the store, webhooks."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Info,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from venire import __version__
from venire.server.messages import Insights
from venire.server.runtime.health import PARTS, Condition

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


class Metrics:
    """The metrics of one server, in a registry of their own.

    >>> metrics = Metrics()
    >>> metrics.recorder("GET", "/health")(200, 0.001)
    >>> b'venire_requests_total{method="GET"' in metrics.page([], waiting=0, up=True)
    True

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
        self._conditions = Conditions()
        registry.register(self._conditions)
        self._waiting = Gauge("venire_waiting", "Long polls and event streams.", registry=registry)
        self._up = Gauge("venire_store_up", "Whether the store accepts writes.", registry=registry)
        text = "Streams that are not served because they cannot be loaded."
        self._aside = Gauge("venire_streams_set_aside", text, registry=registry)
        text = "Streams that are not loaded yet."
        self._loading = Gauge("venire_streams_loading", text, registry=registry)
        self._streams = {
            name: Gauge(f"venire_stream_{name}", text, ["stream"], registry=registry)
            for name, text in STREAM_FIGURES.items()
        }

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
        self._conditions.now = condition
        self._aside.set(aside)
        self._loading.set(loading)
        self._waiting.set(waiting)
        self._up.set(up)
        for name, gauge in self._streams.items():
            gauge.clear()
            for stream in streams:
                value = getattr(stream, name)
                if value is not None:
                    gauge.labels(stream.stream).set(value)
        return generate_latest(self._registry)


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


class Conditions(Collector):
    """Exports a `Condition` as metrics.

    >>> from venire.server.store import WriterStats
    >>> conditions = Conditions()
    >>> conditions.now = Condition({"writes": 3.0}, WriterStats(commits=7), 0, {"bytes": 4096}, [])
    >>> for sample in (sample for metric in conditions.collect() for sample in metric.samples):
    ...     if sample.value:
    ...         print(sample.name, sample.value)
    venire_down_seconds 3.0
    venire_store_commits_total 7.0
    venire_store_bytes 4096
    """

    def __init__(self) -> None:
        self.now: Condition | None = None

    def collect(self) -> Iterator[Metric]:
        if self.now is not None:
            yield from _parts(self.now)
            yield from _store(self.now)
            yield from _webhooks(self.now)


def _parts(now: Condition) -> Iterator[Metric]:
    text = "How long writes or reads of the store, or opening files, have been failing."
    down = GaugeMetricFamily("venire_down_seconds", text, labels=["part"])
    for part in PARTS:
        down.add_metric([part], now.down.get(part, 0.0))
    yield down


def _store(now: Condition) -> Iterator[Metric]:
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
