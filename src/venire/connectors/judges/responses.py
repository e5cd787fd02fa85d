"""What a response of the API means: an answer, a reason to retry, to reject, or to stop.

Servers say the same thing in many ways: a spent quota is a 402, or a 429 with a code; an error may
come with status 200; a gateway answers with HTML.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

__all__ = ["Completion", "Halt", "Reject", "Retry", "classify", "fault_of", "retry_after"]

#: Codes of a 429 or 403 after which no request will do any more.
_SPENT = frozenset(
    {
        "insufficient_quota",
        "billing_hard_limit_reached",
        "billing_not_active",
        "account_deactivated",
    }
)
#: What rejections say that are about one item: too long, or against the rules of the server.
_ABOUT_ITEM = (
    *("context length", "context_length", "context window", "too long", "max_length"),
    *("content_filter", "content_policy", "content policy", "content management"),
    *("moderation", "flagged"),
)
_RETRIED = frozenset({408, 409, 425, 429})
_FINAL = {
    401: "the key was refused: check the variable of api_key_env",
    402: "the quota is spent",
    404: "there is no such model or address: check model and base_url",
}


@dataclass(frozen=True)
class Completion:
    """An answer, which may still be a refusal or no label."""

    text: str
    finish: str
    refusal: bool
    tokens: Any
    usage: Mapping[str, Any] | None


@dataclass(frozen=True)
class Retry:
    """The same request may do later; `limited` says that it was one too many."""

    kind: str
    why: str
    after: float | None = None
    limited: bool = False


@dataclass(frozen=True)
class Reject:
    """The request will not do, nor will the same again; `item` says that its item is why."""

    why: str
    item: bool = False


@dataclass(frozen=True)
class Halt:
    """No request will do any more."""

    why: str


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


def fault_of(
    status: int, headers: Mapping[str, str], body: bytes
) -> tuple[Retry | Reject | Halt | None, Any]:
    """What is wrong with a response, if anything, and its JSON (None if it is none).

    >>> fault_of(200, {}, b'{"label": "spam"}')
    (None, {'label': 'spam'})
    """
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):
        said = None
    return _fault(status, headers, body, _error(said)), said


def _fault(
    status: int, headers: Mapping[str, str], body: bytes, error: Mapping[str, Any] | None
) -> Retry | Reject | Halt | None:
    if status == 200 and error is not None:  # some gateways send errors with status 200
        status = error["status"] or 502
    if status == 200:
        return None
    why = _why(status, error, body)
    if error is not None and error["code"] in _SPENT:
        return Halt(why)
    if status in _RETRIED or status >= 500:
        kind = "limited" if status == 429 else "server error"
        return Retry(kind, why, retry_after(headers), limited=status == 429)
    if status in _FINAL or 300 <= status < 400:
        return Halt(f"{why}: {_FINAL.get(status, 'a redirect: check base_url')}")
    return Reject(why, status == 413 or any(word in why.lower() for word in _ABOUT_ITEM))


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


def _error(said: Any) -> dict[str, Any] | None:
    """The error of a response: its code, its message, and the status it has inside."""
    error = said.get("error") if isinstance(said, Mapping) else None
    if not error:
        return None
    if not isinstance(error, Mapping):
        return {"code": None, "message": str(error), "status": None}
    code, kind = error.get("code"), error.get("type")
    status = code if isinstance(code, int) and 300 <= code < 600 else None
    words = [word for word in (code, kind) if isinstance(word, str)]
    spent = next((word for word in words if word in _SPENT), None)
    message = error.get("message")
    return {
        "code": spent or next(iter(words), None),
        "message": message if isinstance(message, str) else "",
        "status": status,
    }


def _why(status: int, error: Mapping[str, Any] | None, body: bytes) -> str:
    """One short line."""
    if error is None:
        text = "" if body.strip() in (b"", b"{}") else body[:80].decode(errors="replace")
    else:
        text = ": ".join(word for word in (error["code"], error["message"]) if word)
    return " ".join(f"{status} {text}".split())[:300]


def retry_after(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """The seconds that a server asks to wait: milliseconds, seconds or a date; None if it does not.

    >>> retry_after({"retry-after": "1", "retry-after-ms": "150"})
    0.15
    >>> noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    >>> retry_after({"retry-after": "Thu, 01 Jan 2026 12:00:30 GMT"}, noon)
    30.0
    """
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name, "")) / unit
        except ValueError:
            continue
        if 0 <= seconds < float("inf"):
            return seconds
    try:
        at = parsedate_to_datetime(headers.get("retry-after", ""))
    except ValueError:
        return None
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return max(0.0, (at - (now or datetime.now(UTC))).total_seconds())
