"""The messages of a question: templates, pictures, the classes, and how to answer.

Templates are jinja2's in its sandbox, which can read the item and compute, and do nothing else.
They see `item`, its fields by name if it has any, `classes` (names), `descriptions` (by name),
`instructions`: which classes there are and in which form to answer, and `own_answer`: what the
judge answered itself (`answer_first`). If no template uses `instructions`, it is the end of the
system message; a reference and an own answer that no template uses are the end of the question.
`{{ photo | image }}` and `{{ clip | audio }}` put a file there: its path, address or data URL is
a part of the message (`Media` reads it when the message is sent).
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping, Sequence
from typing import Any, Final

from venire.connectors.judges.checks import BadKey
from venire.errors import InputError
from venire.tools.lazy import library

__all__ = ["NOT_SURE", "Message", "Prompt", "guessed_tokens", "schema"]

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
    """The fields of an item by name."""
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
