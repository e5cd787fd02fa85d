"""Restarts and slots: scripts/bench restart [--open N,...] [--labels N,...] [--serving].

For each number of open items a store is filled under the default policy and killed; a second
process starts on it, and again after a clean end. What is written down are CPU seconds (user and
system, all threads), so that a busy machine changes little. For each number of labels a store
with a history of so many is made, in which few items are open, and started twice; then it is
verified and archived but for the last 100,000 items, started and verified again. With --serving,
a copy of it is archived by a server, beside requests that are timed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

#: Slots are closed by hand here.
LONG = 10 * 365 * 86_400.0
PEOPLE, CALLS, SLOTS = 20, 500, 7

#: Items that left and are kept when the others are archived.
KEPT = 100_000

#: Seconds for which requests are timed; and until how many times a server has dropped rows.
SERVING, DROPS = 30.0, 400


def cpu() -> float:
    """CPU seconds of this process so far."""
    return time.process_time()


def middle_and_p99(values: Sequence[float]) -> tuple[float, float]:
    """Median and 99th percentile."""
    ordered = sorted(values)
    return ordered[len(ordered) // 2], ordered[int(0.99 * (len(ordered) - 1))]


async def timed(done: Awaitable[Any], took: list[float]) -> Any:
    """Await something; its CPU seconds are added to the list."""
    begun = cpu()
    made = await done
    took.append(cpu() - begun)
    return made


async def calls(service: Any, found: dict[str, Any]) -> None:
    """Ask and answer, one after the other; CPU milliseconds of each."""
    asked: list[float] = []
    answered: list[float] = []
    for n in range(CALLS):
        lease = await timed(service.next("s", f"m{n % PEOPLE}"), asked)
        await timed(service.label(lease.token, "ok"), answered)
    for name, took in (("next", asked), ("label", answered)):
        middle, last = middle_and_p99(took)
        found[f"{name}_ms"], found[f"{name}_p99_ms"] = 1000 * middle, 1000 * last


async def slots(service: Any, found: dict[str, Any]) -> None:
    """Close some slots; CPU milliseconds of the usual one, and of the longest."""
    runtime, took = service.runtime, list[float]()
    for _ in range(SLOTS):
        live = await runtime.live_stream("s")
        live.slots.fall_behind(live.engine.slot + 1, runtime.clock.monotonic())
        await timed(runtime.live_stream("s"), took)
    await runtime.flush()
    found["slot_ms"], found["slot_most_ms"] = 1000 * sorted(took)[SLOTS // 2], 1000 * max(took)


def settings(**more: Any) -> Any:
    """The defaults, and a panel."""
    from venire.server import StreamSettings
    from venire.server.settings import Member

    panel = tuple(Member(id=f"m{n}") for n in range(PEOPLE))
    return StreamSettings(classes=("spam", "ok"), panel=panel, slot_seconds=LONG, **more)


async def started(url: str, archive: Path | None = None) -> tuple[Any, Any, float, float]:
    """A service on a store, and the CPU seconds and the seconds that its start took."""
    from venire.server import Service, ServiceSettings
    from venire.server.store import open_storage
    from venire.server.stream import engine_setup

    engine_setup.warm_up(settings())
    engine_setup.warm_up(settings(policy="fixed-overlap:5"))
    storage = open_storage(url)
    service = Service(storage, settings=ServiceSettings(max_batch=100_000, archive=archive))
    begun, wall = cpu(), time.perf_counter()
    await service.start()
    return storage, service, cpu() - begun, time.perf_counter() - wall


def peak() -> float:
    """The most memory that this process ever took, in megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


async def fill_open(url: str, count: int, payload: int) -> dict[str, Any]:
    """A stream with so many open items, all but a few without a label; then no clean end."""
    from venire.server import ItemIn

    _, service, _, _ = await started(url)
    await service.create_stream("s", settings(), actor="benchmark")
    begun = cpu()
    text = "x" * payload
    for start in range(0, count, 5000):
        some = range(start, min(count, start + 5000))
        await service.add_items("s", [ItemIn(f"item-{n}", f"{text}{n}") for n in some])
    found: dict[str, Any] = {"ingest_us": 1e6 * (cpu() - begun) / count}
    await calls(service, found)
    await service.runtime.snapshot(await service.runtime.live_stream("s"))
    await service.runtime.flush()
    await slots(service, found)  # these, and what comes after, are replayed
    await calls(service, found)
    return {**found, "peak_mb": peak()}


async def fill_labels(url: str, count: int) -> dict[str, Any]:
    """A stream through which so many labels have gone, five for each item; a clean end."""
    from venire.server import ItemIn

    _, service, _, _ = await started(url)
    await service.create_stream("s", settings(policy="fixed-overlap:5"), actor="benchmark")
    begun, each = cpu(), 5000
    for start in range(0, count // 5, each):
        names = [f"item-{n}" for n in range(start, start + each)]
        await service.add_items("s", [ItemIn(name, "text") for name in names])
        said = [(n, f"m{(n + k) % PEOPLE}") for k in range(5) for n in range(each)]
        rows = [(names[n], labeler, "ok") for n, labeler in said]
        await service.add_labels("s", rows)
        live = await service.runtime.live_stream("s")
        live.slots.fall_behind(live.engine.slot + 1, service.runtime.clock.monotonic())
        await service.runtime.live_stream("s")
    found = {"fill_us": 1e6 * (cpu() - begun) / count}
    await service.add_items("s", [ItemIn(f"last-{n}", "text") for n in range(1000)])
    await service.stop()
    return found


async def start(url: str, work: bool) -> dict[str, Any]:
    """A start, and how it is served after it."""
    storage, service, seconds, wall = await started(url)
    found: dict[str, Any] = {"start_s": seconds, "start_wall_s": wall, "peak_mb": peak()}
    if work:
        await calls(service, found)
        if (await service.runtime.live_stream("s")).settings.policy == "realised":
            await slots(service, found)
    await service.stop()
    storage.close()
    return found


def verified(url: str) -> dict[str, Any]:
    """Check the whole log of a store, and again what is new; beside it, only read all of it."""
    from venire.server.store import open_storage
    from venire.server.store.maintenance.verify import verify

    found: dict[str, Any] = {}
    with open_storage(url, owner=False) as storage:
        marks: Any = ()
        for name in ("verify", "again"):
            begun, wall = cpu(), time.perf_counter()
            done = verify(storage, "s", marks)
            assert done.ok, done.differences[:3]
            found[f"{name}_s"], found[f"{name}_events"] = cpu() - begun, done.events - done.start
            found[f"{name}_wall_s"] = time.perf_counter() - wall
            marks = done.marks
        found["peak_mb"], begun = peak(), cpu()
        read(storage)
    return {**found, "read_s": cpu() - begun}


def read(storage: Any) -> None:
    """The least that anybody does who looks at a whole store: read its rows, decode its events."""
    from venire.server.store import decode

    with storage.frozen():
        for row in storage.all_events("s"):
            decode([row])
        for rows in (storage.all_items("s"), storage.said_in_time("s")):
            for _ in rows:
                pass


def archived(url: str) -> dict[str, Any]:
    """Archive all but the last items that left."""
    from venire.server.store import open_storage
    from venire.server.store.history.segments import Keep, archive_stream

    path = Path(url.removeprefix("sqlite:///"))
    archive, begun, wall = Path(f"{path}.archive"), cpu(), time.perf_counter()
    with open_storage(url) as storage:
        made = archive_stream(storage, "s", archive, Keep(items=KEPT), time.time())
        left, labels = len(storage.exits("s")), storage.counts("s").labels
    size = sum(file.stat().st_size for file in archive.rglob("*") if file.is_file())
    found = {"segments": len(made), "events": made[-1].next_event, "items_kept": left}
    took = {"archive_s": cpu() - begun, "archive_wall_s": time.perf_counter() - wall}
    return {**found, **took, "labels": labels, "archive_mb": size / 2**20, "peak_mb": peak()}


async def serving(url: str) -> dict[str, Any]:
    """What requests wait while a server archives all but the last items, and while it does not."""
    from venire.server import ItemIn
    from venire.server.store import changes as c

    storage, service, _, _ = await started(url, archive=Path(f"{url[10:]}.archive"))
    taken: list[tuple[float, float]] = []
    write = storage.write

    def timed_write(changes: Sequence[Any]) -> None:
        begun, wall = time.thread_time(), time.perf_counter()
        write(changes)
        if any(isinstance(change, c.DropHistory) for change in changes):
            taken.append((time.thread_time() - begun, time.perf_counter() - wall))

    storage.write = timed_write
    found: dict[str, Any] = {}

    async def asked(name: str, stop: asyncio.Future[Any]) -> None:
        waits = list[float]()
        while not stop.done():
            begun = time.perf_counter()
            await service.add_items("s", [ItemIn(f"{name}-{len(waits)}", "text")])
            waits.append(1000 * (time.perf_counter() - begun))
            await asyncio.sleep(0.01)
        middle, last = middle_and_p99(waits)
        found[f"{name}_ms"], found[f"{name}_p99_ms"] = middle, last
        found[f"{name}_most_ms"], found[f"{name}_requests"] = max(waits), len(waits)

    async def dropped(times: int) -> None:
        while not archiving.done() and len(taken) < times:
            await asyncio.sleep(0.1)

    await asked("usual", asyncio.ensure_future(asyncio.sleep(SERVING)))
    await service.change_stream("s", {"retention": {"items": KEPT}}, actor="benchmark")
    archiving = asyncio.ensure_future(service.keep_history("s"))
    await asked("writing", asyncio.ensure_future(dropped(1)))
    await asked("dropping", asyncio.ensure_future(dropped(DROPS)))
    found["drops"] = len(taken)
    for name, place in (("cpu", 0), ("wall", 1)):
        middle, last = middle_and_p99([1000 * pair[place] for pair in taken])
        most = 1000 * max(pair[place] for pair in taken)
        found |= {f"drop_{name}_ms": middle, f"drop_{name}_p99_ms": last,
                  f"drop_{name}_most_ms": most}  # fmt: skip
    return found


def child(*args: str) -> dict[str, Any]:
    """A measurement in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.restart", "--child", *args]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def run_child(what: str, url: str, count: str, payload: str) -> None:
    """Do one measurement, print it, and end at once, as if killed."""
    if what in ("verify", "archive"):
        print(json.dumps({"verify": verified, "archive": archived}[what](url)), flush=True)
        os._exit(0)
    made: Any = {
        "open": lambda: fill_open(url, int(count), int(payload)),
        "labels": lambda: fill_labels(url, int(count)),
        "start": lambda: start(url, work=True),
        "again": lambda: start(url, work=False),
        "serving": lambda: serving(url),
    }[what]
    print(json.dumps(asyncio.run(_kept(made))), flush=True)
    os._exit(0)


async def _kept(made: Callable[[], Awaitable[dict[str, Any]]]) -> dict[str, Any]:
    found = await made()
    print(json.dumps(found), flush=True)
    os._exit(0)


def show(title: str, found: dict[str, Any]) -> None:
    """One line."""
    figures = ", ".join(f"{name} {value:,.2f}" for name, value in found.items())
    print(f"  {title}: {figures}", flush=True)


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    parser.add_argument("--open", default="10000,100000,300000", help="open items, by commas")
    parser.add_argument("--labels", default="1000000,5000000", help="labels of a history")
    parser.add_argument("--payload", default="200", help="characters of each payload")
    parser.add_argument("--serving", action="store_true", help="archive by a server too")
    parser.add_argument("--folder", default=None, help="for the stores; default: a temporary one")
    options = parser.parse_args(argv)
    if options.child:
        run_child(*(*options.child, "0", "0")[:4])
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for kind in ("open", "labels"):
            for count in filter(None, getattr(options, kind).split(",")):
                url = f"sqlite:///{Path(folder)}/{kind}-{count}.db"
                print(f"{int(count):,} {'open items' if kind == 'open' else 'labels'}", flush=True)
                show("filled, then killed" if kind == "open" else "filled",
                     child(kind, url, count, options.payload))  # fmt: skip
                show("started", child("start", url))
                show("started again", child("again", url))
                if kind == "labels" and options.serving:
                    shutil.copy(url[10:], f"{url[10:]}.copy")
                    show("archived by a server", child("serving", f"{url}.copy"))
                if kind == "labels":
                    show("verified", child("verify", url))
                    show("archived", child("archive", url))
                    show("started after that", child("again", url))
                    show("verified after that", child("verify", url))


if __name__ == "__main__":
    main()
