"""The console with many items, and many streams: python -m benchmarks console [--items N] ...

A store is filled with items that have left, with payloads of about 200 characters and one to three
labels each, and a thousand that are open. Then a server in this process is asked for each kind of
page and listing, over its ASGI interface, and the wall milliseconds of whole requests are written
down (p50, p95 and the longest of 40), beside those of `GET /health`, which does nothing. After that
the same with a hundred streams (`--streams`) of a thousand exits and fifty open items each, in a
store of their own; the home page, made at most once a second for all, is made anew each time.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import tempfile
import time
from typing import Any

TIMES, BATCH = 40, 10_000
EXITS, OPEN = 1000, 50
COUNTED = ("open", "left", "labels")
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
    "page: labelers": "/streams/s/labelers",
}

MANY = {
    "(nothing: /health)": "/health",
    "all streams": "/v1/streams",
    "page: home": "/",
    "page: stream": "/streams/s7",
    "page: items": "/streams/s7/items",
    "page: reviews": "/streams/s7/reviews",
    "page: labelers": "/streams/s7/labelers",
    "page: archived": "/archived",
    "page: audit log": "/audit",
}


async def fill(service: Any, items: int) -> None:
    """A stream with some open items, behind a history that is written straight into the store."""
    from venire.server import ItemIn, StreamSettings

    await service.create_stream("s", StreamSettings.model_validate(known()), "benchmark")
    await service.add_items("s", [ItemIn(f"open-{n}", {"text": "open"}) for n in range(1000)])
    draw, storage, begun = random.Random(0), service.runtime.storage, time.time() - items
    for first in range(0, items, BATCH):
        await service.runtime.write(history(draw, first, min(first + BATCH, items), begun))
        if first % (20 * BATCH) == 0:
            print(f"{first + BATCH:,} items", flush=True)
    assert storage.counts("s").left == items


def known() -> dict[str, Any]:
    """The settings of a stream with twenty labelers of known competence."""
    panel = [{"id": f"m{n}", "competence": 0.6 + 0.015 * n} for n in range(20)]
    return {"classes": CLASSES, "panel": panel, "learning": "known", "slot_seconds": 600}


async def fill_many(service: Any, streams: int) -> None:
    """Many streams, each with a history of the last hour; every tenth is closed, or archived."""
    from venire.server import ItemIn, StreamSettings

    draw, settings = random.Random(0), StreamSettings.model_validate(known())
    for n in range(streams):
        name = f"s{n}"
        await service.create_stream(name, settings, "benchmark")
        await service.runtime.write(history(draw, 0, EXITS, time.time() - EXITS - 9, name))
        if n % 10 == 9:
            await service.close(name, "benchmark")
        else:
            opened = [ItemIn(f"open-{k}", {"text": "open"}) for k in range(OPEN)]
            await service.add_items(name, opened)
    await service.archive("s9", "benchmark")


def history(
    draw: random.Random, first: int, end: int, begun: float, stream: str = "s"
) -> list[Any]:
    """Items that have left, and their labels."""
    from venire.server.store import ExitRow, Insert, ItemRow, LabelRow, LeaveItems

    items, exits, labels = [], [], []
    for n in range(first, end):
        id, at, payload = f"item-{n}", begun + n, " ".join(draw.choices(WORDS, k=25))
        verdict = draw.choices(CLASSES, (0.5, 0.4998, 0.0002))[0]
        many, reason = draw.choice((1, 1, 2, 3)), draw.choice(("no_gain", "exhausted"))
        row = ItemRow(
            stream=stream,
            id=id,
            digest="digest",
            payload=f'{{"text":"{payload}"}}',
            weight=10.0,
            eligible=None,
            excluded="[]",
            arrived_slot=0,
            arrived_at=at,
        )
        items.append(row)
        sure = draw.uniform(0.5, 1)
        exits.append(
            ExitRow(
                stream=stream,
                id=id,
                status="left",
                exit_n=n + 1,
                exit_slot=0,
                left_at=at + 9,
                verdict=verdict,
                confidence=sure,
                labels=many,
                reason=reason,
            )
        )
        for k in range(many):
            said = verdict if draw.random() < 0.8 else "ok"
            who = f"m{(n + k) % 20}"
            labels.append(
                LabelRow(
                    stream=stream,
                    item=id,
                    labeler=who,
                    said=said,
                    at=at + k,
                    slot=0,
                    late=False,
                    lead_seconds=2.0,
                    source="lease",
                )
            )
    return [Insert(items), LeaveItems(exits), Insert(labels)]


async def measure(service: Any, items: int) -> None:
    """Ask for everything of the large stream, in turn."""
    middle = (await service.item("s", f"item-{items // 2}")).arrived_at
    named = {name: path.format(middle=middle, half=items // 2) for name, path in PATHS.items()}
    await ask(service, named)


async def measure_many(service: Any, streams: int) -> None:
    """Ask for the pages of many streams, in turn."""
    await ask(service, MANY)


async def ask(service: Any, paths: dict[str, str]) -> None:
    """Ask for each path in turn, and print how long it took."""
    import httpx2

    from venire.server import ServerSettings, create_app

    key = (await service.keys.create("benchmark", "admin")).token
    app = create_app(service, ServerSettings(rate=0))
    transport = httpx2.ASGITransport(app)
    headers = {"authorization": f"Bearer {key}"}
    async with httpx2.AsyncClient(
        transport=transport, base_url="http://venire", headers=headers, timeout=60
    ) as client:
        await client.post("/sign-in", data={"key": key})
        took: dict[str, list[float]] = {name: [] for name in paths}
        for _ in range(TIMES):
            for name, where in paths.items():
                if name == "page: home":
                    await asyncio.sleep(1.05)  # it is kept for a second
                begun = time.perf_counter()
                answer = await client.get(where)
                took[name].append(1000 * (time.perf_counter() - begun))
                assert answer.status_code == 200, (where, answer.text)
    print(f"{'':34}{'p50':>8}{'p95':>8}{'most':>8}")
    for name, found in took.items():
        ordered = sorted(found)
        p50, p95 = ordered[TIMES // 2], ordered[int(0.95 * (TIMES - 1) + 0.5)]
        print(f"{name:34}{p50:8.1f}{p95:8.1f}{ordered[-1]:8.1f}")


async def run(url: str, number: int, works: tuple[Any, Any]) -> None:
    """Fill, start again, and measure."""
    from venire.server import Service
    from venire.server.store import open_storage

    for work in works:
        with open_storage(url) as storage:
            service = Service(storage)
            begun = time.perf_counter()
            await service.start()
            print(f"started in {time.perf_counter() - begun:.1f} s", flush=True)
            begun = time.perf_counter()
            if work is not works[0] or not storage.streams():
                await work(service, number)
            print(f"{work.__name__}: {time.perf_counter() - begun:.0f} s", flush=True)
            every = [storage.counts(row.name) for row in storage.streams()]
            opened, left, labels = (sum(getattr(x, k) for x in every) for k in COUNTED)
            print(f"{len(every)} streams, {opened:,} open, {left:,} left, {labels:,} labels")
            await service.stop()


def main(arguments: list[str]) -> None:
    """Read the options, and run."""
    parser = argparse.ArgumentParser(prog="console")
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--streams", type=int, default=100)
    parser.add_argument("--storage", default=None)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        url = options.storage or f"sqlite:///{folder}/venire.db"
        if options.items:
            asyncio.run(run(url, options.items, (fill, measure)))
        if options.streams:
            many = f"sqlite:///{folder}/many.db"
            asyncio.run(run(many, options.streams, (fill_many, measure_many)))
