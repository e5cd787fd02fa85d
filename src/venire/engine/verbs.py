"""What is done to a scheduler between two closes.

Items, work, labels, gold, revisions, routes, repeats.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from venire.engine.registry import contradiction
from venire.engine.views import Readable
from venire.errors import InputError, StateError
from venire.events import (
    Arrived,
    AskedAgain,
    Assigned,
    GoldGiven,
    Observed,
    Released,
    Repeated,
    Revised,
    Routed,
    Sufficed,
    Withdrawn,
)
from venire.model import Assignment, Item, ItemId, Label, LabelerId, Revision, Verdict
from venire.scheduling.kernel.desk import PENDING, TOUCHES

#: Row (-1: the item has left), labeler, what was said, and 0 for VOUCHED, which the queue sets.
Code: TypeAlias = tuple[int, int, int, int]
Heeded: TypeAlias = tuple[Label, Code]


class Verbs(Readable):
    """What is done to a scheduler within a slot."""

    def arrive(self, items: Item | Iterable[Item]) -> None:
        """Items enter; they are outstanding until they leave."""
        state, registry = self.state, self.state.registry
        batch = (items,) if isinstance(items, Item) else tuple(items)
        registry.check_new(batch)
        number = registry.number
        for item in batch:
            excluded = sorted(number[name] for name in item.excluded if name in number)
            group = self._group(item.eligible)
            floor = item.min_confidence
            row = state.bounded.add_row(item.weight, group, excluded, state.slot, floor)
            registry.add(item, row)
        if batch:
            state.quiet = 0
            state.write(Arrived(state.slot, batch))

    def _group(self, eligible: frozenset[LabelerId] | None) -> int:
        registry = self.state.registry
        if eligible not in registry.groups and eligible is not None:
            number = registry.number
            members = sorted(number[name] for name in eligible if name in number)
            registry.add_group(eligible, self.state.queue.add_group(members))
        return registry.groups[eligible]

    def assign(
        self, asked: Iterable[LabelerId] | None = None, ahead: int = 0
    ) -> tuple[Assignment, ...]:
        """Hand out work for this slot; a second call hands out what became possible since.

        With `asked`, these labelers get at most one item each: those who pull their work when
        they are free. Their capacity is then how many they may hold at once, and `ahead` how many
        more, for those who fetch the next item while they label one.

        >>> from venire import Labeler, Scheduler
        >>> s = Scheduler([Labeler("ann", 0.9), Labeler("bob", 0.8)], classes=["spam", "ok"])
        >>> s.arrive([Item("post-1", weight=8), Item("post-2", weight=9)])
        >>> [(a.item, a.labeler) for a in s.assign(asked=["bob"])]
        [('post-1', 'bob')]
        """
        state, registry = self.state, self.state.registry
        names = None if asked is None else tuple(asked)
        numbers = None if names is None else [registry.known(name) for name in names]
        if ahead < 0 or (ahead and names is None):
            raise InputError(
                f"got ahead={ahead} for {'everyone' if names is None else names}, expected 0 or "
                "more, and those who ask"
            )
        made = self._serve(numbers, ahead)
        touches = state.queue.desk.touches
        work = tuple(
            Assignment(
                state.slot,
                registry.items[touches["row"][k]].id,
                registry.labelers[touches["labeler"][k]].id,
                float(touches["gain"][k]),
            )
            for k in made
        )
        if work:
            state.spend(made)
            state.write(Assigned(state.slot, work, names, ahead))
        return work

    def _serve(self, asked: list[int] | None, ahead: int) -> range:
        """Hand out work; near the end of the budget one label after the other."""
        state = self.state
        bounded, purse, slot = state.bounded, state.purse, state.slot
        if purse.budget is None:
            return bounded.serve(slot, asked, ahead)
        desk, prices = state.queue.desk, state.prices
        room = (desk.panel["capacity"] - desk.panel["inflight"]).clip(0)
        room = room.clip(0, len(state.registry.row)).astype(np.int64)
        at_most = room if asked is None else np.bincount(asked, minlength=len(room))
        money, labels = purse.left(state.in_flight + at_most, prices)
        if min(0.0 if money is None else money, 0.0 if labels is None else labels) >= 0.0:
            return bounded.serve(slot, asked, ahead)
        first = int(desk.meta[TOUCHES])
        turns = np.repeat(desk.order, room[desk.order]).tolist() if asked is None else asked
        for m in turns:
            if purse.affords(float(prices[m]), state.in_flight, prices):
                bounded.serve(slot, [m], ahead)
        return range(first, int(state.queue.desk.meta[TOUCHES]))

    def observe(self, labels: Label | Iterable[Label]) -> None:
        """Labels come back: all of them are taken or, if one is refused, none.

        The same label again changes nothing; another one by the same labeler is an error. What
        was said of an item before it left is not remembered after that.
        """
        state, registry = self.state, self.state.registry
        batch = (labels,) if isinstance(labels, Label) else tuple(labels)
        codes = registry.coded(batch)
        heard = np.array([code for code in codes if code[0] >= 0], np.int64)
        if len(heard):
            self._check(batch, heard)
        if any(label.confidence is not None for label in batch) and self._learns_voices:
            new = self._take_one_by_one(batch, codes)
        else:
            fresh = iter(state.bounded.hear(heard, state.slot).tolist() if len(heard) else ())
            new = [
                (label, code)
                for label, code in zip(batch, codes, strict=True)
                if (next(fresh) if code[0] >= 0 else registry.note_late(label))
            ]
        # labels are kept only while there is something to learn
        if state.learning is not None and state.learning.next_refresh(state.slot) is not None:
            state.heard.extend(
                (registry.serials[row] if row >= 0 else registry.left[label.item], m, said)
                for label, (row, m, said, _) in new
            )
        for label, (row, m, said, _) in new:
            state.purse.pay(registry.labelers[m].price)
            if row < 0:
                state.departed.late(label.item, m, said)
        state.write(*[Observed(state.slot, label, row < 0) for label, (row, _, _, _) in new])

    @property
    def _learns_voices(self) -> bool:
        """Whether it is learned what answers are worth by how sure they were."""
        return self.state.learner is not None and self.state.learner.voices

    def _take_one_by_one(self, batch: Sequence[Label], codes: Sequence[Code]) -> list[Heeded]:
        """Take labels that were checked, each in its tone; those that are new.

        The tone is in the code of what was said: the class plus the number of classes times it.
        """
        state, registry, new = self.state, self.state.registry, list[Heeded]()
        for label, (row, m, said, vouched) in zip(batch, codes, strict=True):
            answer = said + len(registry.classes) * state.tones.of(m, label.confidence)
            code = row, m, answer, vouched
            if row < 0:
                fresh = registry.note_late(label)
            else:
                fresh = bool(state.bounded.hear(np.array([code], np.int64), state.slot)[0])
            if fresh:
                new.append((label, code))
                state.tones.note(m, label.confidence)
                if m in state.tones.edges:
                    state.raw.queue.hear_tones()
        return new

    def _check(self, batch: Sequence[Label], labels: NDArray[np.int64]) -> None:
        state = self.state
        place, held = state.bounded.look_up(labels)
        if place >= 0:
            label = [label for label in batch if label.item in state.registry.row][place]
            if held >= 0:
                raise contradiction(label, state.registry.classes[held])
            raise StateError(f"labeler {label.labeler!r} may not label item {label.item!r}")

    def release(self, item: ItemId, labeler: LabelerId, bar: bool = False) -> None:
        """A label will not come: a lease ended, or the labeler gave the work back.

        With `bar` the labeler does not get the item again, even if it does not hold it any more.
        """
        state, row = self.state, self.state.registry.row
        m = state.registry.known(labeler)
        touch = state.queue.find(row[item], m) if item in row else -1
        if bar and item in row and touch < 0:  # its lease had ended before it gave the work back
            state.bounded.bar(row[item], m, state.slot)
            state.write(Released(state.slot, item, labeler, bar))
            return
        if touch < 0 or state.queue.desk.touches["said"][touch] != PENDING:
            raise StateError(
                f"labeler {labeler!r} holds no open assignment of item {item!r}: nothing to release"
            )
        state.bounded.release(touch, state.slot, bar)
        state.write(Released(state.slot, item, labeler, bar))

    def withdraw(self, item: ItemId) -> None:
        """Withdraw an item, without a verdict; its labels in flight are not waited for."""
        state = self.state
        state.gold.pop(item, None), state.sufficed.pop(item, None)
        row = state.registry.outstanding(item)
        state.bounded.withdraw(row)
        state.registry.remove(row)
        state.write(Withdrawn(state.slot, item))

    def suffice(self, item: ItemId, labeler: LabelerId, said: Hashable) -> None:
        """What one labeler said is enough: an open item leaves with it at the end of the slot.

        Nobody is given the item any more, and labels in flight are not waited for. Its confidence
        is how probable that class is by all labels so far; it is not revised by them later. Only
        the first such word of an item counts; what is said to be gold is its verdict all the same.

        >>> from venire import Labeler, Scheduler
        >>> s = Scheduler([Labeler("ann", 0.9), Labeler("bob", 0.8)], ["illegal", "ok"], "everyone")
        >>> s.arrive(Item("post-1", weight=8))
        >>> s.observe([Label("post-1", "ann", "ok"), Label("post-1", "bob", "illegal")])
        >>> s.suffice("post-1", "bob", "illegal")
        >>> for e in s.close():
        ...     print(e.verdict.label, round(e.verdict.confidence, 3), e.reason)
        illegal 0.308 leave_on
        """
        state, registry = self.state, self.state.registry
        code, row = registry.class_of(item, said), registry.outstanding(item)
        if item in state.sufficed:
            return
        state.sufficed[item] = code
        state.bounded.suffice(row, state.slot)
        state.write(Sufficed(state.slot, item, labeler, said))

    def gold(
        self,
        item: ItemId,
        label: Hashable,
        before: Verdict | None = None,
        labels: int = 0,
        *,
        corrects: Hashable | None = None,
        warn: bool = True,
    ) -> bool:
        """Somebody who is trusted says what the class of an item is; False: it teaches nothing.

        An open item is labelled as any other and leaves with that class. One that has left is
        revised; `before` is its verdict, by how many `labels`, where that is not remembered. Its
        labels count as right or wrong when competences are learned, unless it has left and is not
        remembered (see `remember`): then only its verdict is revised, with a warning.

        Gold that was wrong is corrected by saying what it `corrects`: from the next time that
        competences are learned, nothing follows from it any more.

        >>> from venire import Labeler, Scheduler
        >>> s = Scheduler([Labeler("ann", 0.9)], classes=["spam", "ok"])
        >>> s.arrive(Item("post-1"))
        >>> s.gold("post-1", "ok")
        True
        >>> s.observe(Label("post-1", "ann", "spam"))
        >>> s.verdict("post-1")
        Verdict(label='ok', confidence=1.0)
        >>> s.gold("post-1", "spam", corrects="ok")
        True
        >>> s.verdict("post-1").label
        'spam'
        """
        state, registry = self.state, self.state.registry
        code = registry.class_of(item, label)
        if corrects is not None and registry.class_of(item, corrects) == code:
            raise InputError(f"got {label!r} to correct {corrects!r}, expected another class")
        if item in registry.row:
            known = state.gold.get(item)
            if known == code:
                return True
            now = None if known is None else registry.classes[known]
            if now != corrects:
                raise StateError(
                    f"the gold of item {item!r} is {now!r}, got {label!r} in place of "
                    f"{corrects!r}: say corrects={now!r} to correct it"
                )
            state.gold[item], before, labels = code, None, 0
        elif item in state.departed.items:
            kept = state.departed.items[item]
            before, labels = state.verdict(kept.verdict, kept.confidence), len(kept.said)
        elif before is None and item not in registry.left:
            raise InputError(
                f"item {item!r} never arrived, or has left and is forgotten: give gold earlier, "
                "remember more items, or say which verdict it left with"
            )
        state.departed.items.pop(item, None)  # what is known is not revised
        serial = registry.serial_of(item)
        if state.learner is not None and serial is not None:
            state.learner.gold(serial, code)
        state.write(GoldGiven(state.slot, item, label, before, labels, corrects))
        taught = state.learner is None or serial is not None
        if warn and not taught:
            warnings.warn(
                f"item {item!r} has left and is no longer remembered (remember="
                f"{registry.remember}): its verdict is revised, but its labels teach nothing. "
                "Give gold before it leaves, or remember more items",
                stacklevel=2,
            )
        return taught

    def revise(self, item: ItemId, verdict: Verdict, before: Verdict, labels: int) -> None:
        """An item that has left was decided again, by `labels` labels, not by its own alone.

        `before` is the verdict that it had. It is not revised by its own labels from now on.

        >>> from venire import Labeler, Scheduler
        >>> s = Scheduler([Labeler("ann", 0.9)], classes=["spam", "ok"])
        >>> s.revise("post-1", Verdict("ok", 0.97), Verdict("spam", 0.6), labels=5)
        >>> s.log[-1].revision.verdict
        Verdict(label='ok', confidence=0.97)
        """
        state, registry = self.state, self.state.registry
        registry.class_of(item, verdict.label)
        if item in registry.row:
            raise StateError(f"item {item!r} has not left: there is no verdict to revise")
        state.departed.items.pop(item, None)  # its own labels do not decide it any more
        revision = Revision(item, state.slot, before, verdict, labels)
        state.write(Revised(state.slot, revision))

    def route(self, item: ItemId, to: str, target: str, fault: str | None = None) -> None:
        """Write down that the verdict of an item sent it elsewhere, or why it could not."""
        self.state.write(Routed(self.state.slot, item, to, target, fault))

    def ask_again(self, item: ItemId, labeler: LabelerId) -> None:
        """A labeler is given an item again that it has labelled; paid from the budget at once."""
        state = self.state
        state.purse.pay(state.registry.labelers[state.registry.known(labeler)].price)
        state.write(AskedAgain(state.slot, item, labeler))

    def repeat(self, item: ItemId, labeler: LabelerId, before: Hashable, said: Hashable) -> None:
        """Write down what a labeler said who was asked again; no verdict changes by that."""
        self.state.write(Repeated(self.state.slot, item, labeler, before, said))
