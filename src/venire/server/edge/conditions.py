"""Prometheus metrics of the store and the webhooks.

Totals are counted by the service itself, so they are exported as they are.
"""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from venire.server.runtime.health import PARTS, Condition

__all__ = ["Conditions"]

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
        """No condition is known yet."""
        self.now: Condition | None = None

    def collect(self) -> Iterator[Metric]:
        """All metrics."""
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
