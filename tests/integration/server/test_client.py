"""The clients and the worker against `venire serve` in a process of its own."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import itertools
import json
import queue
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.integration.server.harness import STREAM, Process, serving, until
from venire import AsyncClient, Client
from venire.client import Nothing, ServerError, Unreachable, Work, Worker

NAMES = (f"stream-{n}" for n in itertools.count())


SETTINGS = {**STREAM, "policy": "fixed-overlap:2", "slot_seconds": 0.1}


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """As the one that all tests have, but webhooks may go to this machine."""
    folder = tmp_path_factory.mktemp("serve")
    allowed = {"VENIRE_ALLOW_PRIVATE_WEBHOOKS": "true"}
    with serving(f"sqlite:///{folder}/venire.db", folder, **allowed) as served:
        yield served


@pytest.fixture(scope="module", autouse=True)
def _compiled(process: Process) -> None:
    """The first item of a policy may have to wait until it is compiled."""
    with process.client(timeout=200) as client:
        client.create_stream("first", **SETTINGS)
        client.add_items("first", items(1))
        work = client.next("first", "ann", wait=0)
        assert isinstance(work, Work)
        client.label(work.token, "ok")


@pytest.fixture
def stream(process: Process) -> str:
    name = next(NAMES)
    settings = SETTINGS
    with process.client() as client:
        client.create_stream(name, **settings)
        client.create_stream(name, **settings)
    return name


def items(count: int) -> list[dict[str, Any]]:
    return [{"id": f"post-{n}", "payload": {"text": f"text {n}"}} for n in range(count)]


def test_a_day_with_the_client(process: Process, stream: str) -> None:
    with process.client() as client:
        assert client.add_items(stream, items(2))["created"] == 2
        assert client.add_items(stream, items(2))["exists"] == 2
        for labeler in ("ann", "bob"):
            for _ in range(2):
                work = client.next(stream, labeler, wait=0)
                assert isinstance(work, Work)
                client.heartbeat(work.token)
                first = client.label(work.token, "spam")
                assert client.label(work.token, "spam") == first
        follow = client.follow_exits(stream)
        left = [next(follow), next(follow)]
        assert [exit.n for exit in left] == [1, 2]
        assert {exit.verdict for exit in left} == {"spam"}
        nothing = client.next(stream, "ann", wait=0)
        assert nothing == Nothing("empty")
        assert client.item(stream, "post-0")["status"] == "left"
        assert client.explain(stream, "post-0")["item"] == "post-0"
        assert client.insights(stream)["exits"] == 2
        assert {row["id"] for row in client.labelers(stream)} >= {"ann", "bob"}
        assert client.add_labels(stream, [("post-0", "cat", "ok")])["late"] == 1
        assert stream in {row["name"] for row in client.streams()}
        assert client.pause(stream)["status"] == "paused"
        assert client.resume(stream)["status"] == "running"
        assert client.change_stream(stream, max_overlap=4)["version"] >= 2
        assert client.close_stream(stream)["status"] == "closed"


def test_errors_are_raised_with_what_the_server_said(process: Process) -> None:
    with process.client() as client, pytest.raises(ServerError) as caught:
        client.stream("none")
    assert (caught.value.status, caught.value.code) == (404, "not_found")
    with process.client("vk_wrong") as client, pytest.raises(ServerError, match="unknown"):
        client.streams()


def test_a_server_that_is_away_is_tried_again_and_then_given_up() -> None:
    start = time.monotonic()
    client = Client("http://127.0.0.1:9", "vk_x", retry_seconds=0.5)
    with client, pytest.raises(Unreachable, match="cannot be reached"):
        client.streams()
    assert time.monotonic() - start < 30


def test_ids_of_any_kind_are_found_again(process: Process, stream: str) -> None:
    ids = [".", "..", "a/../b", "a/explain", "/a/", "100%", "a b?c=d#e", "\\", "日本"]
    with process.client() as client:
        client.add_items(stream, [{"id": item} for item in ids])
        assert [client.item(stream, item)["id"] for item in ids] == ids
        assert [client.explain(stream, item)["item"] for item in ids] == ids
        assert [client.withdraw(stream, item)["status"] for item in ids] == ["withdrawn"] * len(ids)


def test_keys_and_settings(process: Process, stream: str) -> None:
    with process.client() as client:
        made = client.create_key("a screen", "viewer")
        listed = client.keys()
        assert made["key"]["id"] in {key["id"] for key in listed}
        assert client.revoke_key(made["key"]["id"])["revoked_at"] is not None
        client.change_stream(stream, max_overlap=4)
        history = client.settings_history(stream)
        assert [version["settings"]["max_overlap"] for version in history] == [None, 4]


def test_what_is_deleted_is_gone_and_who_did_it_stays(process: Process, stream: str) -> None:
    with process.client() as client:
        listed = client.keys()
        (me,) = [key for key in listed if key["name"] == "first admin"]
        client.add_items(stream, [{"id": "a/b", "payload": "private"}, {"id": "c", "payload": "x"}])
        assert client.erase_payload(stream, "a/b") == {"stream": stream, "item": "a/b", "bytes": 9}
        assert client.item(stream, "a/b")["payload"] is None
        assert client.item(stream, "c")["payload"] == "x"
        with pytest.raises(ServerError, match="close it before"):
            client.delete_stream(stream)
        client.close_stream(stream)
        assert client.delete_stream(stream)["items"] == 2
        with pytest.raises(ServerError, match="not_found"):
            client.stream(stream)
        lines = client.audit(stream=stream)
        told = [(line["action"], line["subject"]) for line in lines]
        assert told == [
            ("stream.create", None),
            ("items.add", None),
            ("item.erase", "a/b"),
            ("stream.close", None),
            ("stream.delete", None),
        ]
        assert {line["key"] for line in lines} == {me["id"]}
        assert client.audit(after=lines[3]["n"], limit=1, stream=stream) == lines[4:]


class Receiver(BaseHTTPRequestHandler):
    """Keeps what is sent to it."""

    got: queue.SimpleQueue[tuple[dict[str, str], bytes]] = queue.SimpleQueue()

    def do_POST(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.got.put((headers, self.rfile.read(int(headers["content-length"]))))
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *values: object) -> None:
        pass


def signed(secret: str, headers: dict[str, str], body: bytes) -> bool:
    """As the Standard Webhooks convention has it, written from its text."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    content = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    mac = base64.b64encode(hmac.new(key, content, hashlib.sha256).digest()).decode()
    return f"v1,{mac}" in headers["webhook-signature"].split(" ")


def test_webhooks_are_signed_and_looked_after(process: Process, stream: str) -> None:
    receiver = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=receiver.serve_forever, daemon=True).start()
    with receiver, process.client() as client:
        hook = client.add_webhook(stream, f"http://127.0.0.1:{receiver.server_port}/exits")
        assert [row["id"] for row in client.webhooks(stream)] == [hook["id"]]
        assert client.ping_webhook(stream, hook["id"]) == 200
        client.add_items(stream, items(1))
        client.add_labels(stream, [("post-0", who, "ok") for who in ("ann", "bob")])
        for kind in ("ping", "item.exit"):
            headers, body = Receiver.got.get(timeout=120)
            assert signed(hook["secret"], headers, body)
            assert not signed(hook["secret"], headers, body + b" ")
            assert json.loads(body)["type"] == kind
        assert json.loads(body)["data"]["verdict"] == "ok"
        assert client.dead_letters(stream, hook["id"]) == []
        assert client.redeliver(stream, hook["id"]) == 0
        rotated = client.rotate_webhook(stream, hook["id"], keep_seconds=60)
        assert client.ping_webhook(stream, hook["id"]) == 200
        headers, body = Receiver.got.get(timeout=120)
        assert rotated["secret"] != hook["secret"]
        assert all(signed(made["secret"], headers, body) for made in (hook, rotated))
        told = process.metrics()
        names = f'{{stream="{stream}",webhook="{hook["id"]}"}}'
        assert told[f"venire_webhook_delivered_total{names}"] == 1
        assert told[f"venire_webhook_pending{names}"] == told[f"venire_webhook_dead{names}"] == 0
        receiver.shutdown()
    with process.client() as client:
        with pytest.raises(ServerError, match="no_answer"):  # at once: it is no fault of ours
            client.ping_webhook(stream, hook["id"])
        client.remove_webhook(stream, hook["id"])
        assert client.webhooks(stream) == []


def test_long_polls_end_when_work_comes(process: Process, stream: str) -> None:
    found: list[Work | Nothing] = []

    def ask() -> None:
        with process.client() as client:
            found.append(client.next(stream, "ann", wait=60))

    until(lambda: process.waiting() == 0)
    asking = threading.Thread(target=ask)
    asking.start()
    until(lambda: process.waiting() == 1)
    start = time.monotonic()
    with process.client() as client:
        client.add_items(stream, items(1))
    asking.join(280)
    assert isinstance(found[0], Work)
    assert time.monotonic() - start < 50


def test_one_that_hung_up_is_given_nothing(process: Process, stream: str) -> None:
    async def hang_up() -> None:
        async with AsyncClient(process.url, process.key) as client:
            asking = asyncio.ensure_future(client.next(stream, "ann", wait=60))
            await asyncio.to_thread(until, lambda: process.waiting() == 1)
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)

    until(lambda: process.waiting() == 0)
    asyncio.run(hang_up())
    until(lambda: process.waiting() == 0, seconds=30)  # or it would be let go for its own time
    with process.client() as client:
        client.add_items(stream, items(1))
        assert client.insights(stream)["leased_items"] == 0
        assert isinstance(client.next(stream, "bob", wait=0), Work)


def test_events_are_followed_from_where_one_left_off(process: Process, stream: str) -> None:
    http = pytest.importorskip("httpx2")
    headers = {"authorization": f"Bearer {process.key}"}
    url = f"{process.url}/v1/streams/{stream}/events"

    def read(count: int, **more: Any) -> list[Any]:
        seen = []
        with http.Client(timeout=60) as client, client.sse(url, **more) as events:
            for entry in events:
                seen.append(entry)
                if len(seen) == count:
                    return seen
        return seen

    with process.client() as client:
        for n in range(3):
            client.add_items(stream, [{"id": f"event-{n}"}])
    first = read(2, headers=headers, params={"after": 0})
    rest = read(1, headers={**headers, "last-event-id": first[-1].id})
    assert [entry.event for entry in first + rest] == ["arrived"] * 3
    numbers = [int(entry.id) for entry in first + rest]
    assert numbers == sorted(set(numbers))


def test_who_follows_by_a_key_that_is_revoked_sees_no_more(process: Process, stream: str) -> None:
    http = pytest.importorskip("httpx2")
    url = f"{process.url}/v1/streams/{stream}/events"
    with process.client() as client, http.Client(timeout=60) as viewer:
        made = client.create_key("a screen", "viewer")
        headers = {"authorization": f"Bearer {made['token']}"}
        client.add_items(stream, [{"id": "seen"}])
        with viewer.sse(url, headers=headers, params={"after": 0}) as events:
            entries = iter(events)
            seen = [next(entries)]
            client.revoke_key(made["key"]["id"])
            client.add_items(stream, [{"id": "unseen"}])
            seen += itertools.islice(entries, 1)
    assert [entry.event for entry in seen] == ["arrived"]


def work_through(
    process: Process, stream: str, call: Callable[..., Any], labeler: str = "ann", **more: Any
) -> Any:
    async def run() -> Any:
        async with AsyncClient(process.url, process.key) as client:
            worker = Worker(client, stream, labeler, call, until_idle=0.5, **more)
            return await worker.run()

    return asyncio.run(run())


def test_a_worker_labels_what_there_is(process: Process, stream: str) -> None:
    with process.client() as client:
        client.add_items(stream, items(10))
        first = work_through(process, stream, lambda payload: "ok", concurrency=2)

        async def slowly(payload: Any) -> str:
            await asyncio.sleep(0.01)
            return "ok"

        second = work_through(process, stream, slowly, "bob")
        assert (first.labelled, second.labelled) == (10, 10)
        until(lambda: bool(client.insights(stream)["exits"] == 10))
        assert {exit.verdict for exit in client.exits(stream)} == {"ok"}


def test_a_worker_goes_on_with_what_a_killed_one_held(process: Process, stream: str) -> None:
    with process.client() as client:
        client.add_items(stream, items(6))
        lost = client.next(stream, "ann", wait=0)
        while isinstance(more := client.next(stream, "ann", wait=0), Work):
            pass
        assert more.reason == "over_capacity"
        assert work_through(process, stream, lambda payload: "ok").labelled == 6
        assert isinstance(lost, Work)
        client.label(lost.token, "ok")  # the killed one was alive after all: it counts once
        assert client.insights(stream)["labels"] == 6


def test_a_failure_is_not_a_label(process: Process, stream: str) -> None:
    def fails(work: Work) -> str | None:
        if work.item == "post-0":
            raise ValueError("no idea")
        return {"post-1": "nonsense", "post-2": None}.get(work.item, "ok")

    with process.client() as client:
        client.add_items(stream, items(4))
        tally = work_through(process, stream, fails)
        assert (tally.labelled, tally.failed, tally.given_back) == (1, 2, 3)
        assert client.insights(stream)["labels"] == 1
        assert client.insights(stream)["leased_items"] == 0
        assert work_through(process, stream, lambda payload: "ok", "bob").labelled == 4


def test_a_worker_that_is_stopped_gives_back_what_it_holds(process: Process, stream: str) -> None:
    async def run() -> Any:
        begun = asyncio.Event()

        async def forever(payload: Any) -> str:
            begun.set()
            await asyncio.sleep(3600)
            return "ok"

        async with AsyncClient(process.url, process.key) as client:
            worker = Worker(client, stream, "ann", forever, grace=0.1)
            running = asyncio.ensure_future(worker.run())
            await asyncio.wait_for(begun.wait(), 280)
            worker.stop()
            return await asyncio.wait_for(running, 280)

    with process.client() as client:
        client.add_items(stream, items(1))
        assert asyncio.run(run()).given_back == 1
        assert client.insights(stream)["leased_items"] == 0
        assert isinstance(client.next(stream, "ann", wait=0), Work)


def test_a_heartbeat_keeps_the_assignment(process: Process) -> None:
    """On a machine that stands still for seconds a lease may expire: then with a longer one."""
    for lease in (2.0, 8.0, 32.0):
        if _expired(process, lease) == 0:
            return
    pytest.fail("even a lease of 32 s is not renewed")


def _expired(process: Process, lease: float) -> int:
    """How many leases expire while an answer takes longer than its lease."""
    name = next(NAMES)
    with process.client() as client:
        leases = {"lease_floor_seconds": lease, "lease_ceiling_seconds": lease}
        client.create_stream(name, **{**STREAM, **leases, "policy": "fixed-overlap:2"})
        client.add_items(name, items(1))

        def slow(payload: Any) -> str:
            time.sleep(1.25 * lease)
            return "ok"

        assert work_through(process, name, slow).labelled == 1
        (row,) = [row for row in client.labelers(name) if row["id"] == "ann"]
        return int(row["expired"])


def test_revisions_are_followed(process: Process) -> None:
    name = next(NAMES)
    panel = [{"id": who} for who in ("ann", "bob", "cec", "odd")]
    told = {"policy": "fixed-overlap:1", "learning": "algorithm-2:1", "slot_seconds": 2.0}
    with process.client(timeout=200) as client:
        client.create_stream(name, classes=["spam", "ok"], panel=panel, revisions=50, **told)
        client.add_items(name, items(20))
        ids = [item["id"] for item in items(20)]
        labels = [(ids[0], "odd", "ok"), (ids[0], "ann", "spam")]
        for k, item in enumerate(ids[1:]):
            truth, other = ("spam", "ok") if k % 2 else ("ok", "spam")
            labels += [(item, who, truth) for who in ("ann", "bob", "cec")]
            labels.append((item, "odd", other))
        client.add_labels(name, labels)
        revision = next(client.follow_revisions(name))
        assert (revision.item, revision.before, revision.verdict) == (ids[0], "ok", "spam")
        assert client.revisions(name, after=1) == []
        item = client.item(name, ids[0])
        assert (item["verdict"], item["exit"]["verdict"]) == ("spam", "ok")
        assert item["revisions"][0]["n"] == 1

    async def follow() -> str:
        async with AsyncClient(process.url, process.key) as other:
            async for revised in other.follow_revisions(name):
                return revised.item
        raise AssertionError("there is a revision")

    assert asyncio.run(follow()) == ids[0]
