"""What the verbs of a scheduler do: items arrive, work is handed out, labels come, slots end."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from venire.budget import Budget
from venire.costs import Costs
from venire.engine.bounded_queue import Purse
from venire.engine.queue import untracked
from venire.engine.registry import Heard, Kept, changed
from venire.engine.state import State, no_competence
from venire.errors import InputError, StateError
from venire.events import (
    Arrived,
    Assigned,
    Changed,
    Closed,
    GoldGiven,
    Joined,
    Left,
    Observed,
    Released,
    Revised,
    Sufficed,
    Withdrawn,
)
from venire.model import (
    Assignment,
    Bounds,
    Exit,
    ExitReason,
    Item,
    ItemId,
    Label,
    Labeler,
    LabelerId,
    Revision,
    Verdict,
)
from venire.scheduling.base import Learning
from venire.scheduling.by_name import learning_named, policy_named
from venire.scheduling.kernel.desk import PENDING, REASONS, TOUCHES
from venire.scheduling.kernel.verdicts import check_c, probabilities

if TYPE_CHECKING:
    from venire.estimators.dependence import Families

#: Row (-1: the item has left), labeler, what was said, and 0.
Code: TypeAlias = tuple[int, int, int, int]
Heeded: TypeAlias = tuple[Label, Code]


class Settings:
    """Changes who is on the panel of a scheduler, and by which settings it works."""

    def __init__(self, state: State) -> None:
        self._state = state

    def join(self, who: Labeler) -> None:
        """A labeler joins, or comes back."""
        state, number = self._state, self._state.registry.number
        if who.id in number and state.raw.queue.capacity[number[who.id]] > 0:
            raise StateError(f"labeler {who.id!r} is on the panel already")
        if state.learning is None and who.competence is None and who.id not in number:
            raise no_competence(who.id)
        if state.learner is not None and who.id not in number:
            state.learner.join(who.competence)
        m = self._update(who) if who.id in number else self._add(who)
        state.raw.queue.set_capacity(m, who.capacity)
        if state.learner is not None and who.id in state.families:
            state.relate(state.learner)
        state.believe()
        state.write(Joined(state.slot, who))

    def _update(self, who: Labeler) -> int:
        registry = self._state.registry
        m = registry.number[who.id]
        kept = registry.labelers[m].competence if who.competence is None else who.competence
        registry.labelers[m] = Labeler(who.id, kept, who.capacity, who.price)
        return m

    def _add(self, who: Labeler) -> int:
        registry, queue = self._state.registry, self._state.raw.queue
        m = registry.number[who.id] = self._state.raw.add_labeler()
        registry.labelers.append(who)
        groups, rows = registry.expected(who.id)
        for group in groups:
            queue.join_group(group, m)
        for row in rows:
            queue.bar(row, m, self._state.slot)
        return m

    def leave(self, labeler: LabelerId) -> None:
        state, m = self._state, self._state.registry.known(labeler)
        if state.raw.queue.capacity[m] == 0:
            raise StateError(f"labeler {labeler!r} has left already")
        state.raw.queue.set_capacity(m, 0)
        state.write(Left(state.slot, labeler))

    def change(
        self,
        policy: str | None,
        learning: str | None,
        bounds: Bounds | None,
        c: float | None,
        revisions: int | None,
        budget: Budget | Literal["none"] | None,
        *,
        costs: Costs | None,
        families: Families | None,
    ) -> None:
        """Change settings from now on; None: as before."""
        state = self._state
        new = state.policy if policy is None else policy_named(policy)
        if c is not None:
            check_c(c)
        purse = None if budget is None else Purse(None if budget == "none" else budget, state.slot)
        if costs is not None:
            state.use_costs(costs)
        if families is not None:
            state.use_families(families)
        if learning is not None:
            self._change_learning(learning_named(learning))
        if purse is not None:
            purse.take_over(state.purse)
            state.purse = purse
        if revisions is not None:
            state.departed.keep(revisions)
        state.policy, state.c = new, state.c if c is None else c
        state.raw.queue.c = state.c
        if bounds is not None:
            state.raw.bound(bounds)
        state.raw.queue.use(state.active)
        state.believe()
        listed = None if costs is None else tuple((t, v, float(x)) for (t, v), x in costs.items())
        kin = None if families is None else tuple(state.families.items())
        changes = policy, learning, bounds, c, revisions, budget, listed, kin
        state.write(Changed(state.slot, *changes))

    def _change_learning(self, learning: Learning | None) -> None:
        state, belief = self._state, self._state.raw.queue.belief
        labelers = state.registry.labelers
        known = [None] * len(labelers) if belief is None else belief.competences.tolist()
        seated = [
            Labeler(who.id, who.competence or p, who.capacity, who.price)
            for who, p in zip(labelers, known, strict=True)
        ]
        missing = next((who.id for who in seated if who.competence is None), None)
        if learning is None and missing is not None:
            raise no_competence(missing)
        state.registry.labelers, state.learning, state.heard = seated, learning, Heard()
        state.learner = state.new_learner()


#: After this many slots in a row with nothing outstanding, the next ones are skipped.
QUIET: Final = 1000


class Slots:
    """Closes the slots of a scheduler."""

    def __init__(self, state: State) -> None:
        self._state = state

    def close(self) -> tuple[Exit, ...]:
        """End this slot and write it down."""
        exits, revisions = self._settle(), self._learn_and_revise()
        self._state.write(Closed(self._state.slot, exits, revisions))
        self.next()
        return exits

    def advance(self, slot: int) -> tuple[Exit, ...]:
        """End every slot before this one, and write down those in which something happened."""
        state, left = self._state, list[Exit]()
        while state.slot < slot:
            if self.skip(slot):
                continue
            exits, revisions = self._settle(), self._learn_and_revise()
            if exits or revisions:
                state.write(Closed(state.slot, exits, revisions))
                left += exits
            self.next()
        return tuple(left)

    def skip(self, slot: int) -> bool:
        """Skip slots in which nothing can happen, if there are any before this one."""
        state = self._state
        if state.registry.row or state.quiet < QUIET:
            return False
        until = state.learning.next_refresh(state.slot) if state.learning else None
        until = slot if until is None else min(slot, until)
        if until <= state.slot:
            return False
        state.slot = until
        self._use_active()
        return True

    def next(self) -> None:
        """Go on to the next slot; items that have left make room."""
        state = self._state
        if state.purse.budget is not None:
            state.purse.close(state.slot, state.in_flight, state.prices)
            state.charge()
        state.slot += 1
        state.quiet = 0 if state.registry.row else state.quiet + 1
        tidied = state.raw.tidy()
        if tidied is not None:
            state.registry.keep(tidied[0].tolist(), tidied[1])
        self._use_active()

    def learn(self) -> bool:
        """Learn if it is time; whether it was."""
        state = self._state
        if state.learner is None or state.learning is None:
            return False
        if state.learning.next_refresh(state.slot) != state.slot:
            return False
        state.learner.learn(*state.heard.columns())
        state.heard = Heard()
        state.believe()
        return True

    def _use_active(self) -> None:
        queue, active = self._state.raw.queue, self._state.active
        if active != queue.policy:
            queue.use(active)
        self._state.file()

    def _settle(self) -> tuple[Exit, ...]:
        state = self._state
        gone = state.bounded.settle(state.slot, state.visits.patience(state.slot))
        return tuple(self._exit(int(row)) for row in gone)

    def _exit(self, row: int) -> Exit:
        state, r = self._state, self._state.queue.desk.rows[row]
        item = state.registry.remove(row)
        verdict = state.verdict(int(r["verdict"]), float(r["confidence"]))
        reason, enough = REASONS[r["reason"]], state.sufficed.pop(item.id, None)
        if item.id in state.gold:
            verdict = state.verdict(state.gold.pop(item.id), 1.0)
            reason = ExitReason.CONFIDENT if reason == ExitReason.UNDECIDED else reason
        elif enough is not None:
            verdict = state.verdict(enough, float(probabilities(state.queue.desk, row)[enough]))
        elif state.departed.most:
            labels = state.queue.labels_of(row)
            state.departed.add(item.id, Kept(*labels, int(r["verdict"]), verdict.confidence))
        how = int(r["labels"]), untracked(verdict)
        return untracked(Exit(item.id, int(r["arrival"]), state.slot, *how, reason))

    def _learn_and_revise(self) -> tuple[Revision, ...]:
        """Learn if it is time; the items that have left whose verdict is another after that."""
        state = self._state
        if not self.learn() or not state.departed.items:
            return ()
        queue = state.raw.queue
        found = state.departed.revise(queue.belief, len(state.registry.classes), queue.costs)
        return tuple(
            Revision(
                item,
                state.slot,
                state.verdict(before.verdict, before.confidence),
                state.verdict(now.verdict, now.confidence),
                len(now.said),
            )
            for item, before, now in found
        )


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
        return self._state.learner is not None and self._state.learner.voices

    def _take_one_by_one(self, batch: Sequence[Label], codes: Sequence[Code]) -> list[Heeded]:
        """Take labels that were checked, each in its tone; those that are new.

        The tone is in the code of what was said: the class plus the number of classes times it.
        """
        state, registry, new = self._state, self._state.registry, list[Heeded]()
        for label, (row, m, said, own) in zip(batch, codes, strict=True):
            answer = said + len(registry.classes) * state.tones.of(m, label.confidence)
            code = row, m, answer, own
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
        """Raise an error if a label of an outstanding item is refused."""
        state = self._state
        place, held = state.bounded.look_up(labels)
        if place >= 0:
            label = [label for label in batch if label.item in state.registry.row][place]
            if held >= 0:
                raise changed(label, state.registry.classes[held])
            raise StateError(f"labeler {label.labeler!r} may not label item {label.item!r}")

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

    def suffice(self, item: ItemId, labeler: LabelerId, said: Hashable) -> None:
        """One labeler's word is enough."""
        state, registry = self._state, self._state.registry
        code, row = registry.class_of(item, said), registry.outstanding(item)
        if item in state.sufficed:
            return
        state.sufficed[item] = code
        state.bounded.suffice(row, state.slot)
        state.write(Sufficed(state.slot, item, labeler, said))

    def withdraw(self, item: ItemId) -> None:
        state = self._state
        state.gold.pop(item, None), state.sufficed.pop(item, None)
        row = state.registry.outstanding(item)
        state.bounded.withdraw(row)
        state.registry.remove(row)
        state.write(Withdrawn(state.slot, item))
