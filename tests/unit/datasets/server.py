"""A small web server on this machine: files, ranges, and everything that may go wrong."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Site:
    """What is served under which path, and how badly."""

    files: dict[str, bytes] = field(default_factory=dict)
    ranges: bool = True
    #: Break off after so many bytes of a body, this often.
    cut: int | None = None
    cuts: int = 1
    asked: list[tuple[str, str | None]] = field(default_factory=list)
    url: str = ""

    def body(self, path: str) -> bytes | None:
        return self.files.get(path.lstrip("/"))


def _handler(site: Site) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = self.headers.get("Range")
            site.asked.append((self.path, asked))
            body = site.body(self.path)
            if body is None:
                self.send_error(404)
                return
            start = 0
            if asked and site.ranges:
                start = int((re.findall(r"\d+", asked) or ["0"])[0])
                if start >= len(body):
                    self.send_error(416)
                    return
            self.send_response(206 if start else 200)
            self.send_header("Content-Length", str(len(body) - start))
            self.end_headers()
            rest = body[start:]
            if site.cut is not None and site.cuts > 0:
                site.cuts -= 1
                rest = rest[: site.cut]
            self.wfile.write(rest)
            self.close_connection = True

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler


@contextmanager
def serving(site: Site) -> Iterator[Site]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(site))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    site.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield site
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
