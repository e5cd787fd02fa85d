"""What clients follow goes on when the server that owns a stream is lost."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.integration.server.harness import STREAM, Process, until
from tests.integration.server.shared_load import Anywhere, SharedLoad, receiving
from tests.integration.server.test_crash import SETTINGS, check
from tests.integration.server.test_shared_kills import check_events
from tests.integration.server.test_sharing import owner, several
from venire.client import Work
from venire.server.store import open_storage
from venire.tools import http


def end(server: Process, how: signal.Signals, storage: str, servers: list[Process]) -> None:
    """End a server, or suspend it until another owns its stream, and have it back."""
    assert server.process is not None
    server.process.send_signal(how)
    if how == signal.SIGSTOP:
        until(lambda: owner(storage, "posts", servers) not in (None, server), 240)
        server.process.send_signal(signal.SIGCONT)
    else:
        server.process.wait(280)
        server.start()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_webhooks_and_events_go_on_when_servers_are_lost(
    new_url: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every exit is told at least once, every event once and in order, whoever owns the stream."""
    monkeypatch.setattr(http, "LONGEST", 0.2)
    storage = new_url("postgres")
    with ExitStack() as stack:
        receiver = stack.enter_context(receiving())
        servers = stack.enter_context(
            several(storage, tmp_path, 2, VENIRE_ALLOW_PRIVATE_WEBHOOKS="1")
        )
        with servers[0].client(timeout=200) as client:
            client.create_stream("posts", **SETTINGS)
            hook = client.add_webhook("posts", receiver.url)["id"]
        load = SharedLoad(servers[0], "posts", 0.3, servers=servers)
        load.start()
        for how in (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM):
            told = len(receiver.told)
            until(lambda told=told: len(receiver.told) > told + 20)  # type: ignore[misc]
            at = owner(storage, "posts", servers)
            assert at is not None
            end(at, how, storage, servers)
        load.finish()
        until(lambda: set(receiver.told) >= {exit.n for exit in load.exits})
        tally = f'{{stream="posts",webhook="{hook}"}}'
        until(lambda: metric(servers, f"venire_webhook_pending{tally}") == [0.0])
        assert metric(servers, f"venire_webhook_dead{tally}") == [0.0]
        twice = len(receiver.told) - len(set(receiver.told))
        print(f"{len(load.exits)} exits, {twice} told again")  # noqa: T201
        for server in servers:
            assert server.stop() == 0
    assert set(receiver.told) == {exit.n for exit in load.exits}
    check(storage, load)
    check_events(storage, load)


def metric(servers: list[Process], name: str) -> list[float]:
    """What the servers say of a webhook: only the one that owns the stream says anything."""
    return [found for server in servers if (found := server.metrics().get(name)) is not None]


@pytest.mark.timeout(600)
def test_dead_letters_are_those_of_the_stream_whoever_owns_it(
    new_url: Callable[[str], str], tmp_path: Path
) -> None:
    storage = new_url("postgres")
    with (
        receiving() as receiver,
        several(storage, tmp_path, 2, VENIRE_ALLOW_PRIVATE_WEBHOOKS="1") as servers,
    ):
        with servers[0].client(timeout=200) as client:
            client.create_stream("posts", **{**SETTINGS, "policy": "fixed-overlap:1"})
            hook = client.add_webhook("posts", receiver.url)["id"]
            receiver.answers.clear()
            client.add_items("posts", [{"id": f"{n}"} for n in range(10)])
            client.add_labels("posts", [(f"{n}", "ann", "ok") for n in range(10)])
        until(lambda: receiver.hanging > 0)
        at = owner(storage, "posts", servers)
        other = next(server for server in servers if server is not at)
        assert at is not None
        with psycopg.connect(storage, autocommit=True) as connection:
            connection.execute("UPDATE deliveries SET status = 'dead' WHERE exit_n > 7")
        at.kill()
        tally = f'{{stream="posts",webhook="{hook}"}}'
        until(lambda: other.metrics().get(f"venire_webhook_dead{tally}") == 3.0)
        receiver.answers.set()
        until(lambda: other.metrics()[f"venire_webhook_pending{tally}"] == 0.0, 120)
        assert set(receiver.told) == set(range(1, 8))
        with other.client() as client:
            assert [x["exit_n"] for x in client.dead_letters("posts", hook)] == [8, 9, 10]
            assert client.redeliver("posts", hook) == 3
        until(lambda: set(receiver.told) == set(range(1, 11)))
        until(lambda: other.metrics()[f"venire_webhook_dead{tally}"] == 0.0)


def test_a_long_poll_and_a_token_outlive_the_owner_of_the_stream(
    new_url: Callable[[str], str], tmp_path: Path
) -> None:
    storage, got = new_url("postgres"), list[Any]()
    with several(storage, tmp_path, 2) as servers:
        with servers[0].client(timeout=200) as client:
            client.create_stream("posts", **STREAM)
            client.add_items("posts", [{"id": "early"}])
            held = client.next("posts", "ann")
            assert isinstance(held, Work)
        at = owner(storage, "posts", servers)
        other = next(server for server in servers if server is not at)
        assert at is not None

        def wait() -> None:
            with Anywhere([other], timeout=60) as client:
                while not isinstance(work := client.next("posts", "ann", wait=60), Work):
                    pass  # the takeover took longer than one poll may
                got.append(work)

        waiting = threading.Thread(target=wait, daemon=True)
        waiting.start()
        until(lambda: at.waiting() == 1)
        at.kill()
        with Anywhere([other]) as patient:
            told = patient.label(held.token, "ok")
            assert (told["item"], told["labeler"]) == ("early", "ann")
            assert patient.label(held.token, "ok") == told, "the same answer again"
            patient.add_items("posts", [{"id": "late"}])
        waiting.join(280)
        assert [work.item for work in got] == ["late"]
        with open_storage(storage, owner=False) as store:
            assert [lease.item for lease in store.leases("posts")] == ["late"], "one lease"
        with other.client() as client:
            assert client.label(got[0].token, "ok")["item"] == "late"
