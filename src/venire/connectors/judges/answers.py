"""What a judge answers, and what whatever asks a judge may rely on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from venire.connectors.judges.usage import Usage

__all__ = ["Answer", "Answers", "pooled"]


@dataclass(frozen=True, slots=True)
class Answer:
    """A label, how sure the judge was (None if it did not say), and what this answer cost now.

    An answer out of the cache costs nothing.

    >>> Answer("spam", 0.9)
    Answer(label='spam', confidence=0.9, cost=0.0)
    """

    label: str
    confidence: float | None = None
    cost: float = 0.0


@runtime_checkable
class Answers(Protocol):
    """A labeler that is asked with `await`: a judge, or a judge that compares pairs."""

    id: str
    usage: Usage

    @property
    def stopped(self) -> str | None:
        """Why it will not answer any more, if so."""
        ...

    @property
    def parallel(self) -> int:
        """How many questions it answers at once."""
        ...

    @property
    def price(self) -> float:
        """What a label costs, about; what one did cost is in its answer."""
        ...

    async def answer(self, item: Any, classes: Sequence[str] | None = None) -> Answer:
        """Label an item; raises a `JudgeFault` if there is no label."""
        ...

    async def close(self) -> None:
        """Close the connections."""
        ...


def pooled(answers: Sequence[Answer], classes: Sequence[str]) -> Mapping[str, float]:
    """The mean of several answers as a share for each class.

    An answer gives its class its confidence (1 if it has none), and the others the rest in equal
    parts.

    >>> pooled([Answer("a"), Answer("b"), Answer("a", 0.8)], ["a", "b"])
    {'a': 0.6, 'b': 0.4}
    """
    shares = dict.fromkeys(classes, 0.0)
    for answer in answers:
        sure = 1.0 if answer.confidence is None else answer.confidence
        rest = (1.0 - sure) / max(1, len(classes) - 1)
        for name in shares:
            shares[name] += sure if name == answer.label else rest
    return {name: round(share / len(answers), 12) for name, share in shares.items()}
