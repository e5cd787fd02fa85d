"""Source files and folders as pages of their own, for links that lead out of the documentation.

The site has no network, so a link to code leads to a copy of it.
"""

from __future__ import annotations

import html
from pathlib import Path
from typing import Final

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import TextLexer, get_lexer_for_filename
from pygments.util import ClassNotFound

__all__ = ["address", "page_of"]

_STYLE: Final = (
    "body{margin:1.5rem;font-family:system-ui,sans-serif;color-scheme:light dark}"
    "pre{line-height:1.35}a{color:#0b63c5}"
    "@media(prefers-color-scheme:dark){body{background:#fff;color:#111}}"
)


def address(path: str, is_folder: bool) -> str:
    """Where the page of a file or folder of the repository is.

    >>> address("src/venire/model.py", False), address("src/venire", True)
    ('source/src/venire/model.py.html', 'source/src/venire/index.html')
    """
    return f"source/{path}/index.html" if is_folder else f"source/{path}.html"


def page_of(root: Path, path: str) -> str:
    """The page of a file, with line numbers, or of a folder, with what is in it."""
    at = root / path
    body = _listing(at) if at.is_dir() else _code(at)
    title = html.escape(path)
    css = HtmlFormatter(style="default").get_style_defs(".highlight")
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        '<meta name="viewport" content="width=device-width">'
        f"<style>{_STYLE}{css}</style></head><body><h1>{title}</h1>{body}</body></html>"
    )


def _code(file: Path) -> str:
    text = file.read_text(encoding="utf-8")
    try:
        lexer = get_lexer_for_filename(file.name)
    except ClassNotFound:
        lexer = TextLexer()
    shown: str = highlight(text, lexer, HtmlFormatter(linenos="inline", lineanchors="L"))
    return shown


def _listing(folder: Path) -> str:
    entries = sorted(p for p in folder.iterdir() if p.name[0] not in "._" or p.suffix == ".py")
    listed = (html.escape(p.name + ("/" if p.is_dir() else "")) for p in entries)
    return "<ul>" + "".join(f"<li>{name}</li>" for name in listed) + "</ul>"
