"""One judge as it is configured: checked, with defaults, without its key.

Keys that are not known here (`temperature`, `max_tokens`, `seed`, ...) are sent to the API as they
are. An error names the key, what it is and what was expected.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any
from urllib.parse import urlsplit

from venire.connectors.judges.usage import Price
from venire.errors import InputError

__all__ = ["BadKey", "JudgeConfig"]

OPENAI, OPENAI_KEY = "https://api.openai.com/v1", "OPENAI_API_KEY"

#: What may not be sent along, and what to do instead.
_NOT_SENT = {
    "api_key": "keys come from the environment only: name the variable with api_key_env",
    "messages": "write them as prompt and system",
    "n": "ask several times with votes",
    "stream": "answers are read as a whole: leave it out",
}


class BadKey(InputError):
    """A key of a judge is wrong; `path` leads to it.

    >>> str(BadKey(("rpm",), "is 0, expected a number above 0"))
    'rpm is 0, expected a number above 0'
    """

    def __init__(self, path: tuple[str | int, ...], message: str) -> None:
        """The path to the key, and what is wrong with it."""
        self.path, self.message = path, message
        super().__init__(f"{shown_path(path)} {message}".strip())


@dataclass(frozen=True)
class JudgeConfig:
    """What `judges.yaml` says of one judge.

    >>> config = JudgeConfig.read({"id": "a", "model": "m", "prompt": "{{ text }}", "seed": 1,
    ...                            "classes": ["spam", "ok"], "price": {"input": 0.5}})
    >>> config.classes, config.price.input, config.extra
    ({'spam': '', 'ok': ''}, 0.5, {'seed': 1})
    """

    id: str
    model: str
    prompt: str
    base_url: str = OPENAI
    api_key_env: str | None = None
    system: str = ""
    classes: Mapping[str, str] = field(default_factory=dict)
    rpm: float | None = None
    tpm: float | None = None
    max_parallel: int = 16
    num_retries: int = 4
    timeout: float = 60.0
    votes: int = 1
    logprobs: bool = False
    price: Price = field(default_factory=Price)
    pair: tuple[str, str] | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, said: Mapping[str, Any]) -> JudgeConfig:
        """From the keys of one judge; raises `BadKey`."""
        known = {name: check for name, check in _CHECKS.items() if said.get(name) is not None}
        values = {name: check((name,), said[name]) for name, check in known.items()}
        extra = {name: value for name, value in said.items() if name not in _CHECKS}
        for name in extra:
            _check_sent(name, said)
        for name in ("id", "model", "prompt"):
            if name not in values:
                raise BadKey((name,), "is missing: every judge needs an id, a model and a prompt")
        values.setdefault("api_key_env", OPENAI_KEY if "base_url" not in values else None)
        config = cls(**values, extra=extra)
        config._check_pair()
        return config

    def _check_pair(self) -> None:
        if self.pair is not None and len(self.classes) not in (2, 3):
            message = (
                f"has {len(self.classes)} classes, expected the first, the second and optionally "
                "the tie: such as [A, B, tie]"
            )
            raise BadKey(("classes",), message)


def shown_path(path: tuple[str | int, ...]) -> str:
    """A path of keys as text.

    >>> shown_path(("judges", 1, "price", "input"))
    'judges[1].price.input'
    """
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return "".join(parts).removeprefix(".")


Path = tuple[str | int, ...]


def _check_sent(name: str, said: Mapping[str, Any]) -> None:
    if name in _NOT_SENT:
        raise BadKey((name,), f"cannot be sent to the API: {_NOT_SENT[name]}")
    near = difflib.get_close_matches(name, _CHECKS, n=1, cutoff=0.85)
    if near and near[0] not in said:
        raise BadKey((name,), f"is not a key of a judge: did you mean {near[0]}?")


def _text(path: Path, value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise BadKey(path, f"is {value!r}, expected text")
    return value


def _name(path: Path, value: Any) -> str:
    """A name; YAML reads an unquoted yes or no as a truth value."""
    if isinstance(value, bool):
        word = "yes" if value else "no"
        raise BadKey(path, f'is {str(value).lower()}, expected text: put it in quotes, "{word}"')
    return _text(path, str(value) if isinstance(value, int | float) else value)


def _url(path: Path, value: Any) -> str:
    try:
        parts = urlsplit(_text(path, value))
        whole = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # an invalid port
        whole = False
    if not whole:
        raise BadKey(path, f"is {value!r}, expected http://... or https://..., such as {OPENAI}")
    if parts.username or parts.password:
        raise BadKey(path, "has a password in it: name the variable of the key with api_key_env")
    return str(value).rstrip("/")


def _number(path: Path, value: Any) -> float:
    good = isinstance(value, int | float) and not isinstance(value, bool)
    if not good or not (0 < value < math.inf):
        raise BadKey(path, f"is {value!r}, expected a number above 0")
    return float(value)


def _whole(least: int) -> Callable[[Path, Any], int]:
    def check(path: Path, value: Any) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise BadKey(path, f"is {value!r}, expected a whole number, {least} or more")
        return value

    return check


def _truth(path: Path, value: Any) -> bool:
    if not isinstance(value, bool):
        raise BadKey(path, f"is {value!r}, expected true or false")
    return value


def _classes(path: Path, value: Any) -> dict[str, str]:
    if not isinstance(value, list | Mapping):
        raise BadKey(path, f"is {value!r}, expected a list of names, or names with descriptions")
    where: list[Any] = [str(key) for key in value]
    if isinstance(value, list):
        where = list(range(len(value)))
    names = [_name((*path, key), name) for key, name in zip(where, value, strict=True)]
    if len(set(names)) < max(2, len(names)):
        raise BadKey(path, f"is {names}, expected two or more different names")
    about = value.values() if isinstance(value, Mapping) else [""] * len(names)
    return {
        name: "" if text is None else str(text) for name, text in zip(names, about, strict=True)
    }


def _price(path: Path, value: Any) -> Price:
    known = [f.name for f in fields(Price)]
    if not isinstance(value, Mapping) or not set(value) <= set(known):
        raise BadKey(path, f"is {value!r}, expected {{input: ..., output: ...}} per million tokens")
    for name, price in value.items():
        if isinstance(price, bool) or not isinstance(price, int | float) or not price >= 0:
            raise BadKey((*path, name), f"is {price!r}, expected a number, 0 or more")
    return Price(**{name: float(price) for name, price in value.items()})


def _pair(path: Path, value: Any) -> tuple[str, str]:
    named = isinstance(value, list) and len(value) == 2 and all(isinstance(n, str) for n in value)
    if not named or value[0] == value[1]:
        raise BadKey(path, f"is {value!r}, expected the two fields that are compared, as [a, b]")
    return value[0], value[1]


_CHECKS: Mapping[str, Callable[[Path, Any], Any]] = {
    "id": _name,
    "model": _text,
    "prompt": _text,
    "base_url": _url,
    "api_key_env": _text,
    "system": _text,
    "classes": _classes,
    "rpm": _number,
    "tpm": _number,
    "max_parallel": _whole(1),
    "num_retries": _whole(0),
    "timeout": _number,
    "votes": _whole(1),
    "logprobs": _truth,
    "price": _price,
    "pair": _pair,
}
