"""Pairwise judgements: both orders are asked, and the position bias is measured.

Judges prefer what they read first, or last. A judge with `pair: [a, b]` is asked twice about an
item, once with the fields `a` and `b` exchanged, and the second answer is turned back. The first
two classes say which position wins, a third one that none does. If the order decides, the label is
that third class, as is usual; without one there is no label.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from venire.connectors.judges.answers import Answer, JudgeFault, NoLabel, Usage, pooled
from venire.connectors.judges.judge import Judge
from venire.errors import InputError
from venire.tools.http import Closing


@dataclass
class PositionBias:
    """How often a judge says "the first" more often than the pairs call for.

    Over both orders of a pair a judge without bias says "the first" as often as "the second".
    `bias` is the mean of (firsts - seconds) / 2 over the pairs: 0 without bias, 1 if it always
    takes the first. `flips` are the pairs whose verdict depends on the order.

    >>> seen = PositionBias()
    >>> for first, second in [(1, -1), (1, 1), (-1, 1), (1, 1)]:
    ...     seen.count(first, second)
    >>> seen.bias, seen.flips, round(seen.error, 2)
    (0.5, 2, 0.29)
    """

    pairs: int = 0
    flips: int = 0
    total: float = 0.0
    squares: float = 0.0

    def count(self, straight: int, swapped: int) -> None:
        """What was said in each order: 1 the first, -1 the second, 0 neither."""
        lean = (straight + swapped) / 2
        self.pairs += 1
        self.flips += straight != -swapped
        self.total += lean
        self.squares += lean**2

    @property
    def bias(self) -> float:
        """From -1, always the second, to 1, always the first."""
        return self.total / self.pairs if self.pairs else 0.0

    @property
    def error(self) -> float:
        """The standard error of `bias`; infinite with fewer than two pairs."""
        if self.pairs < 2:
            return math.inf
        spread = max(0.0, self.squares / self.pairs - self.bias**2)
        return math.sqrt(spread / (self.pairs - 1))

    def summary(self) -> str:
        """One line.

        >>> PositionBias(4, 2, 2.0, 2.0).summary()
        'position bias +0.50 ± 0.29 over 4 pairs, 50 % depend on the order'
        """
        share = self.flips / self.pairs if self.pairs else 0.0
        return (
            f"position bias {self.bias:+.2f} ± {self.error:.2f} over {self.pairs:,} pairs, "
            f"{share:.0%} depend on the order".replace("%", " %")
        )


class PairJudge(Closing):
    """A judge that compares two fields of an item, in both orders."""

    def __init__(self, judge: Judge) -> None:
        """`judge` must have `pair` in its configuration."""
        if judge.config.pair is None:
            raise InputError(f"judge {judge.id} has no pair: name the two fields, as pair: [a, b]")
        self.id, self.usage, self.config = judge.id, judge.usage, judge.config
        self.family, self.trusted = judge.family, judge.trusted
        self.bias, self.digest = PositionBias(), judge.digest
        self._judge, self._fields = judge, judge.config.pair

    @property
    def stopped(self) -> str | None:
        return self._judge.stopped

    @property
    def parallel(self) -> int:
        return self._judge.parallel

    @property
    def price(self) -> float:
        """What a label costs, about: that of both orders."""
        return self._judge.price * (1 if self.usage.labels and self.usage.cost else 2)

    def classes(self, classes: Sequence[str] | None = None) -> Mapping[str, str]:
        """The classes with their descriptions: its own, which must be those of the stream."""
        return self._judge.classes(classes)

    async def close(self) -> None:
        await self._judge.close()

    async def probe(self, item: Any, classes: Sequence[str] | None = None) -> str:
        """Ask one question about one order, to see whether there are answers (`Judge.probe`)."""
        return await self._judge.probe(item, classes)

    @property
    def written(self) -> int:
        return self._judge.written

    def forecast(self, items: Sequence[Any]) -> tuple[int, int, int]:
        """How many questions all items are in both orders (`Judge.forecast`)."""
        return self._judge.forecast([one for item in items for one in (item, self._swapped(item))])

    def _swapped(self, item: Any) -> dict[str, Any]:
        """The item with the two fields exchanged."""
        left, right = self._fields
        if not isinstance(item, Mapping) or left not in item or right not in item:
            raise InputError(
                f"judge {self.id} compares {left} and {right}: the item has no such fields"
            )
        return {**item, left: item[right], right: item[left]}

    async def answer(self, item: Any, classes: Sequence[str] | None = None) -> Answer:
        """Which of the two wins; raises a `JudgeFault` if there is no label."""
        orders = (self._judge.ask(one, classes) for one in (item, self._swapped(item)))
        said = await asyncio.gather(*orders, return_exceptions=True)
        cost = sum(one.cost for one in said if isinstance(one, Answer | JudgeFault))
        for one in said:
            if isinstance(one, BaseException):
                if isinstance(one, JudgeFault):
                    one.cost = cost
                raise one
        answers = [one for one in said if isinstance(one, Answer)]
        return self._both(answers[0], answers[1], cost)

    async def recount(self, items: Iterable[Any]) -> None:
        """Measure the bias anew over all of these pairs that the cache answers.

        Pairs of earlier runs are among them; nothing is asked, and nothing else is counted.
        """
        used, self.bias = self.usage, PositionBias()
        self.usage = self._judge.usage = Usage()
        try:
            for item in items:
                if not self.forecast([item])[0]:
                    with suppress(JudgeFault):
                        await self.answer(item)
        finally:
            self.usage = self._judge.usage = used

    def _both(self, straight: Answer, swapped: Answer, cost: float) -> Answer:
        names = list(self.config.classes)
        first, second, *tie = names
        position = {first: 1, second: -1}
        self.bias.count(position.get(straight.label, 0), position.get(swapped.label, 0))
        back = {first: second, second: first}
        turned = Answer(back.get(swapped.label, swapped.label), swapped.confidence)
        shares = pooled([straight, turned], names)
        best = [name for name in names if shares[name] == max(shares.values())]
        label = best[0] if len(best) == 1 else next(iter(tie), None)
        if label is None:
            self.usage.faults["order decides"] += 1
            raise NoLabel(self.id, "its answer depends on the order of the two", cost)
        self.usage.labels += 1
        both = ((straight.label, straight.rationale), (turned.label, swapped.rationale))
        why = next((text for said, text in both if said == label and text), None)
        if why is None and straight.label != turned.label:  # the order decides: both reasons
            whys = [f"{said}: {text}" for said, text in both if text]
            why = " | exchanged, ".join(whys) or None
        return Answer(label, shares[label], cost, why)
