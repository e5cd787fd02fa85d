"""The JavaScript of plotly, out of its installed package.

The package is never imported, only its file is found and sent. Its version is part of the address,
so browsers keep it for good; it is sent compressed to those that take that.
"""

from __future__ import annotations

import asyncio
import gzip
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

PLOTLY_PATH: Final = "/static/plotly-{version}.js"

#: For a year, which is as good as for ever, and without asking again.
FOR_GOOD: Final = "public, max-age=31536000, immutable"


@cache
def _found() -> tuple[str, Path] | None:
    """The version of the package and where its script is; None if it is not installed."""
    try:
        package = distribution("plotly")
    except PackageNotFoundError:
        return None
    file = Path(str(package.locate_file("plotly/package_data/plotly.min.js")))
    return (package.version, file) if file.is_file() else None


def plotly_address() -> str | None:
    """Where the pages get the script; None without the package: then they show the SVG alone.

    >>> plotly_address() is None or plotly_address().startswith("/static/plotly-")
    True
    """
    found = _found()
    return None if found is None else PLOTLY_PATH.format(version=found[0])


@cache
def _content(compressed: bool) -> bytes:
    found = _found()
    assert found is not None
    content = found[1].read_bytes()
    return gzip.compress(content, 6, mtime=0) if compressed else content


async def send_plotly(request: Request) -> Response:
    """The script, of the version that is installed."""
    found = _found()
    if found is None or request.path_params["version"] != found[0]:
        raise HTTPException(404)
    compressed = "gzip" in request.headers.get("accept-encoding", "")
    tag = f'"{found[0]}{"-gzip" if compressed else ""}"'
    headers = {"cache-control": FOR_GOOD, "etag": tag, "vary": "accept-encoding"}
    if tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    content = await asyncio.to_thread(_content, compressed)
    if compressed:
        headers["content-encoding"] = "gzip"
    headers["x-content-type-options"] = "nosniff"
    return Response(content, headers=headers, media_type="text/javascript")
