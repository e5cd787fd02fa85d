"""What a stranger, a slow client or a curious labeler gets: little, and in time."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.server.harness import InProcess, Process, in_process, serving
from tests.marks import nightly
from venire.server import ManualClock

http = pytest.importorskip("httpx2")

#: What labelers may see of the settings of a stream.
PAGE = ("guidelines", "descriptions", "layout", "ahead", "undo_seconds")

HEAD = b"GET /health HTTP/1.1\r\nHost: x\r\n"


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """A server that waits one second for a head, and five for a body."""
    folder: Path = tmp_path_factory.mktemp("serve")
    url = f"sqlite:///{folder}/venire.db"
    with serving(url, folder, VENIRE_HEADER_TIMEOUT="1", VENIRE_BODY_TIMEOUT="5") as served:
        yield served


def connected(process: Process) -> socket.socket:
    return socket.create_connection(("127.0.0.1", process.port), timeout=120)


def rest(connection: socket.socket) -> bytes:
    """All that comes until the server hangs up."""
    got = b""
    while part := connection.recv(4096):
        got += part
    return got


@pytest.mark.parametrize("sent", [nightly(b""), nightly(b"G"), HEAD])
def test_a_head_that_does_not_come_is_not_waited_for(strict: Process, sent: bytes) -> None:
    with connected(strict) as slow:
        begun = time.monotonic()
        slow.sendall(sent)
        assert b" 408 " in rest(slow)
        assert time.monotonic() - begun > 0.5


def test_a_head_that_comes_in_drops_is_not_waited_for(strict: Process) -> None:
    with connected(strict) as slow:
        begun = time.monotonic()
        slow.sendall(HEAD)
        with contextlib.suppress(OSError):  # the server has hung up
            while time.monotonic() - begun < 200:
                slow.sendall(b"X-Drop: 1\r\n")
                time.sleep(0.2)
        assert time.monotonic() - begun < 190


def test_who_takes_time_between_and_within_requests_is_served(strict: Process) -> None:
    with connected(strict) as patient:
        for _ in range(2):
            patient.sendall(HEAD + b"\r\n")
            got = b""
            while b'"leader"}' not in got:
                got += patient.recv(4096)
            assert got.startswith(b"HTTP/1.1 200 ")
            time.sleep(1.2)
        key = strict.key.encode()
        head = b"POST /v1/streams HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + key
        patient.sendall(head + b"\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{")
        time.sleep(1.2)
        patient.sendall(b"}")
        assert b" 422 " in rest(patient)


@pytest.mark.parametrize("known", [True, nightly(False)])
def test_a_body_that_does_not_come_is_not_waited_for(strict: Process, known: bool) -> None:
    """Nor one that comes in drops, be it refused already."""
    key = strict.key if known else "vk_unknown"
    head = f"POST /v1/streams HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n"
    with connected(strict) as slow:
        slow.sendall(f"{head}Content-Length: 1000\r\n\r\n".encode())
        begun = time.monotonic()
        with contextlib.suppress(OSError):  # the server has hung up
            while time.monotonic() - begun < 200:
                slow.sendall(b" ")
                time.sleep(0.2)
        assert time.monotonic() - begun < 190
    with connected(strict) as silent:
        silent.sendall(f"{head}Content-Length: 1000\r\n\r\n".encode())
        assert (b" 408 " if known else b" 401 ") in rest(silent)


@pytest.mark.parametrize("last", ["9" * 5000, "-1", "abc", "1.5", "9" * 17])
def test_an_event_that_has_no_number_is_a_bad_request(server: InProcess, last: str) -> None:
    server.make_stream()
    answer = server.call("GET", "/v1/streams/posts/events", headers={"last-event-id": last})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "bad_request")
    assert len(answer.text) < 1000
    huge = server.call("GET", f"/v1/streams/posts/events?after={'9' * 30}")
    assert huge.status_code == 422


def sign_in(served: InProcess, role: str = "admin", **headers: str) -> str:
    served.http.cookies.clear()
    form = {"key": served.keys[role]}
    answer = served.http.post("/sign-in", data=form, headers=headers, follow_redirects=False)
    assert answer.status_code == 303
    cookie: str = answer.headers["set-cookie"]
    return cookie


def test_the_cookie_is_not_the_key(server: InProcess) -> None:
    cookie = sign_in(server)
    assert server.keys["admin"] not in cookie
    value = cookie.partition("=")[2].partition(";")[0]
    assert server.http.get("/v1/me").json()["role"] == "admin"
    server.http.cookies.clear()
    for headers in ({"authorization": f"Bearer {value}"}, {"x-api-key": value}):
        assert server.http.get("/v1/me", headers=headers).status_code == 401
    stolen = {"cookie": f"venire_session={value}"}
    assert server.http.get("/v1/me", headers=stolen).status_code == 200
    assert server.http.post("/sign-out", headers=stolen, follow_redirects=False).status_code == 303
    server.http.cookies.clear()
    assert server.http.get("/v1/me", headers=stolen).status_code == 401, "signed out is not ended"
    old = {"cookie": f"venire_session={server.keys['admin']}"}
    assert server.http.get("/v1/me", headers=old).status_code == 401


@pytest.mark.parametrize("site", [{"sec-fetch-site": "cross-site"}, {"origin": "https://evil"}])
def test_another_site_signs_nobody_out(server: InProcess, site: dict[str, str]) -> None:
    cookie = sign_in(server).partition(";")[0]
    answer = server.http.post("/sign-out", headers={"cookie": cookie, **site})
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "foreign_page")
    assert server.http.get("/v1/me", headers={"cookie": cookie}).status_code == 200


def test_the_cookie_is_secure_behind_https(server: InProcess) -> None:
    assert "Secure" not in sign_in(server)
    assert "Secure" in sign_in(server, **{"x-forwarded-proto": "https"})
    assert "Secure" in sign_in(server, **{"x-forwarded-proto": "https, http"})
    assert "Secure" in sign_in(server, forwarded='for=192.0.2.60;proto="https";by=203.0.113.43')
    with in_process(secure_cookies=True) as served:
        assert "Secure" in sign_in(served)


def test_a_session_is_over_in_time_and_with_its_key() -> None:
    clock = ManualClock()
    with in_process(clock, session_hours=1) as served:
        sign_in(served, "viewer")
        assert served.http.get("/v1/me").status_code == 200
        clock.advance(3600)
        assert served.http.get("/v1/me").status_code == 401
        sign_in(served, "viewer")
        (key,) = [key for key in served.call("GET", "/v1/keys").json() if key["role"] == "viewer"]
        served.call("DELETE", f"/v1/keys/{key['id']}")
        assert served.http.get("/v1/me").status_code == 401


def test_keys_end_and_are_rotated() -> None:
    clock = ManualClock()
    with in_process(clock) as served:
        body = {"name": "a screen", "role": "viewer", "days": 1}
        old = served.call("POST", "/v1/keys", json=body).json()
        assert old["key"]["expires_at"] == clock.wall() + 86_400
        path = f"/v1/keys/{old['key']['id']}/rotate"
        assert served.call("POST", path, "viewer").status_code == 403
        new = served.call("POST", path, json={"overlap_hours": 1})
        assert new.status_code == 201

        def status(token: str) -> int:
            answer = served.http.get("/v1/me", headers={"x-api-key": token})
            return int(answer.status_code)

        assert [status(made["token"]) for made in (old, new.json())] == [200, 200]
        clock.advance(3600)
        assert [status(made["token"]) for made in (old, new.json())] == [401, 200]
        clock.advance(86_400)
        assert status(new.json()["token"]) == 401
        assert served.call("POST", path).status_code == 404
        wrong = served.call("POST", "/v1/keys", json={**body, "days": 0})
        assert wrong.status_code == 422


def test_labelers_do_not_see_how_good_anybody_is_held_to_be(server: InProcess) -> None:
    server.make_stream()
    for path in ("/v1/streams", "/v1/streams/posts"):
        mine = server.call("GET", path, "labeler")
        assert mine.status_code == 200
        assert "competence" not in mine.text
        assert "panel" not in mine.text
        assert "bob" not in mine.text
        seen = mine.json() if path.endswith("posts") else mine.json()[0]
        assert set(seen["settings"]) == {"classes", *PAGE}
        assert "competence" in server.call("GET", path, "viewer").text
    for path in ("labelers", "insights", "settings", "events", "exits"):
        assert server.call("GET", f"/v1/streams/posts/{path}", "labeler").status_code == 403
