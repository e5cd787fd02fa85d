"""One judge as it is configured: checked, with defaults, without its key.

Keys that are not known here (`temperature`, `max_tokens`, `seed`, ...) are sent to the API as they
are. An error names the key, what it is and what was expected.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from venire.connectors.judges.answers import Price
from venire.connectors.judges.cache import digest
from venire.connectors.judges.prompt import NOT_SURE
from venire.files.trees import (
    BadKey,
    Keys,
    check_classes,
    check_name,
    check_number,
    check_text,
    check_truth,
    check_url,
    check_whole,
)

OPENAI, OPENAI_KEY = "https://api.openai.com/v1", "OPENAI_API_KEY"

#: What decides the answers of a judge, and not only when, where and at what price they come.
_DECIDING = (
    *("model", "prompt", "system", "classes", "votes", "logprobs", "pair", "rationale"),
    *("not_sure", "reference", "answer_first", "extra"),
)

#: What may not be sent along, and what to do instead.
_NOT_SENT = {
    "api_key": "keys come from the environment only: name the variable with api_key_env",
    "messages": "write them as prompt and system",
    "n": "ask several times with votes",
    "stream": "answers are read as a whole: leave it out",
}


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
    batch_discount: float = 0.5
    pair: tuple[str, str] | None = None
    family: str | None = None
    trusted: bool = False
    rationale: bool = False
    not_sure: bool = False
    reference: str | None = None
    answer_first: str = ""
    files: str | None = None
    fetch_private: bool = False
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
        if config.not_sure and NOT_SURE in config.classes:
            raise BadKey(("not_sure",), f'and a class called "{NOT_SURE}": drop one of them')
        return config

    @property
    def digest(self) -> str:
        """A fingerprint of what decides its answers: model, prompt, classes and the like.

        >>> said = {"id": "a", "model": "m", "prompt": "{{ text }}"}
        >>> one, other = (JudgeConfig.read(said | {"rpm": rpm}) for rpm in (10, 20))
        >>> one.digest == other.digest != JudgeConfig.read(said | {"model": "n"}).digest
        True
        """
        return digest({name: getattr(self, name) for name in _DECIDING})[:16]

    def _check_pair(self) -> None:
        if self.pair is not None and len(self.classes) not in (2, 3):
            message = (
                f"has {len(self.classes)} classes, expected the first, the second and optionally "
                "the tie: such as [A, B, tie]"
            )
            raise BadKey(("classes",), message)


def _check_sent(name: str, said: Mapping[str, Any]) -> None:
    if name in _NOT_SENT:
        raise BadKey((name,), f"cannot be sent to the API: {_NOT_SENT[name]}")
    near = difflib.get_close_matches(name, _CHECKS, n=1, cutoff=0.85)
    if near and near[0] not in said:
        raise BadKey((name,), f"is not a key of a judge: did you mean {near[0]}?")


def _price(path: Keys, value: Any) -> Price:
    known = [f.name for f in fields(Price)]
    if not isinstance(value, Mapping) or not set(value) <= set(known):
        raise BadKey(path, f"is {value!r}, expected {{input: ..., output: ...}} per million tokens")
    for name, price in value.items():
        if isinstance(price, bool) or not isinstance(price, int | float) or not price >= 0:
            raise BadKey((*path, name), f"is {price!r}, expected a number, 0 or more")
    return Price(**{name: float(price) for name, price in value.items()})


def _share(path: Keys, value: Any) -> float:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 <= value <= 1:
        raise BadKey(path, f"is {value!r}, expected a share from 0 to 1, such as 0.5 for half")
    return float(value)


def _pair(path: Keys, value: Any) -> tuple[str, str]:
    named = isinstance(value, list) and len(value) == 2 and all(isinstance(n, str) for n in value)
    if not named or value[0] == value[1]:
        raise BadKey(path, f"is {value!r}, expected the two fields that are compared, as [a, b]")
    return value[0], value[1]


_CHECKS: Mapping[str, Callable[[Keys, Any], Any]] = {
    "id": check_name,
    "model": check_text,
    "prompt": check_text,
    "base_url": check_url,
    "api_key_env": check_text,
    "system": check_text,
    "classes": check_classes,
    "rpm": check_number,
    "tpm": check_number,
    "max_parallel": check_whole(1),
    "num_retries": check_whole(0),
    "timeout": check_number,
    "votes": check_whole(1),
    "logprobs": check_truth,
    "price": _price,
    "batch_discount": _share,
    "pair": _pair,
    "family": check_name,
    "trusted": check_truth,
    "rationale": check_truth,
    "not_sure": check_truth,
    "reference": check_text,
    "answer_first": check_text,
    "files": check_text,
    "fetch_private": check_truth,
}
