"""Items that arrive, work that is handed out, labels that come back or do not."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

import numpy as np

from venire.engine.registry import changed
from venire.engine.state import State
from venire.errors import InputError, StateError
from venire.events import Arrived, Assigned, GoldGiven, Observed, Released, Revised, Withdrawn
from venire.model import Assignment, Item, ItemId, Label, LabelerId, Revision, Verdict
from venire.scheduling.kernel.desk import PENDING, TOUCHES

__all__ = ["Labelling"]


class Labelling:
    """The verbs of a scheduler within a slot; `Scheduler` explains them."""

    def __init__(self, state: State) -> None:
        self._state = state

    def arrive(self, items: Item | Iterable[Item]) -> None:
        """Items enter."""
        state, registry = self._state, self._state.registry
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
        registry = self._state.registry
        if eligible not in registry.groups and eligible is not None:
            number = registry.number
            members = sorted(number[name] for name in eligible if name in number)
            registry.add_group(eligible, self._state.queue.add_group(members))
        return registry.groups[eligible]

    def assign(self, asked: Iterable[LabelerId] | None, ahead: int) -> tuple[Assignment, ...]:
        """Hand out work for this slot, to everybody or to those who asked."""
        state, registry = self._state, self._state.registry
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
        state = self._state
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
        """Labels come back: all of them are taken or, if one is refused, none."""
        state, registry = self._state, self._state.registry
        batch = (labels,) if isinstance(labels, Label) else tuple(labels)
        codes = registry.coded(batch)
        heard = [code for code in codes if code[0] >= 0]
        fresh = iter(self._hear(batch, heard) if heard else ())
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

    def _hear(self, batch: Sequence[Label], heard: list[tuple[int, int, int, int]]) -> list[bool]:
        """Take the labels of outstanding items, if none of them is refused; which are new."""
        state, labels = self._state, np.array(heard, np.int64)
        place, held = state.bounded.look_up(labels)
        if place >= 0:
            label = [label for label in batch if label.item in state.registry.row][place]
            if held >= 0:
                raise changed(label, state.registry.classes[held])
            raise StateError(f"labeler {label.labeler!r} may not label item {label.item!r}")
        fresh: list[bool] = state.bounded.hear(labels, state.slot).tolist()
        return fresh

    def release(self, item: ItemId, labeler: LabelerId, bar: bool) -> None:
        """A label will not come."""
        state, row = self._state, self._state.registry.row
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

    def gold(
        self,
        item: ItemId,
        label: Hashable,
        before: Verdict | None,
        labels: int,
        corrects: Hashable | None,
    ) -> bool:
        """The class of an item is known; whether its labels can be learned from, if any are."""
        state, registry = self._state, self._state.registry
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
        return state.learner is None or serial is not None

    def revise(self, item: ItemId, verdict: Verdict, before: Verdict, labels: int) -> None:
        """An item that has left was decided again."""
        state, registry = self._state, self._state.registry
        registry.class_of(item, verdict.label)
        if item in registry.row:
            raise StateError(f"item {item!r} has not left: there is no verdict to revise")
        state.departed.items.pop(item, None)  # its own labels do not decide it any more
        revision = Revision(item, state.slot, before, verdict, labels)
        state.write(Revised(state.slot, revision))

    def withdraw(self, item: ItemId) -> None:
        """Withdraw an item, without a verdict."""
        state = self._state
        state.gold.pop(item, None)
        row = state.registry.outstanding(item)
        state.bounded.withdraw(row)
        state.registry.remove(row)
        state.write(Withdrawn(state.slot, item))
