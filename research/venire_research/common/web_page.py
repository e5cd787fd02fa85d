"""The frame of an HTML report: one file with its style and pictures, which opens offline."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from html import escape

__all__ = ["closing", "data_url", "opening"]


def opening(title: str, style: str) -> Iterator[str]:
    r"""Everything up to the first heading.

    >>> list(opening("Results", ""))[-1]
    '<title>Results</title>\n<style></style>\n</head>\n<body>'
    """
    yield '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>{escape(title)}</title>\n<style>{style}</style>\n</head>\n<body>"


def closing() -> str:
    """The end of the page."""
    return "</body>\n</html>"


def data_url(picture: bytes, kind: str) -> str:
    """A picture as a URL that holds it; `kind` is png or svg+xml.

    >>> data_url(b"abc", "png")
    'data:image/png;base64,YWJj'
    """
    return f"data:image/{kind};base64,{base64.b64encode(picture).decode()}"
