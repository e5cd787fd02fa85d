"""The access log: what a line has, what it never has, and that nothing waits for it."""

from __future__ import annotations

import io
import json
import threading
from typing import Any

import pytest

from tests.integration.server.harness import STREAM, in_process
from venire.server.edge.monitoring import Request, RequestLines, RequestLog, wanted
from venire.server.edge.settings import ServerSettings


def test_a_line_has_the_template_of_the_route_and_neither_key_nor_payload_nor_token() -> None:
    file = io.StringIO()
    with (
        RequestLines(file, as_json=True) as lines,
        in_process(around=lambda app: RequestLog(app, lines)) as made,
    ):
        made.make_stream()
        rows = [{"id": "secret-item", "payload": "secret words"}]
        made.call("POST", "/v1/streams/posts/items", json=rows)
        work = made.take()
        said = {"said": STREAM["classes"][0]}
        made.call("POST", f"/v1/assignments/{work['token']}/label", json=said)
        wrong = {"authorization": "Bearer vk_wrong"}
        made.call("GET", "/v1/streams/posts", None, headers=wrong)
        made.call("GET", "/nowhere/secret-path", None)
        assert made.call("GET", "/health", None).status_code == 200
        found = made.call("GET", "/v1/keys").json()
    ids = {one["role"]: one["id"] for one in found}
    text = file.getvalue()
    for hidden in ("secret", work["token"], made.keys["admin"], "vk_", "posts"):
        assert hidden not in text
    seen = [json.loads(line) for line in text.splitlines()]
    assert [(one["method"], one["route"], one["status"], one["role"]) for one in seen] == [
        ("POST", "/v1/streams", 201, "admin"),
        ("POST", "/v1/streams/{stream}/items", 200, "admin"),
        ("GET", "/v1/streams/{stream}/next", 200, "admin"),
        ("POST", "/v1/assignments/{token}/label", 200, "admin"),
        ("GET", "/v1/streams/{stream}", 401, None),
        ("GET", "other", 404, None),
        ("GET", "/health", 200, None),
        ("GET", "/v1/keys", 200, "admin"),
    ]
    assert {one["key"] for one in seen} == {None, ids["admin"]}
    assert all(one["event"] == "request" and one["ms"] >= 0 for one in seen)
    assert all(one["bytes"] > 0 for one in seen)


def test_a_line_names_a_key_that_is_no_longer_valid() -> None:
    file = io.StringIO()
    with (
        RequestLines(file, as_json=True) as lines,
        in_process(around=lambda app: RequestLog(app, lines)) as made,
    ):
        key = made.call("POST", "/v1/keys", json={"name": "old", "role": "viewer"}).json()
        made.call("DELETE", f"/v1/keys/{key['key']['id']}")
        for token in (key["token"], "vk_wrong"):
            headers = {"authorization": f"Bearer {token}"}
            assert made.call("GET", "/v1/streams", None, headers=headers).status_code == 401
    refused = [json.loads(line) for line in file.getvalue().splitlines()][-2:]
    assert [one["status"] for one in refused] == [401, 401]
    assert [one["role"] for one in refused] == [None, None]
    assert [one["key"] for one in refused] == [key["key"]["id"], None]


class _Stuck(io.StringIO):
    """A file that nobody reads, until it is let go."""

    def __init__(self, going: Any) -> None:
        super().__init__()
        self.going = going

    def write(self, text: str) -> int:
        self.going.wait()
        return super().write(text)


def test_where_nobody_reads_the_log_requests_are_dropped_and_counted() -> None:
    going = threading.Event()
    file = _Stuck(going)
    one = Request(0.0, "GET", "/health", 200, 0.0, 1, None, None)
    with RequestLines(file, as_json=True, most=10) as lines:
        for _ in range(1000):
            lines.add(one)
        going.set()
    seen = [json.loads(line) for line in file.getvalue().splitlines()]
    assert sum(line["event"] == "request" for line in seen) >= 10
    assert any("not in the access log" in line["event"] for line in seen)


@pytest.mark.parametrize(
    ("settings", "want"),
    [
        ({}, False),
        ({"log_format": "json"}, True),
        ({"log_format": "json", "log_level": "warning"}, False),
        ({"log_level": "debug"}, True),
        ({"access_log": True}, True),
        ({"access_log": False, "log_format": "json"}, False),
    ],
)
def test_who_wants_an_access_log(settings: dict[str, Any], want: bool) -> None:
    assert wanted(ServerSettings(**settings)) is want
