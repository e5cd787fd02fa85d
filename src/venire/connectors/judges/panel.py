"""The judges of a file, opened; whether they answer; and those of them that compare pairs.

Judges prefer what they read first, or last. A judge with `pair: [a, b]` is asked twice about an
item, once with the fields `a` and `b` exchanged, and the second answer is turned back. The first
two classes say which position wins, a third one that none does. If the order decides, the label is
that third class, as is usual; without one there is no label. The position bias is measured.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from venire.connectors.judges.answers import Answer, Cache, JudgeFault, NoLabel, Usage, pooled
from venire.connectors.judges.batches import BatchBook
from venire.connectors.judges.config import JudgeConfig, read_judges
from venire.connectors.judges.judge import Judge
from venire.connectors.judges.prompt import Media
from venire.errors import FileError, InputError
from venire.files.trees import BadKey


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


class PairJudge(Judge):
    """A judge that compares two fields of an item, in both orders."""

    def __init__(
        self,
        config: JudgeConfig,
        cache: Cache | None = None,
        media: Media | None = None,
        book: BatchBook | None = None,
    ) -> None:
        """`config` must have a `pair`."""
        if config.pair is None:
            raise InputError(f"judge {config.id} has no pair: name the two fields, as pair: [a, b]")
        super().__init__(config, cache, media, book)
        self.bias, self._fields = PositionBias(), config.pair

    @property
    def price(self) -> float:
        """What a label costs, about: that of both orders."""
        return super().price * (1 if self.usage.labels and self.usage.cost else 2)

    def forecast(self, items: Sequence[Any]) -> tuple[int, int, int]:
        return super().forecast([one for item in items for one in (item, self._swapped(item))])

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
        orders = (self.ask(one, classes) for one in (item, self._swapped(item)))
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
        self.usage = Usage()
        try:
            for item in items:
                if not self.forecast([item])[0]:
                    with suppress(JudgeFault):
                        await self.answer(item)
        finally:
            self.usage = used

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


@asynccontextmanager
async def open_judges(
    path: str | Path, cache: str | Path | None = None
) -> AsyncIterator[dict[str, Judge]]:
    """The judges of a file by name; their answers are kept in the file `cache`, if one is given."""
    kept = Cache(cache)
    judges: dict[str, Judge] = {}
    try:
        judges |= {judge.id: judge for judge in judges_of(path, kept)}
        yield judges
    finally:
        await asyncio.gather(*(judge.close() for judge in judges.values()))
        kept.close()


def judges_of(
    path: str | Path,
    cache: Cache,
    files: str | Path | None = None,
    book: BatchBook | None = None,
) -> list[Judge]:
    """The judges of a file, which the caller closes.

    `files` is the folder of images and sounds where the file of judges names none. With a `book`
    questions are sent as batches.
    """
    media: dict[tuple[str, bool], Media] = {}
    judges: list[Judge] = []
    for config in read_judges(path):
        folder = config.files or files
        shared = (str(folder), config.fetch_private)
        seen = media.setdefault(shared, Media(folder, config.fetch_private))
        try:
            kind = Judge if config.pair is None else PairJudge
            judges.append(kind(config, cache, seen, book))
        except BadKey as bad:
            raise FileError(path, None, f"judge {config.id}: {bad}") from None
    return judges


async def check_judges(judges: Sequence[Judge], item: Any) -> list[str]:
    """Ask every judge one question, once: an error names those that cannot answer.

    Returns what is worth a warning: judges that did not answer in time, or are busy. The answers
    are kept in the cache, so that they are not paid for again.
    """
    said = await asyncio.gather(*(one.probe(item) for one in judges), return_exceptions=True)
    for one in said:
        if isinstance(one, BaseException) and not isinstance(one, JudgeFault):
            raise one
    faults: dict[str, list[str]] = {}
    for fault in said:
        if isinstance(fault, JudgeFault):
            faults.setdefault(fault.why, []).append(fault.judge)
    if faults:
        others = sum(one == "" for one in said)
        some = "" if not others else f" ({others} other{'' if others == 1 else 's'} can be asked)"
        named = (
            f"judge{'s' * (len(who) > 1)} {', '.join(who)}: {why}" for why, who in faults.items()
        )
        raise InputError(
            f"{'; '.join(named)}. Check base_url (up to and with /v1), model and key in the file "
            f"of judges{some}; nothing else was asked"
        )
    return [one for one in said if isinstance(one, str) and one]
