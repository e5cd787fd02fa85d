"""A JSON template of a request, and a path into the answer.

A template is JSON, or YAML, whose texts may hold expressions of jinja2, in its sandbox. A text that
is one expression, `"{{ item.text }}"`, becomes its value, whatever its type; in any other text the
values are filled in. Items are put into the parsed template, so that nothing in an item can change
the structure of the request.

A path is keys and numbers: `predictions[0].label`; `.` is the answer as it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from venire.batch import NoAnswer
from venire.errors import InputError
from venire.tools.extras import library

__all__ = ["Lost", "Template", "at_path", "check_path"]

_ONE = re.compile(r"\s*\{\{((?:(?!\}\}).)*)\}\}\s*", re.S)
_PART = re.compile(r"\.?([^.\[\]]+)|\[(-?\d+)\]")


class Lost(LookupError):
    """There is nothing at a path."""


class Template:
    """A request with items to be filled in: `items`, and `item`, the first of them.

    >>> ask = Template({"inputs": "{{ items | map(attribute='text') | list }}", "kind": "x"})
    >>> ask.fill([{"text": "Buy!"}, {"text": '"see" you'}])
    {'inputs': ['Buy!', '"see" you'], 'kind': 'x'}
    """

    def __init__(self, content: Any) -> None:
        """Compile every text of it."""
        sandbox, self._jinja2 = library("jinja2.sandbox", "judges"), library("jinja2", "judges")
        strict = self._jinja2.StrictUndefined
        self._env = sandbox.ImmutableSandboxedEnvironment(undefined=strict)
        self._content = self._compiled(content)

    def fill(self, items: Sequence[Any]) -> Any:
        """The request; raises `NoAnswer` where the items have not what it needs."""
        known = {"items": list(items), "item": items[0]}
        try:
            filled = self._filled(self._content, known)
            json.dumps(filled, default=self._refuse)
            return filled
        except Exception as fault:  # whatever an expression does with an item
            raise NoAnswer(f"the request cannot be filled in: {fault}") from None

    def _compiled(self, content: Any) -> Any:
        if isinstance(content, Mapping):
            return {str(key): self._compiled(value) for key, value in content.items()}
        if isinstance(content, list | tuple):
            return [self._compiled(value) for value in content]
        if not isinstance(content, str) or "{" not in content:
            return content
        one = _ONE.fullmatch(content)
        try:
            if one is None:
                return _Text(self._env.from_string(content).render)
            return _Text(self._env.compile_expression(one[1], undefined_to_none=False))
        except self._jinja2.TemplateSyntaxError as error:
            message = f"{content!r} of the request is no jinja2 template: {error.message}"
            raise InputError(message) from None

    def _filled(self, content: Any, known: Mapping[str, Any]) -> Any:
        if isinstance(content, dict):
            return {key: self._filled(value, known) for key, value in content.items()}
        if isinstance(content, list):
            return [self._filled(value, known) for value in content]
        if not isinstance(content, _Text):
            return content
        return content.of(**known)

    def _refuse(self, value: Any) -> None:
        if isinstance(value, self._jinja2.Undefined):
            str(value)  # says what is not defined
        raise TypeError(f"{value!r} is no JSON")


class _Text:
    def __init__(self, of: Any) -> None:
        self.of = of


def check_path(path: str) -> str:
    """Refuse what is no path.

    >>> check_path("outputs[0]..label")
    Traceback (most recent call last):
    venire.errors.InputError: got the path 'outputs[0]..label', expected keys and numbers, ...
    """
    if not isinstance(path, str) or "".join(m[0] for m in _PART.finditer(path)) not in (
        path,
        path.removeprefix("."),
    ):
        raise InputError(
            f"got the path {path!r}, expected keys and numbers, such as predictions[0].label"
        )
    return path


def at_path(content: Any, path: str) -> Any:
    """What is at a path; raises `Lost` if nothing is.

    >>> at_path({"outputs": [{"label": "spam"}]}, "outputs[0].label"), at_path([1, 2], "[-1]")
    ('spam', 2)
    """
    for found in _PART.finditer(path):
        key, number = found[1], found[2]
        if number is not None and isinstance(content, list):
            if not -len(content) <= int(number) < len(content):
                raise Lost(f"there is no {path} in the answer")
            content = content[int(number)]
        elif key is not None and isinstance(content, Mapping) and key in content:
            content = content[key]
        else:
            raise Lost(f"there is no {path} in the answer")
    return content
