"""A clock that jumps, and a disk that becomes read-only: answers, and nothing is lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.integration.server.harness import SOURCE, STREAM, InProcess, in_process, until
from venire.model import Role
from venire.server import ManualClock, ServerSettings, Service, create_app
from venire.server.edge.guard import ROLES
from venire.server.store import open_storage
from venire.server.store.maintenance.verify import verify

DAY = 86_400.0


def test_whatever_the_wall_clock_says_work_goes_on_and_the_log_is_right() -> None:
    clock = ManualClock()
    with in_process(clock) as served:
        served.make_stream(policy="fixed-overlap:2", slot_seconds=1.0, audit_share=0.5)
        for n, jump in enumerate((0.0, DAY, -3 * DAY, 400 * DAY, -900 * DAY, -1.8e9, 3e9)):
            clock.jump(jump)
            served.add(f"i{n}")
            for who in ("bob", "cat"):
                work = served.take(who)
                path = f"/v1/assignments/{work['token']}/label"
                assert served.call("POST", path, json={"said": "ok"}).status_code == 200
            clock.advance(5.0)
            until(partial(_has_left, served, f"i{n}"))
            for route, roles in ROLES.items():
                method, path = route.split(" ")
                if method == "GET" and path not in ("/live", "/v1/streams/{stream}/events"):
                    path = path.replace("{stream}", "posts").replace("{item}", f"i{n}")
                    role = None if roles is None else "admin" if Role.ADMIN in roles else "labeler"
                    answer = served.call("GET", path.replace("{webhook}", "x"), role)
                    assert answer.status_code < 500, (path, jump, answer.text)
        assert verify(served.service.runtime.storage, "posts").ok


def _has_left(served: InProcess, item: str) -> bool:
    return f'"{item}"' in served.call("GET", "/v1/streams/posts/exits").text


def test_a_store_that_becomes_read_only_is_a_503_until_it_can_be_written(tmp_path: Path) -> None:
    with open_storage(f"sqlite:///{tmp_path}/venire.db") as storage:
        service = Service(storage)
        app = create_app(service, ServerSettings(rate=0))
        with TestClient(app, raise_server_exceptions=False) as http:
            assert http.portal is not None
            headers = {"authorization": f"Bearer {http.portal.call(service.start)}"}

            def send(id: str) -> Any:
                path, rows = "/v1/streams/posts/items", [{"id": id}]
                return http.post(path, json=rows, headers=headers)

            made = http.post("/v1/streams", json={"name": "posts", **STREAM}, headers=headers)
            assert made.status_code == 201
            assert send("a").status_code == 200
            writing: Any = storage._writing  # type: ignore[attr-defined]
            writing.execute("PRAGMA query_only = ON")  # "attempt to write a readonly database"
            refused = send("b")
            assert (refused.status_code, refused.json()["error"]["code"]) == (503, "store_down")
            assert "retry-after" in refused.headers
            assert http.get("/v1/streams/posts/exits", headers=headers).status_code in (200, 503)
            storage._writing.execute("PRAGMA query_only = OFF")  # type: ignore[attr-defined]
            until(lambda: send("b").status_code == 200)
            assert http.get("/v1/streams/posts/items/a", headers=headers).status_code == 200
            http.portal.call(service.stop)
        assert verify(storage, "posts").ok


READ_ONLY = """
import subprocess, sys
from pathlib import Path
from venire.cli import main
from venire.server.store import Insert, StreamRow, open_storage
folder = Path(sys.argv[1])
subprocess.run(["mount", "-t", "tmpfs", "tmpfs", folder], check=True)
url = f"sqlite:///{folder}/venire.db"
with open_storage(url) as storage:
    storage.write([Insert([StreamRow(name="posts", created_at=0.0)])])
subprocess.run(["mount", "-o", "remount,ro", folder], check=True)
codes = [
    main(["serve", "--storage", url, "--port", "0"]),
    main(["verify", "--storage", url]),
    main(["keys", "list", "--storage", url]),
    main(["backup", "--storage", url, "--to", f"{folder}/copy.db"]),
    main(["export", "--storage", url, "--stream", "posts", "--to", f"{folder}/labels.csv"]),
]
print(codes)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="mounts are Linux's")
def test_commands_on_a_read_only_disk_end_in_a_line(tmp_path: Path) -> None:
    able = subprocess.run(["unshare", "-rm", "true"], capture_output=True, check=False)
    if able.returncode:
        pytest.skip("this user may not mount")
    ran = subprocess.run(
        ["unshare", "-rm", sys.executable, "-c", READ_ONLY, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": SOURCE}, capture_output=True, text=True, timeout=280,
        check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert "Traceback" not in ran.stderr
    codes = json.loads(ran.stdout.splitlines()[-1])
    assert codes[0] == 2, ran.stderr
    assert codes[3:] == [2, 2], ran.stderr
