"""Webhooks: signed, retried, dead-lettered, never into the private network."""

import asyncio
import base64
import contextlib
import hashlib
import hmac
import itertools
import json
import logging
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from email.utils import formatdate
from ssl import PROTOCOL_TLS_SERVER, SSLContext
from typing import Any

import httpcore2
import pytest
import trustme

from tests.unit.server.support import Bench, bench, running, until
from venire.errors import FetchError, InputError, NotFound
from venire.server import ServiceSettings
from venire.server.store import DeliveryRow, UpdateDelivery
from venire.tools.untrusted import check_url, is_public, resolve

LOCAL = ServiceSettings(allow_private_webhooks=True)


@pytest.fixture(autouse=True)
def _only_when_told_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is sent beside the tests: what is under way already would be waited for by nobody."""
    monkeypatch.setattr("venire.server.webhooks.deliveries.POLL_SECONDS", 3600.0)


class Receiver:
    """A tiny HTTP server that notes what it is sent and answers as it is told."""

    def __init__(self) -> None:
        self.got: list[tuple[dict[str, str], bytes]] = []
        self.answers: list[int] = []
        self.url, self.where, self.wait = "", "http://127.0.0.1:1/", ""

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError):  # a sender that was stopped
            await self.answer(reader, writer)
        writer.close()

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        fields = dict(line.split(": ", 1) for line in head[1:] if line)
        headers = {name.lower(): value for name, value in fields.items()}
        body = await reader.readexactly(int(headers["content-length"]))
        self.got.append((headers, body))
        status = self.answers.pop(0) if self.answers else 204
        where = f"Location: {self.where}\r\n" if status == 302 else ""
        where += f"Retry-After: {self.wait}\r\n" if self.wait else ""
        writer.write(f"HTTP/1.1 {status} x\r\n{where}Content-Length: 0\r\n\r\n".encode())
        await writer.drain()


@asynccontextmanager
async def receiver(
    name: str = "127.0.0.1", tls: SSLContext | None = None
) -> AsyncIterator[Receiver]:
    made = Receiver()
    server = await asyncio.start_server(made.handle, "127.0.0.1", 0, ssl=tls)
    port = server.sockets[0].getsockname()[1]
    made.url = f"{'http' if tls is None else 'https'}://{name}:{port}/hook?x=1"
    async with server:
        yield made


async def one_exit(b: Bench, item: str) -> None:
    await b.add(item)
    await b.service.add_labels("posts", [(item, "ann", "spam")])
    await b.pass_time(10)


async def send(b: Bench) -> None:
    await asyncio.gather(*await b.service.webhooks.deliveries.send_due())


def signed(secret: str, headers: dict[str, str], body: bytes) -> bool:
    key = base64.b64decode(secret.removeprefix("whsec_"))
    text = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    want = base64.b64encode(hmac.new(key, text, hashlib.sha256).digest()).decode()
    return f"v1,{want}" in headers["webhook-signature"].split(" ")


@running
async def test_an_exit_is_sent_signed_once() -> None:
    async with receiver() as r, bench(server=LOCAL, policy="fixed-overlap:1") as b:
        hook = await b.service.webhooks.add("posts", r.url)
        assert hook.secret is not None
        assert (await b.service.webhooks.list("posts"))[0].secret is None
        await one_exit(b, "p1")
        await send(b)
        await send(b)
        [(headers, body)] = r.got
        assert signed(hook.secret, headers, body)
        sent = json.loads(body)
        assert sent["type"] == "item.exit"
        assert (sent["data"]["item"], sent["data"]["verdict"]) == ("p1", "spam")
        assert headers["host"] == r.url.split("/")[2]
        assert headers["user-agent"] == "venire"
        [row] = b.storage.deliveries(hook.id)
        assert row.status == "done"


@running
async def test_an_alarm_is_sent_when_it_is_raised_and_when_it_is_cleared() -> None:
    async with receiver() as r, bench(server=LOCAL, alarms={"queue": 0}) as b:
        hook = await b.service.webhooks.add("posts", r.url)
        await b.add("p1")
        await b.service.check_alarms("posts")
        await b.service.change_stream("posts", {"alarms": {"queue": 5}}, "me")
        for _ in range(3):
            await b.service.check_alarms("posts")
        await send(b)
        told = sorted((json.loads(body) for _, body in r.got), key=lambda sent: sent["data"]["n"])
        assert [sent["type"] for sent in told] == ["alarm.raised", "alarm.cleared"]
        data = told[0]["data"]
        assert (data["rule"], data["value"], data["threshold"]) == ("queue", 1.0, 0.0)
        assert "1 items are open" in data["message"]
        assert len({headers["webhook-id"] for headers, _ in r.got}) == 2
        assert {row.kind for row in b.storage.deliveries(hook.id)} == {"alarm"}


@running
async def test_people_are_told_of_alarms_in_a_sentence_and_not_of_every_exit() -> None:
    async with (
        receiver() as r,
        bench(server=LOCAL, policy="fixed-overlap:1", alarms={"queue": 0}) as b,
    ):
        made = await b.service.webhooks.add("posts", f"{r.url}#x", format="text")
        [kept] = await b.service.webhooks.list("posts")
        assert (kept.format, kept.url, made.url) == ("text", r.url, r.url)
        await b.service.webhooks.ping("posts", made.id)
        await b.add("p0")
        await b.service.check_alarms("posts")
        await one_exit(b, "p1")
        await send(b)
        told = [json.loads(body) for _, body in r.got]
        assert told == [
            {"text": "posts: this is a test of the webhook, and it works"},
            {"text": "posts: alarm queue: 1 items are open, more than 0"},
        ]
        assert {row.status for row in b.storage.deliveries(made.id)} == {"done"}


@running
async def test_a_failure_is_retried_later_and_a_redirect_is_a_failure() -> None:
    async with receiver() as r, bench(server=LOCAL, policy="fixed-overlap:1") as b:
        hook = await b.service.webhooks.add("posts", r.url)
        r.answers = [500, 302, 200]
        await one_exit(b, "p1")
        for _ in range(3):
            await send(b)
            await send(b)  # not before its time
            b.clock.advance(60)
        assert len(r.got) == 3
        assert len({headers["webhook-id"] for headers, _ in r.got}) == 1
        assert [row.status for row in b.storage.deliveries(hook.id)] == ["done"]


@running
async def test_what_fails_too_often_is_dead_and_can_be_sent_again() -> None:
    few = LOCAL.model_copy(update={"webhook_min_attempts": 5, "webhook_retry_seconds": 10.0})
    async with receiver() as r, bench(server=few, policy="fixed-overlap:1") as b:
        hook = await b.service.webhooks.add("posts", r.url)
        r.answers = [500] * 5
        await one_exit(b, "p1")
        for _ in range(8):
            await send(b)
            b.clock.advance(3600)
        assert len(r.got) == 5
        [dead] = await b.service.webhooks.dead("posts", hook.id)
        assert (dead.exit_n, dead.attempt, dead.last_error) == (1, 5, "HTTP status 500")
        with pytest.raises(NotFound):
            await b.service.webhooks.redeliver("posts", hook.id, 9)
        assert await b.service.webhooks.redeliver("posts", hook.id) == 1
        await send(b)
        assert len(r.got) == 6
        assert await b.service.webhooks.dead("posts", hook.id) == []


@running
async def test_what_was_pending_is_sent_after_a_restart() -> None:
    async with receiver() as r:
        async with bench(server=LOCAL, policy="fixed-overlap:1") as b:
            hook = await b.service.webhooks.add("posts", r.url)
            await one_exit(b, "p1")
        b.clock.jump(-3600)
        async with bench(b.storage, b.clock, LOCAL) as again:
            await send(again)  # unless it is under way since the start
            await until(lambda: [x.status for x in again.storage.deliveries(hook.id)] == ["done"])
            assert len({headers["webhook-id"] for headers, _ in r.got}) == 1


@running
async def test_five_hundreds_are_retried_for_days() -> None:
    """After four minutes all of it used to be dead."""
    async with receiver() as r, bench(server=LOCAL, policy="fixed-overlap:1") as b:
        hook = await b.service.webhooks.add("posts", r.url)
        r.answers = [500] * 1000
        await one_exit(b, "p1")
        begun, gaps, before = b.clock.monotonic(), [], 0
        while b.clock.monotonic() - begun < 2.9 * 86_400:
            await send(b)
            if len(r.got) > before:
                gaps.append(b.clock.monotonic())
                before = len(r.got)
            b.clock.advance(30)
        assert [row.status for row in b.storage.deliveries(hook.id)] == ["pending"]
        late = [after - at for at, after in itertools.pairwise(gaps)][12:]
        assert 1800 <= min(late) < 0.8 * max(late) <= 3700, "there is no jitter, or no bound"
        for _ in range(60):
            b.clock.advance(3600)
            await send(b)
        [row] = b.storage.deliveries(hook.id)
        assert row.status == "dead"
        assert len(r.got) < 150


@running
async def test_a_server_that_was_off_for_a_week_gives_nothing_up_at_its_first_attempts() -> None:
    async with receiver() as r:
        r.answers = [500] * 7
        async with bench(server=LOCAL, policy="fixed-overlap:1") as b:
            hook = await b.service.webhooks.add("posts", r.url)
            await one_exit(b, "p1")
            await send(b)
        b.clock.advance(7 * 86_400)
        async with bench(b.storage, b.clock, LOCAL) as again:
            while b.storage.deliveries(hook.id)[0].status == "pending":
                await send(again)
                again.clock.advance(3600)
                await asyncio.sleep(0.01)  # the first may be under way since the start
        assert [row.status for row in b.storage.deliveries(hook.id)] == ["done"]


@pytest.mark.parametrize("date", [False, True])
@running
async def test_retry_after_is_honoured_also_after_a_restart(date: bool) -> None:
    async with receiver() as r:
        async with bench(server=LOCAL, policy="fixed-overlap:1") as b:
            hook = await b.service.webhooks.add("posts", r.url)
            r.answers = [503]
            for n in (1, 2, 3):
                await one_exit(b, f"p{n}")
            at = formatdate(b.clock.wall() + 7200, usegmt=True)
            r.wait = at if date else "7200"
            pauses = b.service.webhooks.deliveries._pauses
            pauses[hook.id] = 1, 0.0  # so it is tried with one message
            await send(b)
            assert len(r.got) == 1
            for _ in range(11):
                b.clock.advance(600)
                await send(b)
            assert len(r.got) == 1, "it was not left alone"
            first = r.got[0][0]["webhook-id"]
        r.wait = ""
        async with bench(b.storage, b.clock, LOCAL) as again:

            def done() -> int:
                return sum(row.status == "done" for row in again.storage.deliveries(hook.id))

            await send(again)  # unless it is under way since the start
            await until(lambda: done() == 2)
            assert first not in [headers["webhook-id"] for headers, _ in r.got[1:]]
            again.clock.advance(700)
            await send(again)
            assert done() == 3


@running
async def test_failures_and_dead_letters_are_logged_and_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    few = LOCAL.model_copy(update={"webhook_min_attempts": 3, "webhook_retry_seconds": 10.0})
    caplog.set_level(logging.INFO, "venire.service")
    async with receiver() as r, bench(server=few, policy="fixed-overlap:1") as b:
        hook = await b.service.webhooks.add("posts", r.url)
        r.answers = [500, 500, 500]
        await one_exit(b, "p1")
        for _ in range(3):
            await send(b)
            b.clock.advance(3600)
        [tally] = await b.service.webhooks.tallies()
        assert (tally.failed, tally.given_up, tally.dead, tally.pending) == (3, 1, 1, 0)
        assert (tally.failing, tally.delivered) == (3, 0)
        await b.service.webhooks.redeliver("posts", hook.id)
        [tally] = await b.service.webhooks.tallies()
        assert (tally.dead, tally.pending) == (0, 1)
        await send(b)
        [tally] = await b.service.webhooks.tallies()
        assert (tally.failing, tally.delivered) == (0, 1)
        said = [(record.levelname, record.getMessage()) for record in caplog.records]
        assert said == [
            (
                "WARNING",
                f"webhook {hook.id} of stream 'posts' fails: HTTP status 500 "
                "(attempt 1 for exit 1)",
            ),
            (
                "ERROR",
                f"webhook {hook.id} of stream 'posts': exit 1 is dead-lettered after 3 "
                "attempts: HTTP status 500; redeliver sends it again",
            ),
            (
                "INFO",
                f"webhook {hook.id} of stream 'posts' recovered after 3 failures in 10800 s",
            ),
        ]
        await b.service.webhooks.remove("posts", hook.id)
        assert await b.service.webhooks.tallies() == []


@running
async def test_a_secret_is_rotated_and_the_old_one_counts_for_a_while() -> None:
    async with receiver() as r, bench(server=LOCAL, policy="fixed-overlap:1") as b:
        webhooks = b.service.webhooks
        hook = await webhooks.add("posts", r.url)
        new = await webhooks.rotate("posts", hook.id, keep_seconds=100.0)
        assert hook.secret is not None
        assert new.secret is not None
        assert new.secret != hook.secret
        assert new.old_secret_until == b.clock.wall() + 100
        await one_exit(b, "p1")
        await send(b)
        headers, body = r.got[0]
        assert len(headers["webhook-signature"].split(" ")) == 2
        assert signed(hook.secret, headers, body)
        assert signed(new.secret, headers, body)
        b.clock.advance(100)
        await one_exit(b, "p2")
        await send(b)
        headers, body = r.got[1]
        assert not signed(hook.secret, headers, body)
        assert signed(new.secret, headers, body)
        [listed] = await webhooks.list("posts")
        assert listed.secret is None


@running
async def test_what_waits_in_the_queue_is_signed_with_the_secret_of_now() -> None:
    async with receiver() as r, bench(server=LOCAL, policy="fixed-overlap:1") as b:
        webhooks = b.service.webhooks
        hook = await webhooks.add("posts", r.url)
        for n in range(9):
            await one_exit(b, f"p{n}")
        tasks = await webhooks.deliveries.send_due()  # all are in the queue, none is sent yet
        new = await webhooks.rotate("posts", hook.id, keep_seconds=0.0)
        sent = len(r.got)
        await asyncio.gather(*tasks)
        assert new.secret
        assert all(signed(new.secret, *got) for got in r.got[sent + 4 :])


@asynccontextmanager
async def black_hole() -> AsyncIterator[str]:
    """The URL of a server that takes everything and never answers."""

    async def swallow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.read(65536):
            pass
        writer.close()

    server = await asyncio.start_server(swallow, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"


@running
async def test_a_webhook_that_never_answers_holds_up_no_other() -> None:
    count = 300
    patient = LOCAL.model_copy(update={"webhook_timeout_seconds": 600.0})
    async with (
        receiver() as r,
        black_hole() as hole,
        bench(server=patient, policy="fixed-overlap:1") as b,
    ):
        dead = await b.service.webhooks.add("posts", hole)
        hook = await b.service.webhooks.add("posts", r.url)
        names = [f"p{n}" for n in range(count)]
        await b.add(*names)
        await b.service.add_labels("posts", [(name, "ann", "spam") for name in names])
        await b.pass_time(10)
        assert len(b.storage.deliveries(dead.id)) == count
        while any(row.status != "done" for row in b.storage.deliveries(hook.id)):
            await b.service.webhooks.deliveries.send_due()  # the other stays pending
            await asyncio.sleep(0.05)
        told = [json.loads(body) for _, body in r.got]
        sent = [one["data"]["n"] for one in told if one["type"] == "item.exit"]  # and no alarm
        assert len(sent) == len(set(sent)) == count


@running
async def test_a_silent_webhook_rests_and_is_then_tried_with_one_message() -> None:
    quick = LOCAL.model_copy(update={"webhook_timeout_seconds": 0.1})
    async with black_hole() as hole, bench(server=quick, policy="fixed-overlap:1") as b:
        hook = await b.service.webhooks.add("posts", hole)
        for n in range(9):
            await one_exit(b, f"p{n}")

        def tried() -> int:
            return sum(row.attempt for row in b.storage.deliveries(hook.id))

        await send(b)
        first = tried()
        assert 1 <= first <= 4
        await send(b)
        assert tried() == first
        b.clock.advance(60)
        await send(b)
        assert tried() == first + 1
        errors = {row.last_error for row in b.storage.deliveries(hook.id) if row.attempt}
        assert errors == {"no answer within 0.1 s"}
        with pytest.raises(FetchError, match=r"^no answer within 0.1 s$"):
            await b.service.webhooks.ping("posts", hook.id)


@running
async def test_ping_and_remove() -> None:
    async with receiver() as r, bench(server=LOCAL) as b:
        hook = await b.service.webhooks.add("posts", r.url)
        r.answers = [418]
        assert await b.service.webhooks.ping("posts", hook.id) == 418
        assert json.loads(r.got[0][1])["type"] == "ping"
        await b.service.webhooks.remove("posts", hook.id)
        assert await b.service.webhooks.list("posts") == []
        with pytest.raises(NotFound):
            await b.service.webhooks.ping("posts", hook.id)
        gone = await b.service.webhooks.add("posts", "http://127.0.0.1:1/")
        with pytest.raises(FetchError):
            await b.service.webhooks.ping("posts", gone.id)


@running
async def test_of_a_webhook_that_was_removed_nothing_is_kept() -> None:
    async with receiver() as r, bench(server=LOCAL, policy="fixed-overlap:1") as b:
        webhooks = b.service.webhooks
        hooks = [await webhooks.add("posts", r.url) for _ in range(2)]
        await one_exit(b, "p1")
        await send(b)
        await webhooks.remove("posts", hooks[0].id)
        await send(b)
        assert set(webhooks.deliveries._queues) == {hooks[1].id}
        async with asyncio.timeout(200):
            while webhooks.deliveries._senders:
                await asyncio.sleep(0.01)


@running
async def test_what_another_server_has_sent_meanwhile_is_not_sent_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with receiver() as r, bench(server=LOCAL, policy="fixed-overlap:1") as b:
        runtime, deliveries = b.service.runtime, b.service.webhooks.deliveries
        hook = await b.service.webhooks.add("posts", r.url)
        for n in range(9):
            await one_exit(b, f"p{n}")
        tasks = await deliveries.send_due()
        with monkeypatch.context() as elsewhere:
            elsewhere.setattr(runtime.sharing, "holds", lambda name: False)
            elsewhere.setattr(runtime, "streams", {})
            await asyncio.gather(*tasks)
            assert await deliveries.send_due() == []
            sent = [row._replace(status="done") for row in b.storage.deliveries(hook.id)]
            b.storage.write([UpdateDelivery(row) for row in sent])
        await send(b)  # the stream has come back
        assert r.got == []


@running
async def test_a_webhook_may_be_removed_while_it_is_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("venire.server.webhooks.deliveries.POLL_SECONDS", 3600.0)  # no polls
    async with receiver() as r, bench(server=LOCAL, policy="fixed-overlap:1") as b:
        hook = await b.service.webhooks.add("posts", r.url)
        await one_exit(b, "p1")
        pending = b.storage.pending_deliveries

        def slow(*args: Any) -> list[DeliveryRow]:
            asyncio.run_coroutine_threadsafe(
                b.service.webhooks.remove("posts", hook.id), loop
            ).result()
            return pending(*args)

        loop = asyncio.get_running_loop()
        monkeypatch.setattr(b.storage, "pending_deliveries", slow)
        assert await b.service.webhooks.deliveries.send_due() == []
        assert r.got == []


@running
async def test_private_targets_are_refused() -> None:
    async with bench() as b:
        for url in ("http://127.0.0.1/", "http://localhost:8400/", "http://[::1]/", "http://0/"):
            with pytest.raises(InputError, match="not a public address"):
                await b.service.webhooks.add("posts", url)


@running
async def test_a_name_is_looked_up_once_and_its_address_is_used() -> None:
    target = await resolve("http://localhost:81/a?b", allow_private=True)
    assert target.url in ("http://127.0.0.1:81/a?b", "http://[::1]:81/a?b")
    assert target.name == "localhost:81"


@pytest.mark.parametrize(
    "address",
    ["192.168.1.1", "172.16.0.1", "100.64.0.1", "0.0.0.0", "224.0.0.1", "fe80::1", "fc00::1",
     "255.255.255.255", "::", "::ffff:10.0.0.1", "fe80::1%eth0", "::7f00:1", "::10.0.0.1",
     "fec0::1", "64:ff9b::10.0.0.1", "64:ff9b:1::10.0.0.1", "::ffff:0:10.0.0.1", "5f00::1",
     "3fff::1", "4000::1", "100:0:0:1::1", "2001:db8::1", "2001:20::1", "2001:0:4136:e378::1",
     "2002:a00:1::1", "2606:4700::5efe:10.0.0.1", "2606:4700::200:5efe:10.0.0.1", "ff0e::1",
     "192.88.99.1", "192.0.0.8", "198.18.0.1", "240.0.0.1"],
)  # fmt: skip
def test_addresses_that_are_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize(
    "address",
    ["8.8.8.8", "2606:4700:4700::1111", "2a00:1450:4001:830::200e", "::ffff:8.8.8.8",
     "64:ff9b::8.8.8.8", "2002:808:808::1", "2606:4700::5efe:8.8.8.8"],
)  # fmt: skip
def test_addresses_that_are_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "url",
    ["ftp://example.org", "https://", "example.org", "http://a b/", "http://u:p@example.org/",
     "http://example.org:99999/", "file:///etc/passwd", "http://ex\n.org/"],
)  # fmt: skip
def test_addresses_that_cannot_be(url: str) -> None:
    with pytest.raises(InputError):
        check_url(url)


# over TLS: the name is looked up once, and the certificate must be of that name


class Tls:
    """A server's certificate, the names that clients asked it for, and what names mean."""

    def __init__(self, issuer: trustme.CA, name: str) -> None:
        self.context = SSLContext(PROTOCOL_TLS_SERVER)
        issuer.issue_cert(name).configure_cert(self.context)
        self.context.sni_callback = lambda _, name, __: self.asked.append(name)
        self.asked: list[str | None] = []
        self.looked_up: list[str] = []

    async def look_up(self, host: str, port: int, **_: Any) -> list[tuple[Any, ...]]:
        """Every name is this machine."""
        self.looked_up.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]


@asynccontextmanager
async def over_tls(
    monkeypatch: pytest.MonkeyPatch, certified: str = "hooks.example", trusted: bool = True
) -> AsyncIterator[tuple[Bench, Receiver, Tls]]:
    """A service that trusts a new authority, and a receiver called hooks.example."""
    authority, usual = trustme.CA(), httpcore2.default_ssl_context
    tls = Tls(authority if trusted else trustme.CA(), certified)

    def context(**options: Any) -> SSLContext:
        made = usual(**options)
        authority.configure_trust(made)
        return made

    monkeypatch.setattr("httpcore2.default_ssl_context", context)
    monkeypatch.setattr("venire.server.webhooks.deliveries.POLL_SECONDS", 3600.0)  # no polls
    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", tls.look_up)
    async with (
        receiver("hooks.example", tls.context) as r,
        bench(server=LOCAL, policy="fixed-overlap:1") as b,
    ):
        yield b, r, tls


@running
async def test_over_tls_a_message_goes_to_the_address_that_was_checked_under_its_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with over_tls(monkeypatch) as (b, r, tls):
        hook = await b.service.webhooks.add("posts", r.url)
        await one_exit(b, "p1")
        tls.looked_up.clear()
        await send(b)
        [(headers, _)] = r.got
        assert headers["host"] == r.url.split("/")[2]
        assert (tls.asked, tls.looked_up) == (["hooks.example"], ["hooks.example"])
        assert [row.status for row in b.storage.deliveries(hook.id)] == ["done"]


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({"certified": "other.example"}, "Hostname mismatch"),
        ({"certified": "127.0.0.1"}, "Hostname mismatch"),
        ({"trusted": False}, "unable to get local issuer certificate"),
    ],
)
@running
async def test_over_tls_a_certificate_of_another_is_refused(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], fault: str
) -> None:
    async with over_tls(monkeypatch, **options) as (b, r, _):
        hook = await b.service.webhooks.add("posts", r.url)
        await one_exit(b, "p1")
        await send(b)
        assert r.got == []
        [row] = b.storage.deliveries(hook.id)
        assert (row.status, row.attempt) == ("pending", 1)
        assert fault in str(row.last_error)
        with pytest.raises(FetchError, match=fault):
            await b.service.webhooks.ping("posts", hook.id)


@running
async def test_over_tls_no_redirect_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    async with receiver() as inside, over_tls(monkeypatch) as (b, r, _):
        hook = await b.service.webhooks.add("posts", r.url)
        r.answers, r.where = [302], inside.url
        await one_exit(b, "p1")
        await send(b)
        assert (len(r.got), inside.got) == (1, [])
        [row] = b.storage.deliveries(hook.id)
        assert (row.status, row.last_error) == ("pending", "HTTP status 302")
