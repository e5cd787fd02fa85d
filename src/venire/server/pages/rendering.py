"""What templates show: Markdown, payloads, times, shares, changed settings.

Markdown becomes HTML that is safe, whoever wrote it. HTML in the text is shown as text, not taken
over; links lead to http, https and mailto alone; an image is the text that describes it, since a
page loads nothing that a text names. So what comes out holds only the tags in `TAGS` and the
attributes in `ATTRIBUTES`, whatever goes in.

The labelling page shows a payload by the stream's layout, or by the payload's shape. It gets a list
of parts, each of a kind that it knows how to draw: `text` (with `marks`), `markdown` (as HTML that
is safe), `code`, `image`, `audio`, `table`. A payload stays data: what is not one of these is drawn
as text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from html import escape
from itertools import accumulate, islice
from typing import Any, Final

from markdown_it import MarkdownIt
from markdown_it.token import Token

from venire.server.messages import SettingsVersion
from venire.server.settings import Block

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


def seconds(value: float | None) -> str:
    """A time span for people.

    >>> seconds(0.25), seconds(75), seconds(7300), seconds(None)
    ('0.2 s', '1 min 15 s', '2 h 1 min', '–')
    """
    if value is None:
        return "–"
    if value < 60:
        return f"{value:.1f} s" if value < 10 else f"{value:.0f} s"
    whole = round(value)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def number(value: float | None, digits: int = 0) -> str:
    """A number for people.

    >>> number(12345), number(0.5, 2), number(None)
    ('12,345', '0.50', '–')
    """
    return "–" if value is None else f"{value:,.{digits}f}"


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


_IMAGE: Final = re.compile(r"data:image/(png|jpeg|gif|webp|avif);base64,", re.I)
_AUDIO: Final = re.compile(r"data:audio/[\w.+-]+;base64,", re.I)

#: What to mark in a text: words to look for, their characters together, places to mark, and
#: comparisons of characters (those of the text times those of the words; what lies behind is not
#: marked).
MOST_MARKS: Final = 200
MOST_SOUGHT: Final = 20_000
MOST_PLACES: Final = 1_000
MOST_COMPARED: Final = 20_000_000

#: Rows of a table, and characters of the path of a field: each row repeats those above it.
MOST_ROWS: Final = 2_000
LONGEST_PATH: Final = 200

#: Characters of an image that the console shows: a page may have twenty of them.
LONGEST_PICTURE: Final = 400_000

#: Marks of Markdown: a block of code in fences; a heading, a row below the head of a table, a
#: second entry of a list, words in bold, code in a line, a link.
_FENCED: Final = re.compile(r"^ {0,3}(`{3,}|~{3,})[^`\n]*\n(?s:.*?)^ {0,3}\1", re.M)
_MARKED: Final = re.compile(
    r"^ {0,3}#{1,6} +\S|^ {0,3}\|?(?: *:?-{2,}:? *\|)+(?: *:?-{2,}:?)? *$"
    r"|^ {0,3}(?:[-*+]|\d{1,3}[.)]) +\S.*\n+ {0,3}(?:[-*+]|\d{1,3}[.)]) +\S"
    r"|\*\*[^*\s][^*\n]*\*\*|`[^`\n]+`|\]\(https?://",
    re.M,
)

#: Names of fields, by what they hold. Of two responses, the pairs of names that are usual.
IMAGES: Final = ("image", "image_url", "picture")
AUDIOS: Final = ("audio", "audio_url", "sound")
PROMPTS: Final = ("prompt", "question", "instruction", "input", "query")
RESPONSES: Final = ("response", "answer", "output", "completion", "reply")
TEXTS: Final = ("text", "content", "body", "message", "comment")
_SIDES: Final = (("_a", "_b"), ("_1", "_2"), ("1", "2"))
PAIRS: Final = (
    *((f"{name}{one}", f"{name}{two}") for name in RESPONSES for one, two in _SIDES),
    *(("a", "b"), ("A", "B"), ("first", "second"), ("left", "right"), ("chosen", "rejected")),
)


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the page. `rows` are those of a table, `marks` the places to mark in a text."""

    kind: str
    text: str = ""
    title: str = ""
    beside: bool = False
    marks: tuple[tuple[int, int], ...] = ()
    rows: tuple[tuple[str, str], ...] = ()

    def as_json(self) -> dict[str, Any]:
        """As the page gets it, without what is empty."""
        shown = {name: value for name, value in asdict(self).items() if value or name == "text"}
        if shown.pop("marks", None):
            shown["pieces"] = self._pieces()
        return shown

    def _pieces(self) -> list[tuple[str, bool]]:
        """The text in pieces, and whether each is marked: browsers count characters otherwise."""
        pieces, end = [], 0
        for start, stop in self.marks:
            pieces += [(self.text[end:start], False), (self.text[start:stop], True)]
            end = stop
        return [piece for piece in [*pieces, (self.text[end:], False)] if piece[0]]


def lay_out(payload: Any, item: str, blocks: Sequence[Block] = ()) -> list[dict[str, Any]]:
    r"""The parts that show a payload; its item's id if there is nothing in it.

    >>> parts = lay_out({"prompt": "2+2?", "response": "4"}, "i")
    >>> [(part["title"], part["text"]) for part in parts]
    [('Prompt', '2+2?'), ('Response', '4')]
    >>> lay_out({"user": {"name": "Ann"}}, "i", [Block(field="user.name", show="markdown")])
    [{'kind': 'markdown', 'text': '<p dir="auto">Ann</p>\n'}]
    """
    named = [block for block in blocks if _field(payload, block.field) is not None]
    try:
        parts = [_shown(block, payload) for block in named] or _by_shape(payload, item)
    except RecursionError:
        parts = [Part("text", f"{item}: the payload is nested too deeply to be shown")]
    return [part.as_json() for part in parts]


def pictures_of(payload: Any, blocks: Sequence[Block] = ()) -> list[str]:
    """The images of a payload that the pages of the console show: `data:` URLs, not too long.

    >>> pictures_of({"image": "data:image/png;base64,AAAA", "text": "a cat"})
    ['data:image/png;base64,AAAA']
    >>> pictures_of({"image": "https://example.com/cat.png"})
    []
    """
    named = [block for block in blocks if _field(payload, block.field) is not None]
    if named:
        chosen = [block for block in named if block.show in ("auto", "image")]
        found = [_field(payload, block.field) for block in chosen]
    else:
        try:
            found = [part.text for part in _by_shape(payload, "") if part.kind == "image"]
        except RecursionError:
            found = []
    texts = [text for text in found if isinstance(text, str) and len(text) <= LONGEST_PICTURE]
    return [text for text in texts if _IMAGE.match(text)]


def _field(payload: Any, path: str) -> Any:
    """The field of a payload; None if there is none.

    >>> _field({"messages": [{"content": "hi"}]}, "messages.0.content")
    'hi'
    """
    found = payload
    if isinstance(payload, Mapping) and path in payload:
        return payload[path]
    for name in path.split(".") if path else ():
        if isinstance(found, Mapping):
            found = found.get(name)
        elif isinstance(found, list) and name.isdecimal() and int(name) < len(found):
            found = found[int(name)]
        else:
            return None
    return found


def _shown(block: Block, payload: Any) -> Part:
    """A block of the stream's layout."""
    value, kind = _field(payload, block.field), block.show
    if kind == "auto":
        part = _plain(value)
    elif kind == "table":
        part = _table(value)
    elif kind == "markdown":
        part = _markdown(_text(value))
    else:
        part = Part(kind, _text(value))
    marks = _marks(part.text, _field(payload, block.highlight)) if block.highlight else ()
    return replace(part, title=block.title, beside=block.beside, marks=marks)


def _markdown(text: str) -> Part:
    """Markdown, or the text itself if to parse it might take long."""
    return Part("markdown", rendered(text)) if is_short(text) else Part("text", text)


def _plain(value: Any) -> Part:
    """A value by its own shape: an image, a sound, a table, or text."""
    if isinstance(value, str):
        if _IMAGE.match(value) or _AUDIO.match(value):
            return Part("image" if _IMAGE.match(value) else "audio", value)
        return _post(value)
    if isinstance(value, Mapping) and value:
        return _table(value)
    return Part("code" if isinstance(value, list | Mapping) else "text", _text(value))


def _post(text: str) -> Part:
    r"""What somebody wrote, as it was written; Markdown where it has a block of code in fences.

    >>> _post("**Buy** now").kind, _post("Why?\n```\nx = 1\n```").kind
    ('text', 'markdown')
    """
    return _markdown(text) if is_short(text) and _FENCED.search(text) else Part("text", text)


def _speech(text: str, title: str) -> Part:
    """A prompt, a response or a message: Markdown if it has the marks of that.

    >>> _speech("Use `sort`.", "Response").kind, _speech("2 * 3 * 4 = 24", "Response").kind
    ('markdown', 'text')
    """
    marked = is_short(text) and (_MARKED.search(text) or _FENCED.search(text))
    return replace(_markdown(text) if marked else _plain(text), title=title)


def _text(value: Any) -> str:
    """A value as people read it."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, indent=2 if isinstance(value, list | dict) else 0)


def _table(value: Any) -> Part:
    """The fields of an object, or the rows of a list, by name: as many as anybody would read."""
    rows = tuple(islice(_rows(value, ""), MOST_ROWS + 1))
    if len(rows) > MOST_ROWS:
        rows = (*rows[:MOST_ROWS], ("…", "there is more, which is not shown"))
    return Part("table", rows=rows)


def _rows(value: Any, above: str) -> Iterator[tuple[str, str]]:
    """The fields of a value by their paths; a list of plain values is one row.

    >>> list(_rows({"name": "Ann", "home": {"city": "Ulm"}, "tags": ["a", 1]}, ""))
    [('name', 'Ann'), ('home.city', 'Ulm'), ('tags', 'a, 1')]
    """
    if isinstance(value, Mapping) and value:
        for name, inner in value.items():
            yield from _rows(inner, _path(above, str(name)))
    elif isinstance(value, list) and any(isinstance(one, list | Mapping) for one in value):
        for place, inner in enumerate(value, 1):
            yield from _rows(inner, _path(above, str(place)))
    elif isinstance(value, list) and value:
        yield above, ", ".join(_text(one) for one in value)
    else:
        yield above, _text(value)


def _path(above: str, name: str) -> str:
    """The path of a field; a very long one is cut.

    >>> _path("home", "city"), len(_path("home", "x" * 1_000_000))
    ('home.city', 200)
    """
    path = f"{above}.{name[:LONGEST_PATH]}" if above else name
    return path if len(path) <= LONGEST_PATH else f"{path[: LONGEST_PATH - 1]}…"


def _marks(text: str, spans: Any) -> tuple[tuple[int, int], ...]:
    """Where to mark a text: pairs [start, end], or every place of some words; in order, merged.

    >>> _marks("to be or not to be", ["be", [0, 2]])
    ((0, 2), (3, 5), (16, 18))
    """
    wanted = spans[:MOST_MARKS] if isinstance(spans, list) else [spans]
    words = [span for span in wanted if isinstance(span, str) and span]
    found = list(islice(_places(text, words), MOST_PLACES))
    for span in wanted:
        if isinstance(span, list) and len(span) >= 2 and all(type(x) is int for x in span[:2]):
            found.append((max(0, span[0]), min(len(text), span[1])))
    merged: list[tuple[int, int]] = []
    for start, end in sorted(pair for pair in found if pair[0] < pair[1]):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], end)
        else:
            merged.append((start, end))
    return tuple(merged)


def _places(text: str, words: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Where the words are, in as much of the text as can be searched for them quickly."""
    ends = accumulate(len(word) for word in words)  # to compile one takes long if it is long
    sought = [word for word, end in zip(words, ends, strict=True) if end <= MOST_SOUGHT]
    reach = MOST_COMPARED // max(1, sum(len(word) for word in sought))
    for word in sought:
        for place in re.compile(re.escape(word), re.I).finditer(text, 0, reach):
            yield place.span()


# the shape of a payload


def _by_shape(payload: Any, item: str) -> list[Part]:
    """The parts of a payload for which the stream has no layout."""
    if payload is None:
        return [Part("text", item)]
    if isinstance(payload, list):
        return _messages(payload) or [_plain(payload)]
    if not isinstance(payload, Mapping):
        return [_plain(payload)]
    return _messages(payload.get("messages")) or _named(payload) or [_plain(payload)]


def _messages(found: Any) -> list[Part]:
    """A conversation: a list of objects with a role and a content."""
    if not isinstance(found, list) or not found:
        return []
    if not all(isinstance(x, Mapping) and isinstance(x.get("content"), str) for x in found):
        return []
    return [_speech(x["content"], _title(str(x.get("role", "")))) for x in found]


def _named(payload: Mapping[str, Any]) -> list[Part]:
    """The fields whose names say what they are: media, a prompt, one or two responses, a text."""
    parts = [Part("image", payload[name]) for name in _some(payload, IMAGES)]
    parts += [Part("audio", payload[name]) for name in _some(payload, AUDIOS)]
    prompts, texts = _some(payload, PROMPTS)[:1], _some(payload, TEXTS)[:1]
    two = next((pair for pair in PAIRS if len(_some(payload, pair)) == 2), None)
    listed = payload.get("responses")
    if isinstance(listed, list) and len(listed) == 2 and all(isinstance(x, str) for x in listed):
        answers = [_speech(text, title) for text, title in zip(listed, "AB", strict=True)]
    elif two is not None and (prompts or two != ("a", "b")):
        answers = [_speech(payload[name], _title(name)) for name in two]
    else:
        answers = [_speech(payload[n], _title(n)) for n in _some(payload, RESPONSES)[:1]]
    if len(answers) == 2:
        answers[1] = replace(answers[1], beside=True)
    if not answers:
        named = texts or (prompts if parts else [])
        return parts + [_post(payload[name]) for name in named]
    parts += [_speech(payload[name], _title(name)) for name in [*prompts, *texts]]
    return parts + answers


def _some(payload: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    """Those of the names that are fields with a text."""
    return [name for name in names if isinstance(payload.get(name), str)]


def _title(name: str) -> str:
    """A name as a heading.

    >>> _title("response_a")
    'Response A'
    """
    words = name.replace("_", " ").split()
    return " ".join(word.capitalize() if len(word) > 1 else word.upper() for word in words)
