"""The console with many items: python -m benchmarks console [--items N] [--storage URL].

A store is filled through the service: items with payloads of about 180 characters, one to three
labels each, all but a few of which leave. Then a server in this process is asked for each kind of
page and listing, over its ASGI interface, and the wall milliseconds of whole requests are written
down (p50, p95 and the longest of 40), beside those of `GET /health`, which does nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import tempfile
import time
from typing import Any

TIMES, BATCH = 40, 10_000
CLASSES = ("spam", "ok", "rare")
WORDS = [f"word{n}" for n in range(5000)]

PATHS = {
    "(nothing: /health)": "/health",
    "list, first page": "/v1/streams/s/items",
    "list, in the middle": "/v1/streams/s/items?until={middle}",
    "open": "/v1/streams/s/items?status=open",
    "a rare verdict": "/v1/streams/s/items?verdict=rare",
    "a rare verdict, below 0.6": "/v1/streams/s/items?verdict=rare&max_confidence=0.6",
    "confidence below 0.6": "/v1/streams/s/items?max_confidence=0.6",
    "by a labeler": "/v1/streams/s/items?labeler=m3&status=left",
    "text that is frequent": "/v1/streams/s/items?text=word17",
    "text that is nowhere, one step": "/v1/streams/s/items?text=zebra",
    "an id": "/v1/streams/s/items?text=item-{half}",
    "reviews": "/v1/streams/s/reviews",
    "disputed reviews": "/v1/streams/s/reviews?kind=disputed",
    "trends": "/v1/streams/s/trends",
    "page: home": "/",
    "page: stream": "/streams/s",
    "page: items": "/streams/s/items",
    "page: item": "/streams/s/items/item-{half}",
    "page: reviews": "/streams/s/reviews",
}


async def fill(service: Any, items: int) -> None:
    """Fill the stream; slots of half a second close beside it."""
    from venire.service import ItemIn, StreamSettings

    draw = random.Random(0)
    panel = [{"id": f"m{n}", "competence": 0.6 + 0.015 * n} for n in range(20)]
    settings = StreamSettings(
        classes=CLASSES, panel=panel, learning="known", policy="fixed-overlap:2", slot_seconds=0.5,
        max_overlap=3, audit_share=0.0005,
    )  # fmt: skip
    await service.create_stream("s", settings, "benchmark")
    for first in range(0, items, BATCH):
        ids = [f"item-{n}" for n in range(first, min(first + BATCH, items))]
        rows = [ItemIn(id, {"text": " ".join(draw.choices(WORDS, k=25))}) for id in ids]
        await service.add_items("s", rows)
        said = []
        for id in ids:
            truth = draw.choices(CLASSES, (0.5, 0.4998, 0.0002))[0]
            for who in draw.sample(range(20), draw.choice((1, 2, 2, 2, 2, 2, 2, 2, 2, 3))):
                right = draw.random() < 0.6 + 0.015 * who
                said.append((id, f"m{who}", truth if right else draw.choice(CLASSES[:2])))
        await service.add_labels("s", said)
        if first % (20 * BATCH) == 0:
            print(f"{first + len(ids):,} items", flush=True)


async def measure(service: Any, items: int) -> None:
    """Ask for everything, in turn."""
    import httpx2

    from venire.web import ServerSettings, create_app

    key = (await service.keys.create("benchmark", "admin")).token
    app = create_app(service, ServerSettings(rate=0))
    middle = (await service.item("s", f"item-{items // 2}")).arrived_at
    transport = httpx2.ASGITransport(app)
    headers = {"authorization": f"Bearer {key}"}
    async with httpx2.AsyncClient(
        transport=transport, base_url="http://venire", headers=headers, timeout=60
    ) as client:
        await client.post("/sign-in", data={"key": key})
        took: dict[str, list[float]] = {name: [] for name in PATHS}
        for _ in range(TIMES):
            for name, path in PATHS.items():
                where = path.format(middle=middle, half=items // 2)
                begun = time.perf_counter()
                answer = await client.get(where)
                took[name].append(1000 * (time.perf_counter() - begun))
                assert answer.status_code == 200, (where, answer.text)
    print(f"{'':34}{'p50':>8}{'p95':>8}{'most':>8}")
    for name, found in took.items():
        ordered = sorted(found)
        p50, p95 = ordered[TIMES // 2], ordered[int(0.95 * (TIMES - 1) + 0.5)]
        print(f"{name:34}{p50:8.1f}{p95:8.1f}{ordered[-1]:8.1f}")


async def run(url: str, items: int) -> None:
    """Fill, start again, and measure."""
    from venire.service import Service
    from venire.storage import open_storage

    for work in (fill, measure):
        with open_storage(url) as storage:
            service = Service(storage)
            await service.start()
            begun = time.perf_counter()
            if work is not fill or not storage.streams():
                await work(service, items)
            print(f"{work.__name__}: {time.perf_counter() - begun:.0f} s", flush=True)
            if work is measure:
                counts = storage.counts("s")
                print(f"{counts.open:,} open, {counts.left:,} left, {counts.labels:,} labels")
            await service.stop()


def main(arguments: list[str]) -> None:
    """Read the options, and run."""
    parser = argparse.ArgumentParser(prog="console")
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--storage", default=None)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        url = options.storage or f"sqlite:///{folder}/venire.db"
        asyncio.run(run(url, options.items))
