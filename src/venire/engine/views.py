"""What can be read off a scheduler; nothing here changes anything."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable

import numpy as np

from venire.engine.bounded_queue import BoundedClerk
from venire.engine.departed import Departed
from venire.engine.registry import Roll
from venire.model import Bounds, Item, ItemId, Labeler, LabelerId, Verdict
from venire.paper import utility
from venire.scheduling.base import Learner, Policy
from venire.scheduling.state.desk import COUNTER

__all__ = ["Reader"]


class Reader:
    """The part of a scheduler that only reads."""

    slot: int
    _quiet: int
    policy: Policy
    _roll: Roll
    _books: BoundedClerk  # as it was left: a change of panel or settings may not be filed yet
    _learner: Learner | None
    _heard: list[tuple[int, int, int]]
    _departed: Departed

    @property
    def _clerk(self) -> BoundedClerk:
        """The clerk, with everything filed by the panel, the belief and the policy of now.

        Filing takes time for each item, so that it waits until somebody looks: a thousand
        labelers who join one after the other cost as much as one.
        """
        if self._books.stale:
            self._books.refresh(self.slot)
        return self._books

    @property
    def is_filed(self) -> bool:
        """Whether nothing waits to be filed."""
        return not self._books.stale

    def file(self) -> None:
        """File now what waits for it, for whoever does not want to wait when it looks.

        >>> from venire import Labeler, Scheduler
        >>> s = Scheduler([Labeler("ann", 0.9)], classes=["spam", "ok"])
        >>> s.join(Labeler("bob", 0.8))
        >>> s.is_filed, s.file(), s.is_filed
        (False, None, True)
        """
        self._books.refresh(self.slot)

    @property
    def classes(self) -> tuple[Hashable, ...]:
        """What a label may say."""
        return self._roll.classes

    @property
    def bounds(self) -> Bounds:
        """What holds for every item."""
        return self._books.bounds

    @property
    def revisions(self) -> int:
        """Of how many items that left last the verdicts are looked at again."""
        return self._departed.most

    @property
    def panel(self) -> tuple[Labeler, ...]:
        """Everybody who is, or was, on the panel."""
        return tuple(self._roll.labelers)

    @property
    def seated(self) -> tuple[LabelerId, ...]:
        """Those who are on the panel and have not left.

        >>> from venire import Labeler, Scheduler
        >>> s = Scheduler([Labeler("ann", 0.9), Labeler("bob", 0.8)], classes=["spam", "ok"])
        >>> s.leave("ann")
        >>> s.seated
        ('bob',)
        """
        able = zip(self._roll.labelers, self._books.capacity.tolist(), strict=True)
        return tuple(who.id for who, capacity in able if capacity > 0)

    @property
    def outstanding(self) -> tuple[ItemId, ...]:
        """The items that have not left, the earliest arrival first."""
        return tuple(self._roll.items[row].id for row in self._clerk.outstanding())

    def item(self, item: ItemId) -> Item:
        """An outstanding item.

        >>> from venire import Item, Labeler, Scheduler
        >>> s = Scheduler([Labeler("ann", 0.9)], classes=["spam", "ok"])
        >>> s.arrive(Item("post-1", weight=8))
        >>> s.item("post-1").weight
        8.0
        """
        return self._roll.items[self._roll.outstanding(item)]

    @property
    def competences(self) -> dict[LabelerId, float] | None:
        """What is believed of each labeler; None while nothing is known."""
        if self._books.belief is None:
            return None
        known = self._books.belief.competences.tolist()
        return {who.id: p for who, p in zip(self._roll.labelers, known, strict=True)}

    @property
    def by_worth(self) -> tuple[LabelerId, ...]:
        """Everybody on the panel, those first whose labels are believed to tell the most.

        Among equals those who gave fewer labels since competences were learned last.

        >>> from venire import Labeler, Scheduler
        >>> Scheduler([Labeler("ann", 0.7), Labeler("bob", 0.9)], classes=["spam", "ok"]).by_worth
        ('bob', 'ann')
        """
        desk = self._clerk.desk
        given = np.bincount([m for _, m, _ in self._heard], minlength=len(desk.panel))
        order = desk.order[np.lexsort((given[desk.order], -desk.panel["evidence"][desk.order]))]
        return tuple(self._roll.labelers[m].id for m in order)

    @property
    def in_flight(self) -> tuple[tuple[ItemId, LabelerId], ...]:
        """The assignments whose labels have not come, the earliest first."""
        items, labelers = self._roll.items, self._roll.labelers
        return tuple((items[row].id, labelers[m].id) for row, m in self._clerk.in_flight())

    @property
    def counters(self) -> dict[str, int]:
        """What the policy counted since it took over, by name; empty for most."""
        return self.policy.counters(self._clerk.desk.meta[COUNTER:])

    @property
    def price(self) -> float | None:
        """What a unit of evidence cost when work was last handed out; None without prices."""
        return self.policy.price(self._clerk.desk.gauges)

    def verdict(self, item: ItemId) -> Verdict:
        """What the labels of an outstanding item say so far.

        Of an item that has left, what was said of it last, as long as it may be revised.
        """
        kept = self._departed.items.get(item)
        if kept is not None and item not in self._roll.row:
            return self._verdict(kept.verdict, kept.confidence)
        return self._verdict(*self._clerk.decide(self._roll.outstanding(item)))

    def posterior(self, item: ItemId) -> dict[Hashable, float]:
        """How probable each class is, by the labels that an outstanding item has so far.

        >>> from venire import Bounds, Item, Label, Labeler, Scheduler
        >>> s = Scheduler([Labeler("ann", 0.9)], classes=["spam", "ok"])
        >>> s.arrive(Item("post-1"))
        >>> s.observe(Label("post-1", "ann", "ok"))
        >>> {k: round(p, 3) for k, p in s.posterior("post-1").items()}
        {'spam': 0.1, 'ok': 0.9}
        """
        self._clerk.decide(self._roll.outstanding(item))
        scores = self._clerk.desk.scores
        odds = scores.copy() if self._clerk.belief is None else np.exp(scores - scores.max())
        total = float(odds.sum())
        share = odds / total if total else np.full(len(odds), 1 / len(odds))
        return dict(zip(self.classes, share.tolist(), strict=True))

    def ranking(self, labeler: LabelerId, limit: int = 10) -> list[tuple[ItemId, float]]:
        """What the labeler could be given now, by the gain of one label, the largest first.

        This is Algorithm 1's measure; other policies look at more than that.

        >>> from venire import Bounds, Item, Label, Labeler, Scheduler
        >>> s = Scheduler([Labeler("ann", 0.9)], classes=["spam", "ok"])
        >>> s.arrive([Item("post-1", weight=8), Item("post-2", weight=9)])
        >>> [(item, round(gain, 2)) for item, gain in s.ranking("ann")]
        [('post-2', 5.26), ('post-1', 4.68)]
        """
        m, rows = self._roll.known(labeler), self._clerk.desk.rows
        reach = float(self._clerk.desk.panel["reach"][m])
        found = []
        for row in self._clerk.outstanding().tolist():
            if self._clerk.find(row, m) < 0 and self._clerk.in_group(row, m):
                left = utility.residual(float(rows["weight"][row]), float(rows["evidence"][row]))
                found.append((utility.gain(left, reach, self.slot - int(rows["last"][row])), -row))
        best = sorted(found, reverse=True)[:limit]
        return [(self._roll.items[-row].id, gain) for gain, row in best]

    def fingerprint(self) -> str:
        """A digest of the whole state; equal for equal logs."""
        clerk = self._clerk
        names = (
            self.slot,
            self._quiet,
            self._roll.state(),
            self._heard,
            clerk.bounds,
            sorted(clerk.retired),
            self._departed.most,
            self._departed.state(),
        )
        digest = hashlib.sha256(repr(names).encode())
        for column in clerk.columns():
            digest.update(np.ascontiguousarray(column).tobytes())
        learned = {} if self._learner is None else self._learner.state()
        for name in sorted(learned):
            digest.update(np.ascontiguousarray(learned[name]).tobytes())
        return digest.hexdigest()

    def _verdict(self, code: int, confidence: float) -> Verdict:
        return Verdict(self.classes[code] if code >= 0 else None, confidence)
