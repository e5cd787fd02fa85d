"""Judges: the cost of a request with 200 in flight, and what soft answers are worth.

python -m benchmarks judges [--requests N] [--seeds N] [--only requests|worker|soft|batch]

Requests: a server in a process of its own answers each after half a second. A plain loop of the
HTTP library and a judge (limits, prompt, schema, reading, cache on disk) take turns; CPU time of
this process only. Worker: the same with `venire serve`, so three requests for each label. Soft: the
five judges of examples/judges on 600 digits, with everything compared in the same run. Batch: the
same within a budget of labels, by `vn.label`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

IN_FLIGHT = 200
#: Seconds that an answer takes: half a second for requests alone, so that much is going on, and as
#: a model takes where a server of venire on the same machine has to keep up.
LATENCY, MODEL_LATENCY = 0.5, 4.0
CLASSES = ["spam", "ok"]
TEXT = "Is this a post that nobody wants to read? " * 8
ANSWER = json.dumps(
    {
        "choices": [{"message": {"content": '{"label": "spam"}'}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 120, "completion_tokens": 5},
    }
).encode()


def serve() -> None:
    """Answer everything after some seconds; how many were in flight at GET."""
    import uvicorn

    latency = float(sys.argv[3])

    now = most = 0

    async def app(scope: Any, receive: Any, send: Any) -> None:
        nonlocal now, most
        while (await receive()).get("more_body"):
            pass
        now += 1
        most = max(most, now)
        body = ANSWER
        if scope["method"] == "GET":
            body, most = str(most).encode(), 0
        else:
            await asyncio.sleep(latency)
        now -= 1
        head = [(b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": head})
        await send({"type": "http.response.body", "body": body})

    uvicorn.run(app, port=int(sys.argv[2]), log_level="error", access_log=False, lifespan="off")


@contextmanager
def server(latency: float) -> Iterator[str]:
    import socket
    import urllib.request

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen([sys.executable, __file__, "serve", str(port), str(latency)])
    url = f"http://127.0.0.1:{port}/v1"
    try:
        while True:
            try:
                urllib.request.urlopen(url, timeout=5).read()
                break
            except OSError:
                time.sleep(0.05)
        yield url
    finally:
        process.terminate()
        process.wait()


async def keep_in_flight(count: int, one: Callable[[int], Awaitable[Any]]) -> None:
    numbers = iter(range(count))

    async def some() -> None:
        for n in numbers:
            await one(n)

    await asyncio.gather(*(some() for _ in range(IN_FLIGHT)))


async def plain(url: str, count: int) -> None:
    import httpx2

    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=None)
    async with httpx2.AsyncClient(limits=limits, timeout=60) as http:

        async def one(n: int) -> None:
            message = {"role": "user", "content": f"{TEXT}{n}"}
            body = {"model": "m", "messages": [message]}
            got = (await http.post(f"{url}/chat/completions", json=body)).json()
            assert json.loads(got["choices"][0]["message"]["content"])["label"] == "spam"

        await keep_in_flight(count, one)


def config(url: str, **more: Any) -> Any:
    from venire.connectors.judges import JudgeConfig

    keys = {"id": "judge", "model": "m", "base_url": url, "prompt": "{{ text }}"}
    return JudgeConfig.read({**keys, "classes": CLASSES, "max_parallel": IN_FLIGHT, **more})


async def judged(url: str, count: int) -> None:
    from venire.connectors.judges import Cache, Judge

    with tempfile.TemporaryDirectory() as folder:
        cache = Cache(Path(folder, "cache"))
        async with Judge(config(url, rpm=1e6, tpm=1e9), cache) as judge:
            await keep_in_flight(count, lambda n: judge.answer({"text": f"{TEXT}{n}"}))
            assert judge.usage.labels == judge.usage.requests == count
        cache.close()


def measured(run: Callable[[str, int], Any], url: str, count: int) -> tuple[float, float]:
    """Milliseconds of CPU a request, and requests a second."""
    cpu, wall = time.process_time(), time.perf_counter()
    asyncio.run(run(url, count))
    return 1000 * (time.process_time() - cpu) / count, count / (time.perf_counter() - wall)


def requests(count: int, rounds: int = 3) -> None:
    import urllib.request

    runs = {"plain httpx2 loop": plain, "judge": judged}
    with server(LATENCY) as url:
        found: dict[str, list[tuple[float, float]]] = {name: [] for name in runs}
        most: dict[str, int] = dict.fromkeys(runs, 0)
        for n in range(rounds + 1):
            for name, run in runs.items():
                result = measured(run, url, count if n else IN_FLIGHT)
                most[name] = int(urllib.request.urlopen(url, timeout=5).read())
                if n:
                    found[name].append(result)
    for name, results in found.items():
        cpu, rate = (statistics.median(column) for column in zip(*results, strict=True))
        tail = f"{rate:5.0f} a second, {most[name]} in flight"
        print(f"{name:20} {cpu:6.2f} ms of CPU a request, {tail}")


async def label_all(url: str, api: str, key: str, count: int) -> dict[str, Any]:
    from venire.client import AsyncClient
    from venire.connectors.crew import hands_of_judges, work_together
    from venire.connectors.judges import Judge

    panel = [{"id": "judge", "capacity": IN_FLIGHT}]
    settings = {"classes": CLASSES, "panel": panel, "policy": "fixed-overlap:1"}
    async with AsyncClient(api, key) as client:
        await client.create_stream("bench", **settings, slot_seconds=3600)
        for start in range(0, count, 1000):
            rows = range(start, min(count, start + 1000))
            items = [{"id": f"i{n}", "payload": {"text": f"{TEXT}{n}"}} for n in rows]
            await client.add_items("bench", items)
    async with Judge(config(url)) as judge:
        cpu, wall = time.process_time(), time.perf_counter()
        hands = hands_of_judges({"judge": judge})
        (report,) = await work_together(
            hands, lambda: AsyncClient(api, key), "bench", until_idle=1.0
        )
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    return {"labelled": report.tally.labelled, "cpu": 1000 * cpu / count, "rate": count / wall}


def worker(count: int) -> None:
    import urllib.request

    from tests.integration.server.harness import serving

    with tempfile.TemporaryDirectory() as folder, server(MODEL_LATENCY) as url:
        store = f"sqlite:///{folder}/venire.db"
        with serving(store, Path(folder)) as process:
            got = asyncio.run(label_all(url, process.url, process.key, count))
        most = int(urllib.request.urlopen(url, timeout=5).read())
    print(
        f"worker on a server: {got['cpu']:.2f} ms of CPU a label (three requests), "
        f"{got['rate']:.0f} a second, {most} in flight, {got['labelled']} labelled"
    )


#: What is asked of a digit.
TASKS: dict[str, Callable[[str], str]] = {
    "which digit": lambda digit: digit,
    "even or odd": lambda digit: "odd" if int(digit) % 2 else "even",
    "below five": lambda digit: "yes" if int(digit) < 5 else "no",
}


def grouped(shares: dict[str, float], task: Callable[[str], str]) -> dict[str, float]:
    found: dict[str, float] = {}
    for digit, share in shares.items():
        found[task(digit)] = found.get(task(digit), 0.0) + share
    return found


def verdicts(said: dict[str, list[dict[str, float]]]) -> dict[str, list[str]]:
    """The verdicts of each method; `said` is what each judge gave each class of each item."""
    import venire as vn
    from venire.connectors.judges import Answer, voices

    count = len(next(iter(said.values())))
    answers = []
    for judge, each in said.items():
        for n, shares in enumerate(each):
            label = max(shares, key=lambda name: shares[name])
            answers.append((str(n), judge, Answer(label, shares[label])))
    rows = [(item, judge, answer.label) for item, judge, answer in answers]
    classes = sorted({label for _, _, label in rows})
    means = [
        max(classes, key=lambda name: sum(each[n].get(name, 0.0) for each in said.values()))
        for n in range(count)
    ]
    found: dict[str, list[str]] = {"mean of the probabilities": means}
    methods: list[Any] = [vn.MajorityVote, vn.OneCoin, vn.DawidSkene, vn.Auto]
    for method in methods:
        for kind, table in {"": rows, ", voices": voices(answers)}.items():
            labels = method().fit(table).labels_
            found[f"{method.__name__}{kind}"] = [labels[str(n)] for n in range(count)]
    return found


def soft(seeds: int) -> None:
    from examples.judges.digits import items
    from examples.judges.models import trained

    for name, task in TASKS.items():
        table: dict[str, list[float]] = {}
        for seed in range(seeds):
            asked, models = items(600, seed), trained(seed)
            drawings = [item["drawing"] for item in asked]
            truth = [task(item["truth"]) for item in asked]
            said = {
                judge: [grouped(shares, task) for shares in model.shares(*drawings)]
                for judge, model in models.items()
            }
            for method, labels in verdicts(said).items():
                right = sum(a == b for a, b in zip(labels, truth, strict=True))
                table.setdefault(method, []).append(100 * right / len(truth))
        print(name)
        for method, right_of in table.items():
            each = " ".join(f"{share:5.1f}" for share in right_of)
            print(f"  {method:28} {statistics.mean(right_of):5.1f} % right   {each}")


def batched(seeds: int) -> None:
    """`vn.label` with the five models at 2 to 5 labels an item: what confidence gains.

    Also if the confidence is noise, which should do nothing.
    """
    import venire as vn
    from examples.judges.digits import items
    from examples.judges.models import trained

    table: dict[tuple[str, float, str], list[float]] = {}
    for seed in range(seeds):
        asked, models = items(600, seed), trained(seed)
        drawings = [item["drawing"] for item in asked]
        given = {judge: model.shares(*drawings) for judge, model in models.items()}
        for name, task in TASKS.items():
            truth = {item["id"]: task(item["truth"]) for item in asked}
            for each in (2.0, 3.0, 4.0, 5.0):
                for kind in ("label", "soft", "noise"):
                    panel = [
                        vn.Caller(judge, _said(kind, shares, task))
                        for judge, shares in given.items()
                    ]
                    numbered = {item["id"]: n for n, item in enumerate(asked)}
                    budget = vn.Budget(labels=round(each * len(asked)))
                    done = vn.label(numbered, panel, budget, truth=truth, seed=seed)
                    table.setdefault((name, each, kind), []).append(100 * (done.accuracy or 0))
    for name in TASKS:
        for each in (2.0, 3.0, 4.0, 5.0):
            hard = table[name, each, "label"]
            print(f"{name:12} {each:.0f} labels an item: {statistics.mean(hard):5.1f} % right")
            for kind in ("soft", "noise"):
                gains = [b - a for a, b in zip(hard, table[name, each, kind], strict=True)]
                each_seed = " ".join(f"{gain:+.1f}" for gain in gains)
                print(f"    {kind:6} {statistics.mean(gains):+.1f}, by seed {each_seed}")


def _said(
    kind: str, shares: list[dict[str, float]], task: Callable[[str], str]
) -> Callable[[int], Any]:
    from venire.batch import Answer

    def answer(n: int) -> Answer:
        found = grouped(shares[n], task)
        label = max(found, key=lambda name: found[name])
        sure = {"soft": found[label], "noise": (n * 0.6180339887) % 1.0}.get(kind)
        return Answer(label, confidence=sure)

    return answer


def main(argv: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=4000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", choices=["requests", "worker", "soft", "batch"])
    options = parser.parse_args(argv)
    if options.only in (None, "requests"):
        requests(options.requests)
    if options.only in (None, "worker"):
        worker(options.requests)
    if options.only in (None, "soft"):
        soft(options.seeds)
    if options.only in (None, "batch"):
        batched(options.seeds)


if __name__ == "__main__" and sys.argv[1:2] == ["serve"]:
    serve()
