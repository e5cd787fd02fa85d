"""What one request may cost: refused before it is paid, and nobody else waits for it.

The time of a request is counted in CPU of this process, so a busy machine changes little.
"""

from __future__ import annotations

import asyncio
import gc
import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.integration.server.harness import InProcess, in_process, until
from venire.model import Role
from venire.server.edge.bodies import MOST_VALUES
from venire.server.edge.guard import ROLES
from venire.server.edge.limits import BODIES, MEBIBYTE, SMALL, most_bytes
from venire.server.process import _collect_seldom

STREAM = "/v1/streams/posts"
LAYOUT: list[dict[str, Any]] = [
    {"field": "text", "highlight": "words"},
    {"field": "note", "show": "markdown"},
]

#: Bodies as long as may be that cost much to parse, to match or to refuse.
NESTED = b"[" + b",".join([b"{}"] * (MOST_VALUES // 2 - 5)) + b"]"
KEYS = b"{" + b",".join(b'"k%d":5' % n for n in range(6000)) + b"}"


@pytest.fixture(scope="module")
def served() -> Iterator[InProcess]:
    with in_process() as shared:
        shared.make_stream(layout=LAYOUT, practice=[{"payload": "![" * 900, "answer": "ok"}])
        yield shared


def refused(served: InProcess, method: str, path: str, role: str, body: bytes, **more: str) -> Any:
    headers = {"content-type": "application/json", **more}
    return served.call(method, path, role, content=body, headers=headers)


def test_errors_are_built_for_ten_rows_and_no_more(
    served: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    from venire.server.edge import bodies

    built: list[int] = []
    original = bodies.faults_of

    def counted(*args: Any) -> Any:
        built.append(1)
        return original(*args)

    monkeypatch.setattr(bodies, "faults_of", counted)
    rows = json.dumps([{"item": n} for n in range(5000)]).encode()
    lines = b"\n".join(b'{"item": %d}' % n for n in range(5000))
    for body, kind in ((rows, "application/json"), (lines, "application/x-ndjson")):
        built.clear()
        answer = refused(
            served, "POST", f"{STREAM}/labels", "labeler", body, **{"content-type": kind}
        )
        assert answer.status_code == 422
        assert len(answer.json()["error"]["faults"]) == 10
        assert len(built) <= 10


def test_a_body_of_many_values_is_refused_before_it_is_parsed(served: InProcess) -> None:
    many = b"[" + b",".join([b"{}"] * 340_000) + b"]"
    answer = refused(served, "POST", f"{STREAM}/labels", "labeler", many)
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "too_many_values")
    item = b'[{"id":"a","payload":%s}]' % many
    assert refused(served, "POST", f"{STREAM}/items", "producer", item).status_code == 413
    csv = b"item,label\n" + b"a,ok\n" * 200_000
    answer = refused(
        served, "POST", f"{STREAM}/gold", "reviewer", csv, **{"content-type": "text/csv"}
    )
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "batch_too_large")
    for blank in (b"\n", b"\r"):
        answer = refused(
            served, "POST", f"{STREAM}/items", "producer", blank * 1_000_000,
            **{"content-type": "application/x-ndjson"},
        )  # fmt: skip
        assert (answer.status_code, answer.json()["error"]["code"]) == (413, "batch_too_large")
    wide = b"a," * 500_000 + b"\n" + b"x\n" * 1000
    answer = refused(
        served, "POST", f"{STREAM}/gold", "reviewer", wide, **{"content-type": "text/csv"}
    )
    assert answer.status_code == 422
    assert len(answer.text) < 1000


@pytest.mark.parametrize("role", list(Role))
def test_every_route_has_a_limit_for_the_body_by_role(served: InProcess, role: Role) -> None:
    """Also the routes that read none; refused by what is announced, whatever comes."""
    for route, roles in ROLES.items():
        method, path = route.split(" ")
        if method == "GET" or (roles is not None and role not in roles):
            continue
        most = most_bytes(route, None if roles is None else role, 8 * MEBIBYTE)
        path = re.sub(r"\{[^}]*\}", "x", path)
        answer = refused(served, method, path, role, b" " * (most + 1))
        assert answer.status_code == 413, route
        assert answer.json()["error"]["code"] == "body_too_large"


def test_the_documentation_has_the_limit_of_each_route() -> None:
    text = (Path(__file__).parents[3] / "docs" / "serve.md").read_text()
    sizes = {4096: "4 KiB", SMALL: "64 KiB", 256 * 1024: "256 KiB", MEBIBYTE: "1 MiB"}
    sizes |= {2 * MEBIBYTE: "2 MiB", 0: "`VENIRE_MAX_BODY`"}
    for route, by_role in BODIES.items():
        told = [sizes[by_role[None]]]
        told += [f"{sizes[most]} for {role}s" for role, most in by_role.items() if role]
        assert f"| `{route}` | {', '.join(told)} |" in text, route
    assert f"| all others | {sizes[SMALL]} |" in text
    assert f"{MOST_VALUES:,}" in text


# what nobody waits for


@contextmanager
def longest_wait(served: InProcess) -> Iterator[list[float]]:
    """The most CPU that this process spent while something else waited for its turn."""
    waits = [0.0]

    async def probe() -> None:
        while True:
            before = time.process_time()
            await asyncio.sleep(0.001)
            waits[0] = max(waits[0], time.process_time() - before)

    assert served.http.portal is not None
    future, _ = served.http.portal.start_task_soon(probe), None
    time.sleep(0.1)
    waits[0] = 0.0
    try:
        yield waits
    finally:
        future.cancel()


def least_wait(served: InProcess, act: Callable[[], None]) -> float:
    """The same of the best of three: on a busy machine CPU is dear, but not each time."""
    found: list[float] = []
    while len(found) < 3 and min(found, default=1.0) >= 0.1:
        with longest_wait(served) as waits:
            act()
        found.append(waits[0])
    return min(found)


@contextmanager
def as_served() -> Iterator[InProcess]:
    """A server in this process whose garbage is collected as in a process of its own."""
    thresholds = gc.get_threshold()
    with in_process() as served:
        _collect_seldom()
        yield served
    gc.set_threshold(*thresholds)  # what is frozen stays so, and the tests among it


def dear(kind: str) -> tuple[str, str, str, bytes, str]:
    """A request at its limit: method, path, role, body and media type."""
    lines, csv = "application/x-ndjson", "text/csv"
    text = {"text": "a" * 2_000_000, "words": ["a"] * 200, "note": "![" * 10_000}
    return {
        "labels": ("POST", "/labels", "producer", NESTED, "application/json"),
        "labels-lines": ("POST", "/labels", "producer", b"{}\n" * 20_000, lines),
        "labels-right": (
            "POST", "/labels", "producer",
            b"[" + b",".join(b'{"item":"%d","labeler":"a","said":"ok"}' % n for n in range(20_000))
            + b"]", "application/json",
        ),
        "items": (
            "POST", "/items", "producer", b'[{"id":"n","payload":%s}]' % NESTED, "application/json"
        ),
        "items-text": (
            "POST", "/items", "producer", json.dumps([{"id": "t", "payload": text}]).encode(),
            "application/json",
        ),
        "gold": ("POST", "/gold", "reviewer", b"item,label\n" + b"a,ok\n" * 19_999, csv),
        "what-if": ("POST", "/what-if", "viewer", KEYS, "application/json"),
        "practice": ("POST", "/practice/0", "labeler", KEYS, "application/json"),
        "settings": ("PATCH", "", "admin", KEYS, "application/json"),
    }[kind]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind",
    ["labels", "labels-lines", "labels-right", "items", "items-text", "gold", "what-if",
     "practice", "settings"],
)  # fmt: skip
def test_nobody_waits_for_a_request_at_its_limit(kind: str) -> None:
    method, path, role, body, media = dear(kind)
    with as_served() as served:
        served.make_stream(layout=LAYOUT, practice=[{"payload": "![" * 900, "answer": "ok"}])

        def send() -> None:
            answer = refused(
                served, method, f"{STREAM}{path}", role, body, **{"content-type": media}
            )
            assert answer.status_code < 500

        assert least_wait(served, send) < 0.1, kind


@pytest.mark.slow
def test_nobody_waits_for_what_is_shown_of_a_payload() -> None:
    with as_served() as served:
        served.make_stream(layout=LAYOUT)
        for kind in ("items", "items-text"):
            assert refused(served, *_sent(kind)).status_code == 200
        html = {"accept": "text/html"}
        reads: list[tuple[str, str, str, dict[str, str]]] = []
        reads += [("GET", f"{STREAM}/items/{id}", "viewer", {}) for id in "nt"]
        reads += [("GET", f"/streams/posts/items/{id}", "viewer", html) for id in "nt"]
        reads += [("GET", "/streams/posts/reviews", "reviewer", html)]
        reads += [("GET", f"{STREAM}/next?shown=true&labeler=ann", "admin", {})] * 2
        reads += [("POST", f"{STREAM}/held?shown=true&labeler=ann", "admin", {})]
        for method, path, role, headers in reads:

            def read(method: str, path: str, role: str, headers: dict[str, str]) -> None:
                begun = time.process_time()
                answer = served.call(method, path, role, headers=headers)
                assert answer.status_code == 200, (path, answer.text[:200])
                assert time.process_time() - begun < 5.0, path

            assert least_wait(served, partial(read, method, path, role, headers)) < 0.1, path


def _sent(kind: str) -> tuple[str, str, str, bytes]:
    method, path, role, body, _ = dear(kind)
    return method, f"{STREAM}{path}", role, body


def test_highlights_and_markdown_are_bounded() -> None:
    from venire.server.pages.rendering import MOST_PLACES, lay_out
    from venire.server.settings import Block

    blocks = [Block(**block) for block in LAYOUT]
    payload = {"text": "a b " * 100_000, "words": ["a"] * 200, "note": "![" * 10_000}
    text, note = lay_out(payload, "i", blocks)
    assert sum(marked for _, marked in text["pieces"]) <= MOST_PLACES
    assert note["kind"] == "text"
    assert "".join(piece for piece, _ in text["pieces"]) == payload["text"]


def test_the_bodies_of_one_key_that_are_being_sent_are_counted() -> None:
    from venire.server.edge.limits import Waiting

    sending = Waiting(3, 1, "being sent")
    with sending.one("k"), pytest.raises(Exception, match="being sent"), sending.one("k"):
        pass
    until(lambda: sending.now == 0)
