"""What a judge answers, why it gave no label, and what whatever asks a judge may rely on.

    JudgeFault
    ├── NoLabel        it answered, but not with a label: refused, truncated, no class
    │   └── NotSure    it said that it cannot tell
    ├── Unavailable    it cannot be reached for now, or is too busy: ask again later
    └── Stopped        no request can succeed any more: its key, its quota, its model

A worker hands an item after `NoLabel` to other labelers only; after `Unavailable` the same judge
may get it again; after `Stopped` the worker of that judge ends, and the rest of the panel goes on.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from venire.errors import GaveUp, NotNow, VenireError
from venire.estimators.voices import edge


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

    async def close(self) -> None: ...


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


MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Price:
    """The price of a million tokens, in the currency of your bill.

    >>> Price(input=3.0, output=15.0).of(1000, 100)
    0.0045
    """

    input: float = 0.0
    output: float = 0.0

    def of(self, read: int, written: int) -> float:
        return (read * self.input + written * self.output) / MILLION

    def less(self, discount: float) -> Price:
        """The price with a discount, a share.

        >>> Price(input=3.0, output=15.0).less(0.5)
        Price(input=1.5, output=7.5)
        """
        return Price(self.input * (1 - discount), self.output * (1 - discount))


@dataclass
class Usage:
    """Counts of one judge since it was opened.

    `unpriced` are requests that may have cost something, but the answer did not say what: time-outs
    and broken answers. Tokens of answers that were no labels count like any others. `unsure` are
    answers "not sure".
    """

    labels: int = 0
    unsure: int = 0
    cached: int = 0
    requests: int = 0
    unpriced: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    faults: Counter[str] = field(default_factory=Counter)

    def pay(self, price: Price, reported: Mapping[str, Any] | None) -> float:
        """Count the tokens that an answer reports; what they cost.

        >>> usage = Usage()
        >>> usage.pay(Price(10, 0), {"prompt_tokens": 100, "completion_tokens": 5}), usage.unpriced
        (0.001, 0)
        """
        read, written = tokens(reported, "prompt_tokens"), tokens(reported, "completion_tokens")
        if read is None and written is None:
            self.unpriced += 1
        self.input_tokens += read or 0
        self.output_tokens += written or 0
        cost = price.of(read or 0, written or 0)
        self.cost += cost
        return cost

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "faults": dict(sorted(self.faults.items()))}

    def summary(self) -> str:
        """One line.

        >>> Usage(labels=3, requests=4, cost=0.5, faults=Counter(limited=1)).summary()
        '3 labels, 4 requests, 0 answers from the cache, 0 + 0 tokens, cost 0.5; limited: 1'
        """
        tail = ", ".join(f"{kind}: {n:,}" for kind, n in sorted(self.faults.items()))
        lost = f", {self.unpriced:,} requests of unknown cost" if self.unpriced else ""
        lost += f", {self.unsure:,} not sure" if self.unsure else ""
        return (
            f"{self.labels:,} labels, {self.requests:,} requests, "
            f"{self.cached:,} answers from the cache, "
            f"{self.input_tokens:,} + {self.output_tokens:,} tokens, cost {self.cost:.6g}{lost}"
            + (f"; {tail}" if tail else "")
        )


def tokens(reported: Any, name: str) -> int | None:
    """A number of tokens, if the answer has one."""
    value = reported.get(name) if isinstance(reported, Mapping) else None
    return value if isinstance(value, int) and value >= 0 else None
