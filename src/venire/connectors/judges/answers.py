"""What a judge answers, why it gave no label, and what whatever asks a judge may rely on.

    JudgeFault
    ├── NoLabel        it answered, but not with a label: refused, truncated, no class
    │   └── NotSure    it said that it cannot tell
    ├── Unavailable    it cannot be reached for now, or is too busy: ask again later
    └── Stopped        no request will do any more: its key, its quota, its model

A worker hands an item after `NoLabel` to other labelers only; after `Unavailable` the same judge
may get it again; after `Stopped` the worker of that judge ends, and the rest of the panel goes on.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from venire.connectors.judges.usage import Usage
from venire.errors import GaveUp, NotNow, VenireError
from venire.estimators.voices import edge

__all__ = [
    "Answer",
    "Answers",
    "JudgeFault",
    "NoLabel",
    "NotSure",
    "Stopped",
    "Unavailable",
    "pooled",
    "voices",
]


@dataclass(frozen=True, slots=True)
class Answer:
    """A label, how sure the judge was, what this answer cost now, and why it said so.

    Confidence and rationale are None where the judge did not say them. An answer out of the cache
    costs nothing.

    >>> Answer("spam", 0.9, rationale="It sells watches.").rationale
    'It sells watches.'
    """

    label: str
    confidence: float | None = None
    cost: float = 0.0
    rationale: str | None = None


class JudgeFault(VenireError):
    """A judge gave no label; `cost` is what its tokens cost all the same.

    >>> str(NoLabel("strict", "it refused")), NoLabel("strict", "it refused", cost=0.5).cost
    ('judge strict: it refused', 0.5)
    """

    def __init__(self, judge: str, why: str, cost: float = 0.0) -> None:
        """Which judge, and why."""
        self.judge, self.why, self.cost = judge, why, cost
        super().__init__(f"judge {judge}: {why}")


class NoLabel(JudgeFault):
    """The judge answered, but not with one of the classes; another labeler should be asked."""


class NotSure(NoLabel):
    """The judge said that it cannot tell."""


class Unavailable(JudgeFault, NotNow):
    """The judge cannot answer for now; the same item may be asked again."""


class Stopped(JudgeFault, GaveUp):
    """The judge cannot answer any more: spent quota, wrong key, unknown model."""


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


def voices(answers: Iterable[tuple[str, str, Answer]]) -> list[tuple[str, str, str]]:
    """Rows (item, labeler, label) for `LabelTable.from_rows`, of (item, judge, answer).

    A judge that says how sure it is becomes two labelers, `judge (sure)` and `judge (unsure)`,
    whose skills are learned (`venire.estimators.voices`). Judges without confidence, or with always
    the same, keep one voice.

    >>> rows = [("a", "j", Answer("spam", 0.9)), ("b", "j", Answer("ok", 0.6))]
    >>> voices([*rows, ("a", "k", Answer("ok"))])
    [('a', 'j (sure)', 'spam'), ('b', 'j (unsure)', 'ok'), ('a', 'k', 'ok')]
    """
    said = list(answers)
    known: dict[str, list[float]] = defaultdict(list)
    for _, judge, answer in said:
        if answer.confidence is not None:
            known[judge].append(answer.confidence)
    edges = {judge: edge(values) for judge, values in known.items()}
    return [
        (item, _voice(judge, answer, edges.get(judge)), answer.label)
        for item, judge, answer in said
    ]


def _voice(judge: str, answer: Answer, border: float | None) -> str:
    if border is None or answer.confidence is None:
        return judge
    return f"{judge} (sure)" if answer.confidence >= border else f"{judge} (unsure)"
