"""Both kinds of Label Studio, started, killed and started again on the same data."""

from __future__ import annotations

import os
import re
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from tests.studio.double import ANNOTATORS, OWNER, token_of

#: The version that the double is a double of.
RELEASE = "1.23.2"

ROOT = Path(__file__).parent.parent.parent

#: For addresses without TLS; by default each request would load all certificates anew.
PLAIN = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)

CONFIG = (
    '<View><Text name="post" value="$text"/><Choices name="kind" toName="post">'
    '<Choice value="Spam" alias="spam"/><Choice value="ok"/></Choices></View>'
)


@dataclass
class Studio:
    """A running Label Studio: its owner's token, and the tokens of the annotators by e-mail."""

    folder: Path
    real: bool = False
    port: int = 0
    tokens: dict[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        self.port = self.port or free_port()
        command, env = self._command()
        with (self.folder / "studio.log").open("ab") as log:
            self.process = subprocess.Popen(
                command, cwd=ROOT, env=env, stdout=log, stderr=subprocess.STDOUT
            )
        end = time.monotonic() + (600 if self.real else 60)
        while not self.is_up():
            assert self.process.poll() is None, (self.folder / "studio.log").read_text()[-2000:]
            assert time.monotonic() < end, "Label Studio does not start"
            time.sleep(0.2)

    def _command(self) -> tuple[list[str], dict[str, str]]:
        if not self.real:
            state = str(self.folder / "state.json")
            env = {**os.environ, "PYTHONPATH": str(ROOT)}
            command = [sys.executable, "-m", "tests.studio.double"]
            return [*command, "--port", str(self.port), "--state", state], env
        env = {
            **{name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
            "LABEL_STUDIO_BASE_DATA_DIR": str(self.folder / "data"),
            "LABEL_STUDIO_ENABLE_LEGACY_API_TOKEN": "true",
            "COLLECT_ANALYTICS": "false",
            "LATEST_VERSION_CHECK": "false",
            "SENTRY_DSN": "",
            "FRONTEND_SENTRY_DSN": "",
        }
        command = [str(installed() / "label-studio"), "start", "--no-browser"]
        command += ["--internal-host", "127.0.0.1", "--port", str(self.port)]
        command += ["--username", OWNER, "--password", "owner-pass-1"]
        return [*command, "--user-token", token_of(OWNER)], env

    def is_up(self) -> bool:
        try:
            return bool(
                httpx2.get(f"{self.url}/health", timeout=5, verify=PLAIN).status_code == 200
            )
        except httpx2.HTTPError:
            return False

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def call(
        self, method: str, path: str, body: Any = None, who: str = OWNER, **params: Any
    ) -> Any:
        """A request; its JSON, or an error."""
        got = self.send(method, path, body, who, **params)
        assert got.status_code < 300, f"{method} {path}: {got.status_code} {got.text[:500]}"
        return got.json() if got.content else None

    def send(
        self, method: str, path: str, body: Any = None, who: str = OWNER, **params: Any
    ) -> Any:
        headers = {"authorization": f"Token {self.tokens[who]}"}
        return httpx2.request(
            method,
            f"{self.url}{path}",
            json=body,
            params=params,
            headers=headers,
            timeout=60,
            verify=PLAIN,
        )

    def make_project(self, tasks: int = 0, config: str = CONFIG, **more: Any) -> int:
        """A project with so many tasks."""
        made = self.call(
            "POST", "/api/projects", {"title": "posts", "label_config": config, **more}
        )
        if tasks:
            rows = [{"text": f"post {n}"} for n in range(tasks)]
            self.call("POST", f"/api/projects/{made['id']}/import", rows, return_task_ids="true")
        return int(made["id"])

    def tasks(self, project: int) -> list[dict[str, Any]]:
        """All tasks of a project, up to a thousand."""
        got = self.call(
            "GET", "/api/tasks", project=project, fields="all", page_size=1000, resolve_uri="false"
        )
        return sorted(got["tasks"], key=lambda task: task["id"])


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def installed() -> Path:
    """The real Label Studio in an environment of its own, installed from PyPI if it is not there.

    `VENIRE_LABEL_STUDIO` names the folder of the environment.
    """
    home = Path(os.environ.get("VENIRE_LABEL_STUDIO", "") or Path.home() / ".cache/venire/studio")
    if not (home / "bin/label-studio").exists():
        subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
        pip = [str(home / "bin/python"), "-m", "pip", "install", "--quiet"]
        subprocess.run([*pip, f"label-studio=={RELEASE}"], check=True)
    return home / "bin"


@contextmanager
def running(folder: Path, real: bool = False) -> Iterator[Studio]:
    """A new Label Studio with an owner and four annotators."""
    studio = Studio(folder, real)
    studio.tokens[OWNER] = token_of(OWNER)
    studio.start()
    try:
        for email in ANNOTATORS:
            studio.tokens[email] = sign_up(studio, email) if real else token_of(email)
        yield studio
    finally:
        if studio.process is not None and studio.process.poll() is None:
            studio.kill()


def sign_up(studio: Studio, email: str) -> str:
    """Sign somebody up with the invite link, as in a browser; the legacy token."""
    link = studio.call("GET", "/api/invite")["invite_url"]
    with httpx2.Client(base_url=studio.url, follow_redirects=True, timeout=60) as browser:
        page = browser.get(link).text
        found = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)
        assert found, page[:500]
        form = {"csrfmiddlewaretoken": found[1], "email": email, "password": "Some-pass-1"}
        got = browser.post(link, data=form, headers={"referer": f"{studio.url}{link}"})
        assert got.status_code == 200, got.text[:500]
        token = browser.get("/api/current-user/token")
        assert token.status_code == 200, token.text[:500]
        return str(token.json()["token"])
