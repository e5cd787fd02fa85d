"""A load on `venire serve`, on loopback and bounded: sh scripts/load [--only LOAD ...].

Single labels are measured against an endpoint of FastAPI that reads the same body and does
nothing, in rounds that take turns, in the same run. Both servers are processes of their own; the
load comes from this one, over plain sockets, since an HTTP library would be what is measured.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from benchmarks.huge import one_huge
from benchmarks.wires import CONNECTIONS, Target, Wire, expect, p99, spread, stream


async def single_labels(target: Target, rounds: int, size: int) -> None:
    wires, blank = target.wires(), target.wires(empty=True)
    people = 20
    settings = stream("single", people, 10_000, policy=f"fixed-overlap:{people}")
    await expect(wires[0], "POST", "/v1/streams", settings)
    rates: list[tuple[float, float]] = []
    asked: list[float] = []
    labelled: list[float] = []
    for n in range(rounds):
        items = [{"id": f"{n}-{k}", "payload": "text"} for k in range(size // people)]
        await expect(wires[0], "POST", "/v1/streams/single/items", items)
        tokens: list[str] = []

        async def take(wire: Wire, who: int, tokens: list[str] = tokens) -> None:
            got = await expect(wire, "GET", f"/v1/streams/single/next?labeler=m{who}")
            tokens.append(got["token"])

        async def label(wire: Wire, token: str) -> None:
            await expect(wire, "POST", f"/v1/assignments/{token}/label", {"said": "ok"})

        turns = [who for _ in items for who in range(people)]
        nexts, took = await spread(wires, turns, take)
        asked += took
        empty, _ = await spread(blank, tokens, label)
        rate, took = await spread(wires, tokens, label)
        labelled += took
        rates.append((rate, empty))
        print(f"  round {n}: {rate:,.0f} labels/s, empty {empty:,.0f}/s, {nexts:,.0f} next/s")
    rates = rates[1:] or rates
    ratio = statistics.median(rate / empty for rate, empty in rates)
    print(f"single labels: {ratio:.0%} of an empty endpoint's rate (target 40 %)")
    print(f"next: {p99(asked)}; label: {p99(labelled)} at {CONNECTIONS} connections")
    for wire in (*wires, *blank):
        wire.close()


async def bulk_labels(target: Target, items: int, people: int, batch: int) -> None:
    (wire,) = target.wires(1)
    settings = stream("bulk", people, 1, policy=f"fixed-overlap:{people}")
    await expect(wire, "POST", "/v1/streams", settings)
    for start in range(0, items, 5000):
        rows = [{"id": f"i{n}"} for n in range(start, min(items, start + 5000))]
        await expect(wire, "POST", "/v1/streams/bulk/items", rows)
    rows = [
        {"item": f"i{n}", "labeler": f"m{m}", "said": "ok"}
        for m in range(people)
        for n in range(items)
    ]
    batches = [rows[k : k + batch] for k in range(0, len(rows), batch)]

    async def send(wire: Wire, sent: list[dict[str, str]]) -> None:
        answer = await expect(wire, "POST", "/v1/streams/bulk/labels", sent)
        if answer["accepted"] + answer["late"] != len(sent):
            raise RuntimeError(str(answer)[:300])

    await send(wire, batches.pop())
    half, several = len(batches) // 2, target.wires(3)
    alone, _ = await spread([wire], batches[:half], send)
    together, _ = await spread(several, batches[half:], send)
    print(
        f"bulk labels: {batch * together:,.0f} a second over {len(several)} connections, "
        f"{batch * alone:,.0f} over one, in batches of {batch:,} (target 50,000)"
    )
    for used in (wire, *several):
        used.close()


async def long_polls(target: Target, people: int, rounds: int) -> None:
    wires = target.wires(people)
    settings = stream("polls", people, 1, policy="fixed-overlap:1")
    await expect(wires[0], "POST", "/v1/streams", settings)
    (producer,) = target.wires(1)
    took: list[float] = []

    async def wait(wire: Wire, who: int) -> float:
        path = f"/v1/streams/polls/next?labeler=m{who}&wait=30"
        got = await expect(wire, "GET", path)
        arrived = time.perf_counter()
        await expect(wire, "POST", f"/v1/assignments/{got['token']}/label", {"said": "ok"})
        return arrived

    for n in range(rounds):
        waiting = [asyncio.ensure_future(wait(wire, who)) for who, wire in enumerate(wires)]
        await asyncio.sleep(0.5)
        rows = [{"id": f"{n}-{k}"} for k in range(people)]
        start = time.perf_counter()
        await expect(producer, "POST", "/v1/streams/polls/items", rows)
        took += [arrived - start for arrived in await asyncio.gather(*waiting)]
    print(f"long polls: {people} at a time, work reaches them after {p99(took)}")
    for wire in (*wires, producer):
        wire.close()


async def steady(target: Target, seconds: float) -> None:
    """A steady load of everything; what the server's memory does."""
    people = 32
    wires = target.wires(people)
    settings = stream("steady", people, 2, policy="fixed-overlap:3")
    await expect(wires[0], "POST", "/v1/streams", settings)
    (producer,) = target.wires(1)
    end, done, seen = time.monotonic() + seconds, 0, []

    async def labeler(wire: Wire, who: int) -> None:
        nonlocal done
        while time.monotonic() < end:
            status, answer = await wire.ask("GET", f"/v1/streams/steady/next?labeler=m{who}&wait=1")
            if status == 200:
                token = json.loads(answer)["token"]
                await wire.ask("POST", f"/v1/assignments/{token}/label", {"said": "ok"})
                done += 1

    async def produce() -> None:
        n = 0
        while time.monotonic() < end:
            rows = [{"id": f"{n}-{k}", "payload": "text"} for k in range(100)]
            await expect(producer, "POST", "/v1/streams/steady/items", rows)
            n += 1
            seen.append(target.memory())
            await asyncio.sleep(0.5)

    await asyncio.gather(produce(), *(labeler(wire, who) for who, wire in enumerate(wires)))
    tenth = max(1, len(seen) // 10)
    first, last = statistics.mean(seen[tenth : 2 * tenth]), statistics.mean(seen[-tenth:])
    print(
        f"memory: {first:.0f} MB early, {last:.0f} MB late, over {seconds:.0f} s, {done:,} labels"
    )
    for wire in (*wires, producer):
        wire.close()


async def defaults(target: Target, size: int) -> None:
    """`next` and `label` as a stream is by default, before and after a restart."""
    people = 20
    (wire,) = target.wires(1)
    panel = [{"id": f"m{n}", "capacity": 10_000} for n in range(people)]
    settings = {"name": "defaults", "classes": ["spam", "ok"], "panel": panel}
    await expect(wire, "POST", "/v1/streams", settings)
    for start in range(0, 4 * size // people, 5000):
        rows = [{"id": f"d{n}", "weight": 1e6} for n in range(start, start + 5000)]
        await expect(wire, "POST", "/v1/streams/defaults/items", rows[: 4 * size // people - start])
    wire.close()
    for when in ("before", "after"):
        if when == "after":
            target.restart()
        wires, tokens = target.wires(50), list[str]()

        async def take(wire: Wire, who: int, tokens: list[str] = tokens) -> None:
            got = await expect(wire, "GET", f"/v1/streams/defaults/next?labeler=m{who}")
            tokens.append(got["token"])

        async def label(wire: Wire, token: str) -> None:
            await expect(wire, "POST", f"/v1/assignments/{token}/label", {"said": "ok"})

        _, asked = await spread(wires, [n % people for n in range(size)], take)
        _, labelled = await spread(wires, tokens, label)
        print(f"defaults, {when} a restart: next {p99(asked)}; label {p99(labelled)}")
        for wire in wires:
            wire.close()


#: The loads by name, in the order in which all of them are put.
LOADS: dict[str, Callable[[Target, argparse.Namespace], Awaitable[None]]] = {
    "defaults": lambda target, options: defaults(target, options.size),
    "huge": lambda target, options: one_huge(target, options.huge),
    "single": lambda target, options: single_labels(target, options.rounds, options.size),
    "bulk": lambda target, options: bulk_labels(target, options.items, 10, 10_000),
    "polls": lambda target, options: long_polls(target, 200, 3),
    "steady": lambda target, options: steady(target, options.seconds),
}


async def loads(target: Target, options: argparse.Namespace) -> None:
    """One load after the other."""
    await asyncio.sleep(1.5)
    for name in options.only or LOADS:
        await LOADS[name](target, options)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--storage", default="", help="default: a new SQLite file")
    parser.add_argument("--seconds", type=float, default=20, help="of the steady load")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--size", type=int, default=2000, help="labels in a round")
    parser.add_argument("--items", type=int, default=10_000, help="of the bulk load")
    parser.add_argument("--huge", type=int, default=100_000, help="items of the huge stream")
    parser.add_argument("--only", nargs="+", choices=LOADS, help="these loads and no others")
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        storage = options.storage or f"sqlite:///{folder}/load.db"
        target = Target(storage, Path(folder))
        try:
            asyncio.run(loads(target, options))
        finally:
            target.stop()


if __name__ == "__main__":
    main()
