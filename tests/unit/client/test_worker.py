"""The worker, with a server that is made up."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import numpy as np
import pytest

from venire.client import AsyncClient, GaveUp, Nothing, NotNow, ServerError, Work, Worker
from venire.client.worker import Tally


class Server:
    """Gives out items one after another, and keeps what becomes of them."""

    def __init__(self, *items: str, refuses: tuple[str, ...] = ()) -> None:
        self.items, self.refuses = list(items), refuses
        self.labels: dict[str, str] = {}
        self.held_before: list[Work] = []
        self.renewed: list[str] = []
        self.given_back: list[str] = []
        self.barred: list[str] = []

    async def held(self, stream: str, labeler: str | None) -> list[Work]:
        return self.held_before

    async def next(self, stream: str, labeler: str | None, wait: float) -> Work | Nothing:
        if not self.items:
            return Nothing("closed")
        item = self.items.pop(0)
        return Work(item, stream, item, "ann", f"text of {item}", ("spam", "ok"), 60.0)

    async def label(self, token: str, said: str) -> None:
        if token in self.refuses:
            raise ServerError(409, "conflict", "it was answered before")
        self.labels[token] = said

    async def release(self, token: str, bar: bool) -> None:
        self.given_back.append(token)
        if bar:
            self.barred.append(token)

    async def heartbeat(self, token: str) -> None:
        self.renewed.append(token)


def work_through(server: Server, call: Callable[..., Any]) -> Tally:
    async def run() -> Tally:
        return await Worker(cast(AsyncClient, server), "posts", "ann", call).run()

    return asyncio.run(run())


def test_a_refused_label_is_no_reason_to_stop() -> None:
    server = Server("a", "b", refuses=("a",))
    tally = work_through(server, lambda payload: "ok")
    assert (tally.labelled, tally.failed, server.labels) == (1, 1, {"b": "ok"})


@pytest.mark.parametrize("answer", [np.array(["ok", "ok"]), 1, ["ok"], True, float("nan")])
def test_an_answer_that_is_no_text_is_no_label(answer: Any) -> None:
    server = Server("a")
    tally = work_through(server, lambda payload: answer)
    assert (tally.labelled, tally.failed, server.given_back) == (0, 1, ["a"])


def leaves(payload: Any) -> str:
    sys.exit(3)


def stops(payload: Any) -> str:
    raise StopIteration


@pytest.mark.parametrize("call", [leaves, stops])
def test_a_callable_cannot_end_the_worker(call: Callable[..., Any]) -> None:
    server = Server("a", "b")
    assert work_through(server, call).failed == 2
    assert server.given_back == ["a", "b"]


class Judge:
    async def __call__(self, payload: Any) -> str:
        await asyncio.sleep(0)
        return "ok"


async def judge(strictness: int, payload: Any) -> str:
    await asyncio.sleep(0)
    return "ok"


@pytest.mark.parametrize("call", [Judge(), partial(judge, 3), lambda payload: judge(3, payload)])
def test_whatever_can_be_awaited_is(call: Callable[..., Any]) -> None:
    server = Server("a")
    assert work_through(server, call).labelled == 1


def by_name(work: Work) -> str:
    return {"a": "spam"}[work.item]


def by_path(work: venire_client.Work) -> str:  # type: ignore[name-defined] # noqa: F821
    return {"a": "spam"}[work.item]


def test_a_callable_may_ask_for_all_of_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    import venire.client

    monkeypatch.setitem(globals(), "venire_client", venire.client)
    for call in (by_name, by_path):
        assert work_through(server := Server("a"), call).labelled == 1
        assert server.labels == {"a": "spam"}


HANGS = """
import asyncio, threading
from tests.unit.client.test_worker import Server
from venire.client import Worker

begun = threading.Event()

def hangs(payload):
    begun.set()
    threading.Event().wait()

async def run():
    server = Server("a")
    worker = Worker(server, "posts", "ann", hangs, grace=0)
    running = asyncio.ensure_future(worker.run())
    while not begun.is_set():
        await asyncio.sleep(0.01)
    worker.stop()
    await running
    print(server.given_back)

asyncio.run(run())
"""


def test_a_callable_that_never_returns_does_not_keep_the_process() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", HANGS], capture_output=True, text=True, timeout=120, check=False
    )
    assert (ran.stdout, ran.returncode) == ("['a']\n", 0), ran.stderr


def test_who_cannot_answer_now_is_not_barred_and_goes_on() -> None:
    def busy(payload: str) -> str:
        if payload == "text of a":
            raise NotNow("too busy")
        if payload == "text of b":
            raise ValueError("broken")
        return "ok"

    server = Server("a", "b", "c")
    tally = work_through(server, busy)
    assert (server.given_back, server.barred) == (["a", "b"], ["b"])
    assert (tally.labelled, tally.failed, tally.given_back) == (1, 1, 2)


def test_who_gives_up_takes_no_more_work() -> None:
    def spent(payload: str) -> str:
        raise GaveUp("no money")

    server = Server("a", "b", "c")

    async def run() -> Worker:
        worker = Worker(cast(AsyncClient, server), "posts", "ann", spent)
        await worker.run()
        return worker

    worker = asyncio.run(run())
    assert (worker.gave_up, server.given_back, server.barred) == ("no money", ["a"], [])
    assert server.items == ["b", "c"]


class Patient(Server):
    """Makes everyone wait who finds nothing, and counts how many do."""

    waiting = most = asked = 0

    async def next(self, stream: str, labeler: str | None, wait: float) -> Work | Nothing:
        self.waiting += 1
        self.asked += 1
        self.most = max(self.most, self.waiting)
        try:
            if not self.items:
                await asyncio.sleep(wait)
                return Nothing("empty")
            return await super().next(stream, labeler, wait)
        finally:
            self.waiting -= 1


def test_many_at_once_do_not_all_wait_at_the_server() -> None:
    server = Patient(*(f"item {n}" for n in range(300)))

    async def slow(payload: str) -> str:
        await asyncio.sleep(0.01)
        return "ok"

    async def run() -> None:
        client = cast(AsyncClient, server)
        await Worker(client, "posts", "ann", slow, concurrency=200, until_idle=0.3).run()

    asyncio.run(run())
    assert (len(server.labels), server.most <= 8) == (300, True)
    assert server.asked < 400  # they do not each wait for nothing, 8 after 8


def held(*items: str) -> list[Work]:
    return [
        Work(item, "posts", item, "ann", f"text of {item}", ("spam", "ok"), 60.0) for item in items
    ]


def test_what_a_killed_worker_held_is_renewed_and_comes_first() -> None:
    server, said = Server("c"), list[str]()
    server.held_before = held("a", "b")

    def call(payload: str) -> str:
        said.append(payload)
        return "ok"

    assert work_through(server, call).labelled == 3
    assert said == ["text of a", "text of b", "text of c"]
    assert server.renewed == ["a", "b"]


def test_one_of_several_workers_leaves_alone_what_others_hold() -> None:
    server = Server("c")
    server.held_before = held("a", "b")

    async def run() -> Tally:
        client = cast(AsyncClient, server)
        return await Worker(client, "posts", "ann", lambda said: "ok", resume=False).run()

    assert (asyncio.run(run()).labelled, server.labels) == (1, {"c": "ok"})


def test_who_gives_up_releases_what_it_held_before() -> None:
    def spent(payload: str) -> str:
        raise GaveUp("no money")

    server = Server("c")
    server.held_before = held("a", "b")
    work_through(server, spent)
    assert (server.given_back, server.barred, server.items) == (["a", "b"], [], ["c"])
