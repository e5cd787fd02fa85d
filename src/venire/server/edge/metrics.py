"""Prometheus metrics: requests by route, statistics of every stream, the store, webhooks."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)

from venire.server.edge.conditions import Conditions
from venire.server.messages import Insights
from venire.server.runtime.health import Condition

__all__ = ["Metrics"]

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
        """All at zero."""
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
        seconds = self._seconds.labels(method, route)
        by_status: dict[int, Counter] = {}

        def record(status: int, elapsed: float) -> None:
            if status not in by_status:
                by_status[status] = self._requests.labels(method, route, str(status))
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
