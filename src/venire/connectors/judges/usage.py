"""What a judge has used: requests, tokens, money, and the faults that it met."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Price", "Usage"]

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
        """The price of tokens read and written."""
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
        """As JSON, for reports."""
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
