"""Items that go to another stream while the server is killed again and again: each arrives once."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

from tests.integration.server.harness import Process, serving, until
from venire.client import Client
from venire.server.store import open_storage
from venire.server.store.maintenance.verify import verify

KILLS = int(os.environ.get("VENIRE_KILLS", "3"))
STREAM: dict[str, Any] = {
    "panel": [{"id": "ann", "competence": 0.9}, {"id": "bob", "competence": 0.8}],
    "learning": "known",
    "policy": "fixed-overlap:2",
    "slot_seconds": 0.1,
}
ITEMS = 150


def send(client: Client, part: int) -> set[str]:
    """Items with their labels; the third part of them is in doubt."""
    ids = [f"{part}-{n}" for n in range(ITEMS)]
    client.add_items("posts", [{"id": id, "payload": {"n": id}} for id in ids])
    rows = [{"item": id, "labeler": "ann", "said": "spam"} for id in ids]
    says = ("spam", "spam", "ok")
    rows += [{"item": id, "labeler": "bob", "said": says[n % 3]} for n, id in enumerate(ids)]
    client.add_labels("posts", rows)
    return {id for n, id in enumerate(ids) if n % 3 == 2}


def test_every_item_arrives_once_whatever_is_killed_when(tmp_path: Path) -> None:
    url, doubts = f"sqlite:///{tmp_path}/venire.db", set[str]()
    with serving(url, tmp_path) as server:
        with server.client(retry_seconds=600) as client:
            client.create_stream("experts", classes=["spam", "ok"], **STREAM)
            route = {"verdict": "spam", "below": 0.95, "stream": "experts"}
            client.create_stream("posts", classes=["spam", "ok"], routes=[route], **STREAM)
            for part in range(KILLS + 1):
                doubts |= send(client, part)
                if part < KILLS:
                    kill_while_they_go(server, client, part)
            until(lambda: arrived(client) == len(doubts))
            for item in sorted(doubts):
                until(lambda item=item: told(client, item))  # type: ignore[misc]
        assert server.stop() == 0
    with open_storage(url) as storage:
        assert {row.id for row in storage.items("experts")} == doubts
        rows = storage.routed("posts")
        assert {row.item for row in rows} == doubts
        assert all(row.settled_at is not None and row.fault is None for row in rows)
        events = [json.loads(x.body) for x in storage.all_events("posts") if x.kind == "routed"]
        assert Counter(event[0] for event in events) == Counter(doubts)
        assert verify(storage, "posts").ok
        assert verify(storage, "experts").ok


def kill_while_they_go(server: Process, client: Client, part: int) -> None:
    """At another moment each time: as they leave, as they arrive, or as that is told."""
    left = (part + 1) * ITEMS
    moments = (
        lambda: client.insights("posts")["exits"] > part * ITEMS,
        lambda: client.insights("posts")["exits"] == left,
        lambda: arrived(client) > part * ITEMS // 3,
    )
    until(moments[part % len(moments)])
    server.kill()
    server.start()


def arrived(client: Client) -> int:
    return int(client.insights("experts")["open_items"])


def told(client: Client, item: str) -> bool:
    """Whether the log says that an item has arrived."""
    (route,) = client.item("posts", item)["routed"]
    return route["settled_at"] is not None
