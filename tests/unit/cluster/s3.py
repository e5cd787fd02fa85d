"""A server with the API of S3, moto's, in an environment of its own.

It cannot be a dependency for development: botocore, which it needs, excludes the python-dateutil
of the lock files.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.studio.servers import free_port

#: `moto[server]` would bring 180 MB of other services' needs along.
WANTED = ("moto[s3]==5.2.5", "flask>=3.1", "flask-cors>=5.0")


def home() -> Path:
    """The folder of the environment: `VENIRE_S3`, or one of the user."""
    return Path(os.environ.get("VENIRE_S3", "") or Path.home() / ".cache/venire/s3")


def is_installed() -> bool:
    """Whether the server is there."""
    return any(home().glob("lib/python*/site-packages/moto"))


def install() -> None:
    """From PyPI, 140 MB."""
    subprocess.run([sys.executable, "-m", "venv", str(home())], check=True)
    pip = [str(home() / "bin/python"), "-m", "pip", "install", "--quiet"]
    subprocess.run([*pip, *WANTED], check=True)


@contextmanager
def running(folder: Path) -> Iterator[str]:
    """A server without buckets; its host and port."""
    address = f"127.0.0.1:{free_port()}"
    command = [str(home() / "bin/python"), "-m", "moto.server", "-H", "127.0.0.1"]
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    with (folder / "s3.log").open("wb") as log:
        process = subprocess.Popen(
            [*command, "-p", address.rpartition(":")[2]], env=env, stdout=log, stderr=log
        )
    try:
        end = time.monotonic() + 120
        while not _is_up(address):
            assert process.poll() is None, (folder / "s3.log").read_text()[-2000:]
            assert time.monotonic() < end, "moto's server does not start"
            time.sleep(0.1)
        yield address
    finally:
        process.kill()
        process.wait()


def _is_up(address: str) -> bool:
    try:
        send("GET", f"http://{address}/moto-api/")
    except urllib.error.URLError:
        return False
    return True


def send(method: str, url: str, body: bytes | None = None) -> None:
    """A request that is expected to do what it says."""
    request = urllib.request.Request(url, body, {"Content-Type": "text/plain"}, method=method)
    with urllib.request.urlopen(request) as answer:
        assert answer.status in (200, 204)
