"""The messages of a question: templates, pictures, the classes, and how to answer.

Templates are jinja2's in its sandbox, which can read the item and compute, and do nothing else.
They see `item`, its fields by name if it has any, `classes` (names), `descriptions` (by name),
`instructions`: which classes there are and in which form to answer, and `own_answer`: what the
judge answered itself (`answer_first`). If no template uses `instructions`, it is the end of the
system message; a reference and an own answer that no template uses are the end of the question.
`{{ photo | image }}` and `{{ clip | audio }}` put a file there: its path, address or data URL is
a part of the message (`Media` reads it when the message is sent).

**Images and sounds in prompts: files of one folder, addresses that are fetched here, data URLs.**

What is sent is always the content, never an address, so that a server of models fetches nothing.
Whoever wrote an item may have written the path or the address in it. So a file is read only from
the folder that was named for them; an address is fetched only if it is public, unless
`fetch_private` says otherwise, as for webhooks; and only what begins as an image or a sound does is
sent.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import re
import secrets
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urljoin

from venire.errors import FetchError, InputError
from venire.files.trees import BadKey
from venire.tools.http import PLAIN, TooLarge, content_of
from venire.tools.lazy import library
from venire.tools.untrusted import resolve

#: What a judge may say in place of a class, if its configuration has `not_sure`.
NOT_SURE: Final = "not sure"

#: What an image or a sound is taken for, in tokens, before the answer says what it was.
MEDIA_TOKENS: Final = 800

Message = dict[str, Any]

#: The variable of a rendering that collects the files which the filters name.
_FILES: Final = "_venire_files"


class Prompt:
    """The templates of one judge.

    >>> prompt = Prompt("Is this spam? {{ text }}", "You moderate posts.")
    >>> system, user = prompt.messages({"text": "Buy!"}, {"spam": "it sells", "ok": ""})
    >>> user["content"]
    'Is this spam? Buy!'
    >>> print(system["content"])
    You moderate posts.
    <BLANKLINE>
    The classes are:
    - spam: it sells
    - ok
    Answer with JSON only: {"label": "..."}, where the label is one of these names.
    >>> first = Prompt("{{ reply }}", answer_first="Cats? {{ photo | image }}")
    >>> (user,) = first.question({"photo": "cat.png"})
    >>> user["content"]
    [{'type': 'text', 'text': 'Cats? '}, {'type': 'image_url', 'image_url': {'url': 'cat.png'}}]
    """

    def __init__(
        self,
        prompt: str,
        system: str = "",
        *,
        answer_first: str = "",
        reference: str | None = None,
        rationale: bool = False,
        not_sure: bool = False,
    ) -> None:
        """Compile the templates; a mistake in one is a `BadKey`."""
        sandbox, meta = library("jinja2.sandbox", "judges"), library("jinja2.meta", "judges")
        self._jinja2 = library("jinja2", "judges")
        strict = self._jinja2.StrictUndefined
        env = sandbox.ImmutableSandboxedEnvironment(undefined=strict, keep_trailing_newline=False)
        self._mark = f"\0{secrets.token_hex(8)}:"  # which no item can write
        env.filters |= {"image": self._filter("image"), "audio": self._filter("audio")}
        texts = {"prompt": prompt, "system": system, "answer_first": answer_first}
        self._templates = {key: self._compiled(env, key, text) for key, text in texts.items()}
        trees = (env.parse(text) for text in (prompt, system))
        used = set().union(*map(meta.find_undeclared_variables, trees))
        self._append = "instructions" not in used
        self._reference = None if reference in used else reference
        self._tell_own = "own_answer" not in used
        self._rationale, self._not_sure = rationale, not_sure

    def messages(
        self, item: Any, classes: Mapping[str, str], own_answer: str | None = None
    ) -> list[Message]:
        """The messages that ask about an item."""
        how = instructions(classes, self._rationale, self._not_sure)
        known = {"classes": list(classes), "descriptions": dict(classes), "instructions": how}
        known |= {} if own_answer is None else {"own_answer": own_answer}
        system, user = self._rendered(("system", "prompt"), item, known)
        if self._append:
            system.append(f"\n\n{how}")
            if all(isinstance(part, str) for part in system):
                system = ["".join(map(str, system)).strip()]
        reference = _fields(item).get(self._reference) if self._reference else None
        if reference not in (None, ""):
            user.append(f"\n\nA correct answer, for reference:\n{reference}")
        if own_answer is not None and self._tell_own:
            user.append(f"\n\nYour own answer, given before you saw this one:\n{own_answer}")
        return _said(system=system, user=user)

    def question(self, item: Any) -> list[Message]:
        """The message that asks the judge for an answer of its own."""
        (user,) = self._rendered(("answer_first",), item, {})
        return _said(user=user)

    def _rendered(
        self, keys: Sequence[str], item: Any, more: Mapping[str, Any]
    ) -> list[list[str | Message]]:
        """The parts of some templates: text, and files."""
        fields, found = _fields(item), list[list[str | Message]]()
        for key in keys:
            files: list[Message] = []
            known = {**fields, "item": item, **more, _FILES: files}
            try:
                text = self._templates[key].render(known)
            except Exception as error:  # whatever a template does with an item
                there = f"the item has {sorted(fields)}"
                hint = there if fields else "the item has no fields: {{ item }}"
                raise InputError(f"the {key} cannot be filled in: {error}: {hint}") from error
            parts = re.split(re.escape(self._mark) + r"(\d+)\0", text)
            found.append(
                [files[int(part)] if n % 2 else part for n, part in enumerate(parts) if part]
            )
        return found

    def _filter(self, kind: str) -> Any:
        """The filter that puts a file into a message."""

        @self._jinja2.pass_context  # type: ignore[untyped-decorator] # jinja2 is not imported
        def put(context: Any, source: Any, detail: str = "") -> str:
            if not isinstance(source, str) or not source:
                got = str(source)[:80]
                raise ValueError(f"got {got!r}, expected a path, an address or a data URL")
            files = context[_FILES]
            if kind == "image":
                part = {"url": source, **({"detail": detail} if detail else {})}
                files.append({"type": "image_url", "image_url": part})
            else:
                files.append({"type": "input_audio", "input_audio": {"data": source}})
            return f"{self._mark}{len(files) - 1}\0"

        return put

    def _compiled(self, env: Any, key: str, text: str) -> Any:
        try:
            return env.from_string(text)
        except self._jinja2.TemplateSyntaxError as error:
            message = f"is not a jinja2 template, line {error.lineno} of it: {error.message}"
            raise BadKey((key,), message) from None


def _fields(item: Any) -> dict[str, Any]:
    named = item.items() if isinstance(item, Mapping) else ()
    return {name: value for name, value in named if isinstance(name, str)}


def _said(**parts: Sequence[str | Message]) -> list[Message]:
    """Messages by role: text alone as text, with files as a list of parts."""
    found: list[Message] = []
    for role, said in parts.items():
        texts = [part for part in said if isinstance(part, str)]
        if len(texts) == len(said):
            content: Any = "".join(texts)
        else:
            content = [{"type": "text", "text": p} if isinstance(p, str) else p for p in said]
        if content or role == "user":
            found.append({"role": role, "content": content})
    return found


def guessed_tokens(messages: Sequence[Message]) -> int:
    """About how many tokens messages have: four characters each, and those of files.

    >>> guessed_tokens([{"role": "user", "content": "Is this spam? Buy!"}])
    4
    """
    total = 0
    for message in messages:
        content = message["content"]
        for part in [{"text": content}] if isinstance(content, str) else content:
            total += len(part["text"]) // 4 if "text" in part else MEDIA_TOKENS
    return total


def instructions(
    classes: Mapping[str, str], rationale: bool = False, not_sure: bool = False
) -> str:
    """Which classes there are, and in which form to answer."""
    lines = [f"- {name}: {about}" if about else f"- {name}" for name, about in classes.items()]
    if rationale:
        form = (
            'Answer with JSON only: {"rationale": "...", "label": "..."}: first why, in one to '
            "three sentences, then the label, which is one of these names."
        )
    else:
        form = 'Answer with JSON only: {"label": "..."}, where the label is one of these names.'
    told = [f'If you cannot tell, the label is "{NOT_SURE}".'] if not_sure else []
    return "\n".join(["The classes are:", *lines, form, *told])


def schema(
    classes: Sequence[str], rationale: bool = False, not_sure: bool = False
) -> dict[str, Any]:
    """The `response_format` that lets a server give nothing but one of the classes.

    >>> schema(["a", "b"])["json_schema"]["schema"]["properties"]
    {'label': {'type': 'string', 'enum': ['a', 'b']}}
    >>> list(schema(["a", "b"], rationale=True)["json_schema"]["schema"]["properties"])
    ['rationale', 'label']
    """
    names = [*classes, *([NOT_SURE] if not_sure else [])]
    fields: dict[str, Any] = {"rationale": {"type": "string"}} if rationale else {}
    fields["label"] = {"type": "string", "enum": names}
    answer = {
        "type": "object",
        "properties": fields,
        "required": list(fields),
        "additionalProperties": False,
    }
    form = {"name": "label", "strict": True, "schema": answer}
    return {"type": "json_schema", "json_schema": form}


#: Bytes of one image or sound, seconds for fetching one, and redirects on the way.
MOST: Final = 20 * 1024 * 1024
SECONDS: Final = 30.0
REDIRECTS: Final = 3

#: Bytes of fetched files that are kept for the next judge.
KEPT: Final = 64 * 1024 * 1024

_PRIVATE: Final = "it is fetched only with fetch_private: true"

#: How files begin; `.` is any byte.
_BEGINNINGS: Final = {
    "image/png": [b"\x89PNG\r\n\x1a\n"],
    "image/jpeg": [b"\xff\xd8\xff"],
    "image/gif": [b"GIF87a", b"GIF89a"],
    "image/webp": [b"RIFF....WEBP"],
    "audio/wav": [b"RIFF....WAVE"],
    "audio/mp3": [b"ID3", b"\xff\xfb", b"\xff\xf3", b"\xff\xf2"],
}


class File(NamedTuple):
    """What a file is, and its bytes."""

    kind: str
    content: bytes


def kind_of(content: bytes) -> str | None:
    r"""The type of an image or a sound, by how it begins; None if it is neither.

    >>> kind_of(b"\x89PNG\r\n\x1a\n..."), kind_of(b"RIFF\0\0\0\0WAVE"), kind_of(b"root:x:0:0")
    ('image/png', 'audio/wav', None)
    """
    for kind, beginnings in _BEGINNINGS.items():
        for begins in beginnings:
            pattern = re.escape(begins).replace(rb"\.", b".")
            if re.match(pattern, content, re.S):
                return kind
    return None


class Media:
    """Reads the files that messages name; shared by all judges of a panel."""

    def __init__(self, folder: str | Path | None = None, fetch_private: bool = False) -> None:
        """`folder` is where files are; without one, items may name addresses and data URLs only."""
        self._folder = None if folder is None else Path(folder).resolve()
        self._private = fetch_private
        self._kept: OrderedDict[str, asyncio.Task[File]] = OrderedDict()

    def named(self, messages: Sequence[Message]) -> list[Message]:
        """The messages with digests in place of the content of files, as names for a cache."""
        return [_with_files(message, self._name) for message in messages]

    async def filled(self, messages: Sequence[Message]) -> list[Message]:
        """The messages as they are sent: with the content of their files."""
        sources = {source for message in messages for source in _sources(message)}
        files = {source: await self._file(source) for source in sorted(sources)}
        return [_with_files(message, lambda source: files[source]) for message in messages]

    def _name(self, source: str) -> str:
        """An address is its name; anything else is named by its content."""
        if _is_address(source):
            return source
        content = _of_data(source) if source.startswith("data:") else self._read(source)
        return f"sha256:{hashlib.sha256(content).hexdigest()}"

    async def _file(self, source: str) -> File:
        if _is_address(source):
            return await self._shared(source)
        content = _of_data(source) if source.startswith("data:") else self._read(source)
        return _checked(source, content)

    def _read(self, source: str) -> bytes:
        """A file of the folder."""
        if self._folder is None:
            raise InputError(
                f"got the file {source[:200]!r}, but no folder for files: name it with files: in "
                "the file of judges"
            )
        path = (self._folder / source).resolve()
        if not path.is_relative_to(self._folder):
            raise InputError(f"got the file {source[:200]!r}, expected one below {self._folder}")
        try:
            if path.stat().st_size > MOST:
                raise InputError(f"{path} is larger than {MOST:,} bytes")
            return path.read_bytes()
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            raise InputError(f"{path} cannot be read ({why}): check the path") from None

    async def _shared(self, url: str) -> File:
        """What is at an address, fetched once for all judges that ask at about the same time."""
        task = self._kept.get(url)
        if task is None or (task.done() and (task.cancelled() or task.exception() is not None)):
            task = self._kept[url] = asyncio.ensure_future(self._fetched(url))
        self._kept.move_to_end(url)
        found = await asyncio.shield(task)
        done = [one for one in self._kept.values() if one.done() and not one.cancelled()]
        size = sum(len(one.result().content) for one in done if one.exception() is None)
        while size > KEPT and len(self._kept) > 1:
            _, old = self._kept.popitem(last=False)
            size -= len(old.result().content) if old.done() and not old.exception() else 0
        return found

    async def _fetched(self, url: str) -> File:
        httpx = library("httpx2", "judges")
        at = url
        try:
            async with (
                asyncio.timeout(SECONDS),
                httpx.AsyncClient(timeout=None, trust_env=False, headers=PLAIN) as client,
            ):
                for _ in range(1 + REDIRECTS):
                    target = await resolve(at, self._private, _PRIVATE)
                    sni = {"sni_hostname": target.host} if target.scheme == "https" else None
                    async with client.stream(
                        "GET", target.url, headers={"host": target.name}, extensions=sni
                    ) as got:
                        if got.status_code == 200:
                            return _checked(url, await content_of(got, MOST))
                        if got.status_code not in (301, 302, 303, 307, 308):
                            raise FetchError(f"{url[:200]} answers with {got.status_code}")
                        at = urljoin(at, got.headers.get("location", ""))
        except TimeoutError:
            raise FetchError(f"{url[:200]}: no answer within {SECONDS:g} seconds") from None
        except (httpx.HTTPError, TooLarge) as error:
            raise FetchError(f"{url[:200]}: {error or type(error).__name__}") from None
        raise FetchError(f"{url[:200]} redirects more than {REDIRECTS} times")


def _is_address(source: str) -> bool:
    return source[:8].lower().startswith(("http://", "https://"))


def _of_data(source: str) -> bytes:
    """The content of a data URL."""
    head, _, data = source.partition(",")
    if not head.endswith(";base64") or len(data) > MOST * 4 // 3 + 4:
        raise InputError(
            f"got {source[:60]!r}, expected data:image/png;base64,... of at most {MOST:,} bytes"
        )
    try:
        return base64.b64decode(data, validate=True)
    except binascii.Error as error:
        raise InputError(f"got {source[:60]!r}, which is not base64: {error}") from None


def _checked(source: str, content: bytes) -> File:
    kind = kind_of(content)
    if kind is None:
        raise InputError(
            f"{source[:200]!r} is neither an image (PNG, JPEG, GIF, WebP) nor a sound (WAV, MP3)"
        )
    return File(kind, content)


def _sources(message: Message) -> list[str]:
    """The files that a message names."""
    content = message["content"]
    parts = [] if isinstance(content, str) else content
    return [
        p["image_url"]["url"] if "image_url" in p else p["input_audio"]["data"]
        for p in parts
        if "text" not in p
    ]


def _with_files(message: Message, put: Any) -> Message:
    """A message with a file, or a name, in place of each source."""
    content = message["content"]
    if isinstance(content, str):
        return message
    return {**message, "content": [_part(part, put) for part in content]}


def _part(part: Mapping[str, Any], put: Any) -> Mapping[str, Any]:
    if "image_url" in part:
        image = part["image_url"]
        found = put(image["url"])
        return {**part, "image_url": {**image, "url": _url(image["url"], found)}}
    if "input_audio" not in part:
        return part
    source = part["input_audio"]["data"]
    found = put(source)
    if isinstance(found, str):
        return {**part, "input_audio": {"data": found}}
    if not found.kind.startswith("audio/"):
        raise InputError(f"{source[:200]!r} is {found.kind}, expected a sound (WAV, MP3)")
    data = base64.b64encode(found.content).decode()
    return {**part, "input_audio": {"data": data, "format": found.kind.removeprefix("audio/")}}


def _url(source: str, found: str | File) -> str:
    if isinstance(found, str):
        return found
    if not found.kind.startswith("image/"):
        raise InputError(f"{source[:200]!r} is {found.kind}, expected an image")
    return f"data:{found.kind};base64,{base64.b64encode(found.content).decode()}"
