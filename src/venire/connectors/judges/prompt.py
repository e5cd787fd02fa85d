"""The messages of a question: templates, the classes, and how to answer.

Templates are jinja2's in its sandbox, which can read the item and compute, and do nothing else.
They see `item`, its fields by name if it has any, `classes` (names), `descriptions` (by name) and
`instructions`: which classes there are and in which form to answer. If no template uses
`instructions`, it is the end of the system message.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from venire.connectors.judges.checks import BadKey
from venire.errors import InputError
from venire.tools.extras import library

__all__ = ["Prompt", "schema"]


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
    """

    def __init__(self, prompt: str, system: str = "") -> None:
        """Compile both templates; a mistake in one is a `BadKey`."""
        sandbox, meta = library("jinja2.sandbox", "judges"), library("jinja2.meta", "judges")
        self._jinja2 = library("jinja2", "judges")
        strict = self._jinja2.StrictUndefined
        env = sandbox.ImmutableSandboxedEnvironment(undefined=strict, keep_trailing_newline=False)
        self._user = self._compiled(env, "prompt", prompt)
        self._system = self._compiled(env, "system", system)
        used = (meta.find_undeclared_variables(env.parse(text)) for text in (prompt, system))
        self._append = "instructions" not in set().union(*used)

    def messages(self, item: Any, classes: Mapping[str, str]) -> list[dict[str, str]]:
        """The messages that ask about an item."""
        how = instructions(classes)
        fields = {k: v for k, v in item.items() if isinstance(k, str)} if _has_fields(item) else {}
        known = {**fields, "item": item, "classes": list(classes), "descriptions": dict(classes)}
        known["instructions"] = how
        try:
            system, user = self._system.render(known), self._user.render(known)
        except Exception as error:  # whatever a template does with an item
            hint = (
                f"the item has {sorted(fields)}" if fields else "the item has no fields: {{ item }}"
            )
            raise InputError(f"the prompt cannot be filled in: {error}: {hint}") from error
        if self._append:
            system = f"{system}\n\n{how}".strip()
        start = [{"role": "system", "content": system}] if system else []
        return [*start, {"role": "user", "content": user}]

    def _compiled(self, env: Any, key: str, text: str) -> Any:
        try:
            return env.from_string(text)
        except self._jinja2.TemplateSyntaxError as error:
            message = f"is not a jinja2 template, line {error.lineno} of it: {error.message}"
            raise BadKey((key,), message) from None


def _has_fields(item: Any) -> bool:
    return isinstance(item, Mapping)


def instructions(classes: Mapping[str, str]) -> str:
    """Which classes there are, and in which form to answer."""
    lines = [f"- {name}: {about}" if about else f"- {name}" for name, about in classes.items()]
    form = 'Answer with JSON only: {"label": "..."}, where the label is one of these names.'
    return "\n".join(["The classes are:", *lines, form])


def schema(classes: Sequence[str]) -> dict[str, Any]:
    """The `response_format` that lets a server give nothing but one of the classes.

    >>> schema(["a", "b"])["json_schema"]["schema"]["properties"]
    {'label': {'type': 'string', 'enum': ['a', 'b']}}
    """
    answer = {
        "type": "object",
        "properties": {"label": {"type": "string", "enum": list(classes)}},
        "required": ["label"],
        "additionalProperties": False,
    }
    form = {"name": "label", "strict": True, "schema": answer}
    return {"type": "json_schema", "json_schema": form}
