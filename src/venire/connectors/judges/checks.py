"""Checks of values in a file: an error names the key, what it is and what was expected."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from venire.errors import InputError

__all__ = [
    "BadKey",
    "Path",
    "check_classes",
    "check_name",
    "check_number",
    "check_text",
    "check_truth",
    "check_url",
    "check_whole",
    "shown_path",
]

Path = tuple[str | int, ...]


class BadKey(InputError):
    """A key of a judge is wrong; `path` leads to it.

    >>> str(BadKey(("rpm",), "is 0, expected a number above 0"))
    'rpm is 0, expected a number above 0'
    """

    def __init__(self, path: tuple[str | int, ...], message: str) -> None:
        """The path to the key, and what is wrong with it."""
        self.path, self.message = path, message
        super().__init__(f"{shown_path(path)} {message}".strip())


def shown_path(path: tuple[str | int, ...]) -> str:
    """A path of keys as text.

    >>> shown_path(("judges", 1, "price", "input"))
    'judges[1].price.input'
    """
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return "".join(parts).removeprefix(".")


def check_text(path: Path, value: Any) -> str:
    """Text with something in it."""
    if not isinstance(value, str) or not value.strip():
        raise BadKey(path, f"is {value!r}, expected text")
    return value


def check_name(path: Path, value: Any) -> str:
    """A name; YAML reads an unquoted yes or no as a truth value."""
    if isinstance(value, bool):
        word = "yes" if value else "no"
        raise BadKey(path, f'is {str(value).lower()}, expected text: put it in quotes, "{word}"')
    return check_text(path, str(value) if isinstance(value, int | float) else value)


def check_url(path: Path, value: Any) -> str:
    """An address without a password, and without a slash at its end."""
    try:
        parts = urlsplit(check_text(path, value))
        whole = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # an invalid port
        whole = False
    if not whole:
        raise BadKey(
            path,
            f"is {value!r}, expected http://... or https://..., such as https://api.openai.com/v1",
        )
    if parts.username or parts.password:
        raise BadKey(path, "has a password in it: name the variable of the key with api_key_env")
    return str(value).rstrip("/")


def check_number(path: Path, value: Any) -> float:
    """A number above 0."""
    good = isinstance(value, int | float) and not isinstance(value, bool)
    if not good or not (0 < value < math.inf):
        raise BadKey(path, f"is {value!r}, expected a number above 0")
    return float(value)


def check_whole(least: int) -> Callable[[Path, Any], int]:
    """A whole number, `least` or more."""

    def check(path: Path, value: Any) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise BadKey(path, f"is {value!r}, expected a whole number, {least} or more")
        return value

    return check


def check_truth(path: Path, value: Any) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise BadKey(path, f"is {value!r}, expected true or false")
    return value


def check_classes(path: Path, value: Any) -> dict[str, str]:
    """Names of classes with their descriptions, which may be empty.

    >>> check_classes(("classes",), ["spam", "ok"])
    {'spam': '', 'ok': ''}
    """
    if not isinstance(value, list | Mapping):
        raise BadKey(path, f"is {value!r}, expected a list of names, or names with descriptions")
    where: list[Any] = [str(key) for key in value]
    if isinstance(value, list):
        where = list(range(len(value)))
    names = [check_name((*path, key), name) for key, name in zip(where, value, strict=True)]
    if len(set(names)) < max(2, len(names)):
        raise BadKey(path, f"is {names}, expected two or more different names")
    about = value.values() if isinstance(value, Mapping) else [""] * len(names)
    return {
        name: "" if text is None else str(text) for name, text in zip(names, about, strict=True)
    }
