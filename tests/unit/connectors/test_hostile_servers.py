"""Servers that answer with too much, or with what nobody asked for."""

from __future__ import annotations

import asyncio
import gzip
import json
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from venire.connectors.http import Calling, HttpModel
from venire.connectors.label_studio.studio import LabelStudio, StudioDown, StudioError
from venire.errors import NotNow, VenireError
from venire.tools import http
from venire.tools.http import Connections, Lost

Answer = tuple[int, dict[str, str], Iterator[bytes]]
LIMIT = 1_000_000


@contextmanager
def serving(answer: Callable[[str], Answer]) -> Iterator[str]:
    """A server on loopback that answers as it is told."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("content-length") or 0))
            status, headers, parts = answer(self.path)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            try:
                for part in parts:
                    self.wfile.write(part)
            except OSError:  # the other side has enough
                pass
            self.close_connection = True

        do_POST = do_PATCH = do_GET  # noqa: N815 (the library's names)

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def endless() -> Iterator[bytes]:
    while True:
        yield b" " * 65_536


@cache
def packed_spaces() -> bytes:
    """A hundred megabytes, in a hundred kilobytes."""
    return gzip.compress(b" " * 100_000_000, 1)


def bomb() -> Iterator[bytes]:
    yield packed_spaces()


def _said(
    status: int, headers: dict[str, str], parts: Callable[[], Iterator[bytes]], path: str
) -> Answer:
    return status, headers, parts()


def judge(url: str) -> Connections:
    return Connections(url, 60.0, 1, "sk-1234567890")


@pytest.mark.parametrize(
    ("headers", "parts", "told"),
    [
        ({}, endless, "longer than"),
        ({"content-encoding": "gzip"}, bomb, "unpacks to more than"),
        ({"content-encoding": "br"}, lambda: iter([b"x"]), "encoded as 'br'"),
        ({"content-encoding": "gzip"}, lambda: iter([b"no gzip"]), "cannot be unpacked"),
    ],
)
def test_an_answer_of_a_model_has_a_limit_also_unpacked(
    headers: dict[str, str],
    parts: Callable[[], Iterator[bytes]],
    told: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def ask(url: str) -> None:
        connections = judge(url)
        try:
            with pytest.raises(Lost, match=told):
                await connections.post({})
        finally:
            await connections.close()

    packed_spaces()
    with serving(lambda path: (200, headers, parts())) as url:
        tracemalloc.start()
        asyncio.run(ask(url))
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert most < 5 * http.MOST


def test_an_answer_that_is_packed_all_the_same_is_read() -> None:
    async def ask(url: str) -> bytes:
        connections = judge(url)
        try:
            return (await connections.post({}))[2]
        finally:
            await connections.close()

    packed = gzip.compress(b'{"label": "ok"}')
    with serving(lambda path: (200, {"content-encoding": "gzip"}, iter([packed]))) as url:
        assert asyncio.run(ask(url)) == b'{"label": "ok"}'


def test_a_key_that_a_server_repeats_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODEL_KEY", "sk-12345/67890")
    said = {"error": {"message": "no such key: sk%2D12345%2F67890, sk-12345\\/67890"}}

    async def ask(url: str) -> str:
        calling = Calling(api_key_env="MODEL_KEY", num_retries=0)
        model = HttpModel("m", url, request={}, label="label", calling=calling)
        async with model:
            try:
                return str(await model.answer([{}]))
            except (VenireError, NotNow) as error:
                return str(error)

    with serving(lambda path: (401, {}, iter([json.dumps(said).encode()]))) as url:
        told = asyncio.run(ask(url))
    assert "***" in told
    assert "12345" not in told


# Label Studio

TASK: dict[str, Any] = {
    "id": 1, "data": {}, "overlap": 1, "is_labeled": False, "annotations": [], "predictions": []
}  # fmt: skip

ODD: list[Any] = [
    [], "x", 7, None, {}, {"tasks": "x", "total": 1}, {"tasks": [7], "total": 1},
    {"tasks": [{"id": "1"}], "total": 1}, {"tasks": [{**TASK, "data": []}], "total": 1},
    {"tasks": [{**TASK, "annotations": "x"}], "total": 1},
    {"tasks": [{**TASK, "annotations": [{"id": 1}]}], "total": 1},
    {"tasks": [{**TASK, "predictions": [7]}], "total": 1}, {"tasks": [TASK], "total": "many"},
]  # fmt: skip


async def every_read(url: str) -> None:
    """All that a sync reads; each fails with an error of Label Studio, or not at all."""
    async with LabelStudio(url, "token", 1) as studio:
        for read in (studio.project, studio.users, studio.tabs, studio.handed_out):
            with pytest.raises((StudioError, StudioDown)):
                await read()
        for found in (studio.tasks([1]), studio.after(0), studio.changed(studio.now)):
            with pytest.raises((StudioError, StudioDown)):
                await found


@pytest.mark.parametrize("said", ODD, ids=range(len(ODD)))
def test_an_odd_answer_of_label_studio_is_an_error(said: Any) -> None:
    if said in ([], {"tasks": [TASK], "total": 1}):
        said = [7]
    date = {"date": "Fri, 31 Dec 9999 23:59:59 -2359"}
    with serving(lambda path: (200, date, iter([json.dumps(said).encode()]))) as url:
        asyncio.run(every_read(url))


@pytest.mark.parametrize("text", [b"[" * 100_000, b"<html>", b"\xff", b"9" * 5000])
def test_what_is_no_json_of_label_studio_is_an_error(text: bytes) -> None:
    for status in (200, 302, 400, 500):
        with serving(partial(_said, status, {}, lambda: iter([text]))) as url:
            asyncio.run(every_read(url))


def test_pages_that_never_end_are_not_followed() -> None:
    page = {"tasks": [TASK], "total": 1_000_000}

    async def read(url: str) -> None:
        async with LabelStudio(url, "token", 1) as studio:
            with pytest.raises(StudioError, match="something else"):
                await studio.handed_out()

    with serving(lambda path: (200, {}, iter([json.dumps(page).encode()]))) as url:
        asyncio.run(read(url))


def test_an_answer_of_label_studio_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "MOST_OF_PAGE", LIMIT)
    packed = {"content-encoding": "gzip"}
    for headers, parts in ((dict[str, str](), endless), (packed, bomb)):
        with serving(partial(_said, 200, headers, parts)) as url:
            asyncio.run(every_read(url))


def test_a_redirect_does_not_take_the_token_elsewhere() -> None:
    asked: list[str] = []

    def elsewhere(path: str) -> Answer:
        asked.append(path)
        return 200, {}, iter([b"{}"])

    with serving(elsewhere) as other:
        there = {"location": f"{other}/api/users"}
        with serving(lambda path: (307, there, iter([b""]))) as url:
            asyncio.run(every_read(url))
    assert asked == []


def test_a_labelling_config_that_grows_is_refused() -> None:
    from venire.files.label_config import read_controls

    laughs = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 12))
    with pytest.raises(VenireError):
        read_controls(f'<!DOCTYPE x [<!ENTITY l0 "ha">{laughs}]><View><X name="&l11;"/></View>')
    with pytest.raises(VenireError):
        read_controls("<View>" * 100_000)
