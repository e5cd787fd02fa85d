"""What a response of a chat completions API means: an answer, or a fault."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from venire.tools.http.retries import Halt, Reject, Retry, fault_of

__all__ = ["Completion", "classify"]


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
