"""What templates show: Markdown, times, shares, payloads, changed settings.

Markdown becomes HTML that is safe, whoever wrote it. HTML in the text is shown as text, not taken
over; links lead to http, https and mailto alone; an image is the text that describes it, since a
page loads nothing that a text names. So what comes out holds only the tags in `TAGS` and the
attributes in `ATTRIBUTES`, whatever goes in.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache
from html import escape
from typing import Any, Final

from markdown_it import MarkdownIt
from markdown_it.token import Token

from venire.server.messages import SettingsVersion

TAGS: Final = frozenset(
    {"a", "blockquote", "br", "code", "em", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p"}
    | {"pre", "s", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul"}
)
ATTRIBUTES: Final = frozenset({"dir", "href", "rel", "start", "target"})

#: Blocks whose direction is that of their own text.
_DIRECTED: Final = frozenset(
    {"paragraph_open", "heading_open", "list_item_open", "td_open", "th_open", "blockquote_open"}
)


class _Parser(MarkdownIt):
    """The parser, with the links that are allowed."""

    def validateLink(self, url: str) -> bool:  # noqa: N802 (the library's name)
        """Whether something may be a link."""
        return url.strip().lower().startswith(("http://", "https://", "mailto:"))


#: Characters to parse, and brackets among them: the time grows with the square of the latter, and
#: texts come from anywhere. And cells of a table that has all lines as rows: rows are filled up.
LONGEST: Final = 20_000
MOST_BRACKETS: Final = 1_000
MOST_CELLS: Final = 20_000

_PARSER: Final = _Parser("js-default", {"html": False, "linkify": False, "breaks": True})


def is_short(text: str) -> bool:
    r"""Whether a text can be parsed in a fraction of a second.

    >>> is_short("see [there](https://example.com)"), is_short("![" * 10_000)
    (True, False)
    >>> is_short("a|b\n-|-\n1|2"), is_short("a|" * 2500 + "\n" + "-|" * 2500 + "\n|" * 2500)
    (True, False)
    """
    if len(text) > LONGEST or text.count("[") > MOST_BRACKETS:
        return False
    lines = text.splitlines()
    columns = max((line.count("|") for line in lines), default=0)
    return columns * len(lines) <= MOST_CELLS


@lru_cache(2000)
def as_html(text: str) -> str:
    r"""Markdown as HTML; see above for what that may contain.

    >>> as_html("Say **spam** if it shouts.")
    '<p dir="auto">Say <strong>spam</strong> if it shouts.</p>\n'
    >>> as_html("<script>alert(1)</script>")
    '<p dir="auto">&lt;script&gt;alert(1)&lt;/script&gt;</p>\n'
    """
    return rendered(text) if is_short(text) else f"<pre>{escape(text)}</pre>"


def rendered(text: str) -> str:
    r"""The same of a text that is not kept in memory: a payload, which may be erased.

    >>> rendered("*one*")
    '<p dir="auto"><em>one</em></p>\n'
    """
    tokens = _PARSER.parse(text)
    _order_headings(tokens)
    for token in tokens:
        _tame(token)
        for part in token.children or ():
            _tame(part)
    return str(_PARSER.renderer.render(tokens, _PARSER.options, {}))


def _order_headings(tokens: list[Token]) -> None:
    """Headings below that of the page, from h2 on, and none deeper by more than one level."""
    above: list[str] = []
    for opened, closed in zip(tokens, tokens[2:], strict=False):
        if opened.type == "heading_open":
            while above and above[-1] >= opened.tag:
                above.pop()
            above.append(opened.tag)
            opened.tag = closed.tag = f"h{min(6, 1 + len(above))}"


def _tame(token: Token) -> None:
    """Links in windows of their own, nothing to load, no attribute that is not known."""
    token.info = ""  # the language of a block of code
    token.attrs = {name: value for name, value in token.attrs.items() if name in ATTRIBUTES}
    if token.type in _DIRECTED:
        token.attrSet("dir", "auto")
    if token.type == "link_open":
        token.attrSet("rel", "noopener noreferrer nofollow")
        token.attrSet("target", "_blank")
    elif token.type == "image":
        token.type, token.tag, token.children = "text", "", None


#: Longer texts are cut on the page of an item; the API has all of it.
MOST_TEXT: Final = 20_000


def times(value: float | None) -> str:
    """A moment for people, in UTC.

    >>> times(1e9), times(None)
    ('2001-09-09 01:46:40', '–')
    """
    return "–" if value is None else f"{datetime.fromtimestamp(value, UTC):%Y-%m-%d %H:%M:%S}"


def payload_of(payload: Any) -> str:
    r"""A payload as text: what it says, a line for each field, or its JSON; never HTML.

    >>> payload_of("hello"), payload_of({"text": "hi", "n": 1}), payload_of({"a": [1]})
    ('hello', 'text: hi\nn: 1', '{"a": [1]}')
    """
    if isinstance(payload, dict) and isinstance(payload.get("text"), str) and len(payload) == 1:
        payload = payload["text"]
    elif (
        isinstance(payload, dict)
        and payload
        and not any(isinstance(value, dict | list) for value in payload.values())
    ):
        plain = payload.items()
        payload = "\n".join(f"{k}: {x if isinstance(x, str) else json.dumps(x)}" for k, x in plain)
    text = payload if isinstance(payload, str) else _beginning(payload)
    return text if len(text) <= MOST_TEXT else f"{text[:MOST_TEXT]}…"


def _beginning(payload: Any) -> str:
    """As much of the JSON of a payload as is shown."""
    text = ""
    for piece in json.JSONEncoder(ensure_ascii=False).iterencode(payload):
        text += piece
        if len(text) > MOST_TEXT:
            break
    return text


def percent(p: float) -> str:
    """A probability for people; never 100 % for what is not certain.

    >>> percent(0.5), percent(0.9996), percent(1.0)
    ('50 %', '>99.9 %', '100 %')
    """
    if 0.9995 <= p < 1:
        return ">99.9 %"
    return f"{100 * p:.1f} %".replace(".0 %", " %")


def changed_settings(versions: Sequence[SettingsVersion]) -> list[tuple[SettingsVersion, str]]:
    """Each version of a stream's settings, the latest first, with what it changed."""
    found: list[tuple[SettingsVersion, str]] = []
    before: dict[str, Any] = {}
    status = ""
    for version in versions:
        now = dict.fromkeys(before) | version.settings  # without a field that is empty again
        names = [name for name, value in now.items() if before.get(name) != value]
        said = ", ".join(_setting(name, now[name]) for name in names)
        if version.status != status:
            said = f"{said}; {version.status}" if said and before else said or version.status
        found.append((version, said if before else "created"))
        before, status = version.settings, version.status
    return found[::-1]


def _setting(name: str, value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return f"{name}: {text if len(text) <= 80 else text[:79] + '…'}"
