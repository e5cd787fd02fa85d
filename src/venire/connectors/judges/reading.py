"""What the text of an answer says: the label, why, and how sure; when in doubt, no label.

Taken are a JSON object with `label`, also inside a code fence or among other text, and a text that
is the name of a class and nothing else. Several objects must agree. A name somewhere in a sentence
is not taken: "not spam" is not spam.

How sure a judge is comes from the log-probabilities of its tokens. The answer is
`{"label": "spam"}`, in tokens; each comes with the most probable alternatives. Walking over the
tokens of the value, the confidence is the product of

    P(tokens that continue the label) / P(tokens that continue any class),

the chain rule over the classes that are still possible. Tokens that all classes share say nothing,
and where one class is the beginning of another, the token that ends the value tells them apart.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from venire.model import rationale_of
from venire.tools.http import Halt, Reject, Retry, fault_of

_THOUGHTS = re.compile(r"\A.*</think(?:ing)?>", re.S)
_FENCE = re.compile(r"\A```\w*\n?(.*?)\n?```\Z", re.S)
_DECODER = json.JSONDecoder()


def read_label(text: str, classes: Sequence[str]) -> str | None:
    r"""The class that a text names, if it names exactly one.

    >>> read_label('Sure!\n```json\n{"label": "spam"}\n```', ["spam", "ok"])
    'spam'
    >>> read_label("OK.", ["spam", "ok"]), read_label("not spam", ["spam", "ok"])
    ('ok', None)
    """
    text = _THOUGHTS.sub("", text).strip()
    said = {_as_text(found["label"]) for found in _objects(text) if "label" in found}
    if not said:
        fenced = _FENCE.match(text)
        said = {(fenced[1] if fenced else text).strip().strip("\"'`*.").strip()}
    return _class(said.pop(), classes) if len(said) == 1 else None


def read_rationale(text: str) -> str | None:
    """Why the judge says so: the `rationale` of the object that has the label.

    >>> read_rationale('{"rationale": " It sells watches. ", "label": "spam"}')
    'It sells watches.'
    """
    found = [one for one in _objects(_THOUGHTS.sub("", text)) if "label" in one]
    return rationale_of(found[-1].get("rationale")) if found else None


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _class(name: str, classes: Sequence[str]) -> str | None:
    """The class of this name; else the only one that differs in case or space alone."""
    if name in classes:
        return name
    near = [known for known in classes if known.strip().casefold() == name.strip().casefold()]
    return near[0] if len(near) == 1 else None


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """The JSON objects in a text, the outermost ones."""
    at = text.find("{")
    while at >= 0:
        try:
            found, end = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            end = at + 1
        else:
            yield found
        at = text.find("{", end)


def label_confidence(tokens: Any, label: str, classes: Sequence[str]) -> float | None:
    """The probability of the label among the classes; None if the tokens do not tell.

    >>> top = [{"token": "sp", "logprob": math.log(0.6)}, {"token": "ok", "logprob": math.log(0.2)}]
    >>> said = [{"token": "sp", "logprob": math.log(0.6), "top_logprobs": top},
    ...         {"token": "am", "logprob": 0.0, "top_logprobs": []}]
    >>> round(label_confidence(said, "spam", ["spam", "ok"]), 3)
    0.75
    """
    if not isinstance(tokens, list) or not all(_is_token(token) for token in tokens):
        return None
    text = "".join(token["token"] for token in tokens)
    start = _start(text, label)
    if start is None:
        return None
    sure = 1.0
    for before, token in _inside(tokens, start, start + len(label) + 1):  # and what ends it
        sure *= _share(before, token, label, classes)
    return sure


def _is_token(token: Any) -> bool:
    return isinstance(token, Mapping) and isinstance(token.get("token"), str)


def _start(text: str, label: str) -> int | None:
    """Where the value of `label` begins; without JSON, where the text names the class."""
    found = list(re.finditer(r'"label"\s*:\s*"?' + re.escape(label), text, re.I))
    if found:
        return found[-1].end() - len(label)
    at = text.casefold().find(label.casefold())
    return at if at >= 0 and text.strip().strip("\"'`*.").casefold() == label.casefold() else None


def _inside(
    tokens: list[Mapping[str, Any]], start: int, end: int
) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The tokens that overlap the value, and where in the value each begins (below 0: before)."""
    at = 0
    for token in tokens:
        if at < end and at + len(token["token"]) > start:
            yield at - start, token
        at += len(token["token"])


def _share(before: int, token: Mapping[str, Any], label: str, classes: Sequence[str]) -> float:
    """The share of the label in the mass of the alternatives that continue any class."""
    others = token.get("top_logprobs") or []
    mass = {one["token"]: one.get("logprob") for one in [*others, token] if _is_token(one)}
    lead, said = token["token"][: max(0, -before)], label[: max(0, before)]
    own = whole = 0.0
    for text, logprob in mass.items():
        if not isinstance(logprob, int | float) or not text.startswith(lead):
            continue
        p, after = math.exp(min(0.0, logprob)), said + text[len(lead) :]
        own += p * _continues(after, label)
        whole += p * any(_continues(after, name) for name in classes)
    return own / whole if whole > 0 else 1.0


def _continues(text: str, name: str) -> bool:
    """Whether a text may be the beginning of a class, or of the class and what follows it."""
    text, name = text.casefold(), name.casefold()
    return bool(text) and (
        name.startswith(text) or re.match(re.escape(name) + r"\W", text) is not None
    )


@dataclass(frozen=True)
class Completion:
    """An answer, which may still be a refusal or no label."""

    text: str
    finish: str
    refusal: bool
    tokens: Any
    usage: Mapping[str, Any] | None


def classify(
    status: int, headers: Mapping[str, str], body: bytes
) -> Completion | Retry | Reject | Halt:
    """What a response of a chat completions API means.

    >>> classify(429, {"retry-after": "2"}, b"{}")
    Retry(kind='limited', why='429', after=2.0, limited=True)
    >>> classify(429, {}, b'{"error": {"code": "insufficient_quota", "message": "no money"}}')
    Halt(why='429 insufficient_quota: no money')
    """
    fault, said = fault_of(status, headers, body)
    return _completion(said) if fault is None else fault


def _completion(said: Any) -> Completion | Retry:
    try:
        choice = said["choices"][0]
        message = choice["message"]
        text = _text(message.get("content"))
        refusal, finish = bool(message.get("refusal")), str(choice.get("finish_reason") or "")
        tokens = (choice.get("logprobs") or {}).get("content")
        usage = said.get("usage")
    except (KeyError, IndexError, TypeError, AttributeError):
        return Retry("broken answer", "the answer is not a chat completion")
    return Completion(text, finish, refusal, tokens, usage if isinstance(usage, dict) else None)


def _text(content: Any) -> str:
    """The text of a message: text, or a list of parts."""
    if isinstance(content, list):
        parts = (part.get("text") for part in content if isinstance(part, Mapping))
        return "".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else ""
