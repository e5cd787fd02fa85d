"""Links of the documentation that lead out of docs/: to pages of the project, or to its code."""

from __future__ import annotations

import html
import os
import re
from pathlib import Path
from typing import Final

from tools.site import sources

__all__ = ["PROJECT", "Links"]

#: Files at the root that are pages of the site, by their place in it.
PROJECT: Final = {
    name: f"project/{name.lower()}" for name in ("CONTRIBUTING.md", "RELEASING.md", "CHANGELOG.md")
}
_LINK: Final = re.compile(r"(?<!!)\[(?P<text>[^\]]*)\]\((?P<to>[^)\s#]+)(?P<anchor>#[^)\s]*)?\)")
_REMOTE: Final = re.compile(r"[a-z]+:")


class Links:
    """Changes links, and remembers which files and folders of the repository they lead to."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.shown: set[str] = set()

    def of(self, page: str, file: str, text: str) -> str:
        """The text of a page with its links changed; `file` is where it is in the repository."""
        return _LINK.sub(lambda found: self._changed(page, file, found), text)

    def _changed(self, page: str, file: str, found: re.Match[str]) -> str:
        if _REMOTE.match(found["to"]):
            return found[0]
        path = os.path.normpath(os.path.join(os.path.dirname(file), found["to"]))
        if not (self._root / path).exists():
            return found[0]
        to = self._page_of(path)
        if to is not None:
            relative = os.path.relpath(to, os.path.dirname(page) or ".")
            return f"[{found['text']}]({relative}{found['anchor'] or ''})"
        self.shown.add(path)
        to = sources.address(path, (self._root / path).is_dir())
        relative = os.path.relpath(to, os.path.dirname(page) or ".")
        return f'<a href="{relative}">{_plain(found["text"])}</a>'

    def _page_of(self, path: str) -> str | None:
        if path in ("README.md", "docs", "docs/README.md"):
            return "index.md"
        if path in PROJECT:
            return PROJECT[path]
        if path.startswith("docs/"):
            return path.removeprefix("docs/")
        return None


def _plain(text: str) -> str:
    """The text of a link as HTML.

    >>> _plain("see `a<b`")
    'see <code>a&lt;b</code>'
    """
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", html.escape(text))
