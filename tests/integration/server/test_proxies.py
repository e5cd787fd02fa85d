"""The proxies of deploy/, where the programs are there: TLS, uploads, long polls, event streams."""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.integration.server.harness import STREAM, Process, serving, until, unused_port

DEPLOY = Path(__file__).parents[3] / "deploy"


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    folder = tmp_path_factory.mktemp("serve")
    with serving(f"sqlite:///{folder}/venire.db", folder) as server:
        with server.client(timeout=200) as client:
            client.create_stream("posts", **{**STREAM, "slot_seconds": 600})
        yield server


def needed(*programs: str) -> None:
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed: deploy/ is not tried with it")


@contextmanager
def started(command: list[str], folder: Path, port: int, env: dict[str, str]) -> Iterator[int]:
    """A program, until something listens on the port; its log is in the message if nothing does."""
    log = folder / "proxy.log"
    with log.open("w") as file:
        running = subprocess.Popen(command, env={**os.environ, **env}, stdout=file, stderr=file)
    try:

        def listens() -> bool:
            assert running.poll() is None, log.read_text()
            return answers(port)

        until(listens)
        yield port
    finally:
        running.terminate()
        running.wait(280)


def answers(port: int) -> bool:
    try:
        return call(port, "GET", "/health")[0] == 200
    except OSError:
        return False


@contextmanager
def nginx(folder: Path, upstream: int) -> Iterator[tuple[int, int]]:
    """nginx with the file of deploy/; the ports of http and https."""
    needed("nginx", "openssl")
    plain, secure = unused_port(), unused_port()
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj"]
    made += ["/CN=localhost", "-keyout", f"{folder}/key.pem", "-out", f"{folder}/cert.pem"]
    subprocess.run(made, check=True, capture_output=True)
    text = (DEPLOY / "nginx.conf").read_text().replace("127.0.0.1:8400", f"127.0.0.1:{upstream}")
    text = re.sub(r"listen \[::\].*\n", "", text)
    text = text.replace("listen 80;", f"listen 127.0.0.1:{plain};")
    text = text.replace("listen 443 ", f"listen 127.0.0.1:{secure} ")
    text = re.sub(r"/etc/\S+/fullchain.pem", f"{folder}/cert.pem", text)
    text = re.sub(r"/etc/\S+/privkey.pem", f"{folder}/key.pem", text)
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    places = "".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
    root = "user root;" if os.geteuid() == 0 else ""
    conf = folder / "nginx.conf"
    conf.write_text(
        f"daemon off; pid {folder}/pid; error_log stderr; {root} events {{}}\n"
        f"http {{ access_log off; {places}\n{text}\n}}\n"
    )
    with started(["nginx", "-c", str(conf)], folder, secure, {}):
        yield plain, secure


@contextmanager
def caddy(folder: Path, upstream: int) -> Iterator[tuple[int, int]]:
    """Caddy with the file of deploy/, and certificates of its own."""
    needed("caddy")
    plain, secure = unused_port(), unused_port()
    options = f"admin off\nlocal_certs\nskip_install_trust\nhttp_port {plain}\nhttps_port {secure}"
    conf = folder / "Caddyfile"
    conf.write_text(f"{{\n{options}\n}}\n" + (DEPLOY / "Caddyfile").read_text())
    env = {"DOMAIN": "localhost", "UPSTREAM": f"127.0.0.1:{upstream}"}
    env |= {"XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder), "HOME": str(folder)}
    command = ["caddy", "run", "--adapter", "caddyfile", "--config", str(conf)]
    with started(command, folder, secure, env):
        yield plain, secure


def connection(port: int) -> http.client.HTTPSConnection:
    """To the proxy, whose certificate nobody vouches for."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return http.client.HTTPSConnection("localhost", port, context=context, timeout=100)


def call(port: int, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
    """The status and the response, which has been read."""
    wire = connection(port)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    wire.request(method, path, body, named)
    answer = wire.getresponse()
    answer.text = answer.read().decode()  # type: ignore[attr-defined]
    wire.close()
    return answer.status, answer


@pytest.mark.parametrize("proxy", [nginx, caddy])
def test_everything_works_through_a_proxy_with_tls(
    process: Process, tmp_path: Path, proxy: Any
) -> None:
    key = {"authorization": f"Bearer {process.key}"}
    with proxy(tmp_path, process.port) as (plain, secure):
        _signs_in(process, secure)
        wire = http.client.HTTPConnection("localhost", plain, timeout=100)
        wire.request("GET", "/docs")
        to = wire.getresponse().getheader("location") or ""
        wire.close()
        assert to.startswith("https://localhost")
        assert to.endswith("/docs")

        text, ndjson = "x" * 3000, {"content_type": "application/x-ndjson"}
        rows = [
            json.dumps({"id": f"{proxy.__name__}-{n}", "payload": text}) for n in range(2600)
        ]  # 7.6 MiB
        items = "/v1/streams/posts/items"
        status, sent = call(secure, "POST", items, "\n".join(rows), **key, **ndjson)
        assert (status, json.loads(sent.text)["created"]) == (200, 2600)
        assert _is_refused(secure, items, "\n".join(rows * 2), **key, **ndjson)

        events = connection(secure)
        events.request("GET", "/v1/streams/posts/events?after=0", headers=key)
        stream = events.getresponse()
        assert stream.readline() == b": venire\n"  # at once, though nothing ends
        while not stream.readline().startswith(b"data:"):
            pass
        stream.close()
        events.close()
        next_one = "/v1/streams/posts/next?labeler=ann&wait=1"
        assert call(secure, "GET", next_one, **key)[0] in (200, 204)


def _is_refused(port: int, path: str, body: str, **headers: str) -> bool:
    """Whether a body that is too long gets a 413, or the connection ends while it is sent."""
    wire = connection(port)
    try:
        wire.request("POST", path, body, {k.replace("_", "-"): v for k, v in headers.items()})
        answer = wire.getresponse()
        answer.read()
        return answer.status == 413
    except OSError:
        return True
    finally:
        wire.close()


def _signs_in(process: Process, secure: int) -> None:
    """A browser gets a cookie for HTTPS alone, with which pages work, and no other site's do."""
    form = {"content_type": "application/x-www-form-urlencoded"}
    at = f"https://localhost:{secure}"
    status, page = call(secure, "POST", "/sign-in", f"key={process.key}", origin=at, **form)
    cookie = page.getheader("set-cookie")
    assert status == 303
    assert "Secure" in cookie
    assert "max-age=31536000" in page.getheader("strict-transport-security")
    session = cookie.partition(";")[0]
    assert call(secure, "GET", "/v1/me", cookie=session, origin=at)[0] == 200
    assert call(secure, "GET", "/v1/me", cookie=session, origin="https://x.example")[0] == 403
