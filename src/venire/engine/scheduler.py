"""The engine: one state machine, four verbs, no clock and no I/O.

    arrive(items)     items enter
    assign()          who labels what in this slot
    observe(labels)   labels come back
    close()           end of the slot: learn, decide who leaves, slot += 1

and, because labelers are people and programs: `release` (a label will not come), `join` and
`leave`; because streams are run by people: `withdraw` an item, `change` the settings. Every call
that changes anything appends to the log: one event, or one for each new label (`observe`), or one
for each slot in which something left (`advance`). The state is a fold over that log: a fresh
scheduler that replays it is in the same state, to the bit.

Labels in flight. An item that was given to a labeler is valued as if the label will come, and
revalued if it does not; it does not leave before it comes or is released. A labeler is busy
until then. A label counts from the slot in which it comes. A label for an item that has left
is late: it goes into the log, and into learning while that goes on, but changes no verdict.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Literal

from venire.costs import Costs
from venire.engine.bounded_queue import Purse
from venire.engine.queue import untracked
from venire.engine.registry import Heard, Kept
from venire.engine.replay import follow
from venire.engine.snapshot import Captured, capture, unpack
from venire.engine.state import State, no_competence
from venire.engine.verbs import Verbs
from venire.errors import StateError
from venire.events import Changed, Closed, Event, Joined, Left
from venire.model import (
    Bounds,
    Budget,
    Exit,
    ExitReason,
    Labeler,
    LabelerId,
    Revision,
)
from venire.scheduling.base import Learning, Policy
from venire.scheduling.by_name import learning_named, learning_of, policy_named, policy_of
from venire.scheduling.kernel.desk import REASONS
from venire.scheduling.kernel.verdicts import check_c, probabilities

if TYPE_CHECKING:
    from venire.estimators.dependence import Families


class Scheduler(Verbs):
    """Draws labelers for the items of a stream, slot by slot.

    Parameters
    ----------
    panel
        The labelers, by name or as `Labeler`. Prices of labels are in the unit of the items'
        weights: one is what a slot of delay costs.
    classes
        What a label may say. In a tie the later class wins.
    policy
        Who labels what; `Realised` by default: the most right verdicts, soonest (docs/policies.md).
    learning
        How the competences come to be known. Without it every labeler must have one.
    c
        The constant of the accuracy proxy.
    bounds
        What holds for every item, whatever the policy thinks of it.
    remember
        How many items that have left are remembered by id, for late labels and gold; None: all.
    revisions
        How many of the items that left last are decided again whenever competences are learned.
        Those whose label changed are in the log, as `revisions` of the slot's `Closed`. 0: the
        verdict that an item left with is final.
    budget
        What may be spent on labels in its slots: never more, and at a pace.
    costs
        What errors cost, {(truth, verdict): cost}, else 1: see `venire.costs`.
    families
        Labelers who may share errors, {labeler: name of its family}: where competences are learned,
        k of a family count for as many votes as they are worth (`venire.estimators.dependence`).

    Examples
    --------
    >>> from venire import Item, Label
    >>> s = Scheduler([Labeler("ann", 0.9), Labeler("bob", 0.8)], classes=["spam", "ok"])
    >>> s.arrive([Item("post-1", weight=2), Item("post-2", weight=1.5)])
    >>> for a in s.assign():
    ...     s.observe(Label(a.item, a.labeler, "spam"))
    >>> for e in s.close():
    ...     print(e.item, e.verdict.label, round(e.verdict.confidence, 3), e.reason)
    post-1 spam 0.9 no_gain
    post-2 spam 0.8 no_gain
    """

    def __init__(
        self,
        panel: Sequence[Labeler | LabelerId],
        classes: Sequence[Hashable],
        policy: Policy | str | None = None,
        learning: Learning | str | None = None,
        c: float = 1.0,
        bounds: Bounds | None = None,
        remember: int | None = None,
        revisions: int = 0,
        budget: Budget | None = None,
        costs: Costs | None = None,
        families: Families | None = None,
    ) -> None:
        rule, way, bounds = policy_of(policy), learning_of(learning), bounds or Bounds()
        more = revisions, budget, costs, families
        self.state = State(panel, classes, rule, way, c, bounds, remember, *more)
        self.state.believe()
        self.state.file()

    # the end of a slot

    def close(self) -> tuple[Exit, ...]:
        """End the slot: decide who leaves, learn if it is time, and go on to the next slot."""
        exits, revisions = self._settle(), self._learn_and_revise()
        self.state.write(Closed(self.state.slot, exits, revisions))
        self.state.next()
        return exits

    def advance(self, slot: int) -> tuple[Exit, ...]:
        """Close every slot before this one; log those in which items left or were revised.

        A thousand slots in which nothing was outstanding are closed one by one, since a policy
        may learn from them that little arrives; further empty slots are skipped.

        >>> s = Scheduler([Labeler("ann", 0.9)], classes=["spam", "ok"])
        >>> s.advance(1_000_000_000)
        ()
        """
        state, left = self.state, list[Exit]()
        while state.slot < slot:
            if state.skip(slot):
                continue
            exits, revisions = self._settle(), self._learn_and_revise()
            if exits or revisions:
                state.write(Closed(state.slot, exits, revisions))
                left += exits
            state.next()
        return tuple(left)

    def _settle(self) -> tuple[Exit, ...]:
        state = self.state
        gone = state.bounded.settle(state.slot, state.visits.patience(state.slot))
        return tuple(self._exit(int(row)) for row in gone)

    def _exit(self, row: int) -> Exit:
        state, r = self.state, self.state.queue.desk.rows[row]
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
        state = self.state
        if not state.learn() or not state.departed.items:
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

    # panel and settings

    def join(self, labeler: Labeler | LabelerId) -> None:
        """A labeler joins, or comes back with the capacity and the price given now.

        A competence given now replaces the one known before; what was learned stays.
        """
        who = labeler if isinstance(labeler, Labeler) else Labeler(labeler)
        state, number = self.state, self.state.registry.number
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
        registry = self.state.registry
        m = registry.number[who.id]
        kept = registry.labelers[m].competence if who.competence is None else who.competence
        registry.labelers[m] = Labeler(who.id, kept, who.capacity, who.price)
        return m

    def _add(self, who: Labeler) -> int:
        registry, queue = self.state.registry, self.state.raw.queue
        m = registry.number[who.id] = self.state.raw.add_labeler()
        registry.labelers.append(who)
        groups, rows = registry.expected(who.id)
        for group in groups:
            queue.join_group(group, m)
        for row in rows:
            queue.bar(row, m, self.state.slot)
        return m

    def leave(self, labeler: LabelerId) -> None:
        """A labeler leaves: no more work for it. Labels in flight may still come.

        It may come back, so an item that only it could still improve waits while that is worth
        its delay (Algorithm 1), or while it has no label at all (policies with an overlap). One who
        does not come any more and does not say so is waited for, except in a crowd in which nearly
        nobody comes twice (see `visits`); set a deadline where that is not wanted.
        """
        state, m = self.state, self.state.registry.known(labeler)
        if state.raw.queue.capacity[m] == 0:
            raise StateError(f"labeler {labeler!r} has left already")
        state.raw.queue.set_capacity(m, 0)
        state.write(Left(state.slot, labeler))

    def change(
        self,
        policy: str | None = None,
        learning: str | None = None,
        bounds: Bounds | None = None,
        c: float | None = None,
        revisions: int | None = None,
        budget: Budget | Literal["none"] | None = None,
        costs: Costs | None = None,
        families: Families | None = None,
    ) -> None:
        """Change settings from now on; None: as before. A budget of "none" ends it.

        Names are as the command line takes them, so that the log can say them. Another way of
        learning starts from what is believed now. Another policy starts with a fresh memory: what
        the one before it forecast, counted or had in its queue is gone. The same policy with
        other settings keeps its memory.

        >>> s = Scheduler([Labeler("ann", 0.9)], classes=["spam", "ok"])
        >>> s.change(policy="fixed-overlap:2", bounds=Bounds(min_confidence=0.9))
        >>> s.policy
        FixedOverlap(overlap=2)
        """
        state = self.state
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
        state, belief = self.state, self.state.raw.queue.belief
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

    # replay and snapshots

    def replay(self, log: Iterable[Event]) -> Scheduler:
        """Do again what a log says happened, and check that it comes out the same."""
        if self.state.events:
            raise StateError("only a fresh scheduler can replay a log: this one has its own")
        return self.follow(log)

    def follow(self, log: Iterable[Event], obey: bool = False) -> Scheduler:
        """`replay` from here on: the events that a scheduler in this state wrote next.

        With `obey`, decisions are taken from the log instead of made again, for a log that
        another version of the engine wrote (see `engine.replay`).

        >>> from venire import FixedOverlap, Greedy, Item
        >>> panel = [Labeler("ann", 0.9), Labeler("bob", 0.8)]
        >>> one, other = (Scheduler(panel, ["spam", "ok"], p) for p in (Greedy(), FixedOverlap(1)))
        >>> one.arrive([Item("post-1", 20), Item("post-2", 30)])
        >>> [(a.item, a.labeler) for a in one.assign()]
        [('post-2', 'ann'), ('post-1', 'bob')]
        >>> other.follow(one.log, obey=True).in_flight == one.in_flight
        True
        """
        follow(self, log, obey)
        return self

    def snapshot(self) -> bytes:
        """The whole state without the log, for `restore`.

        It can keep what venire exports; a policy, way of learning or estimator of your own is
        refused: keep the log then.
        """
        return self.capture().pack()

    def capture(self) -> Captured:
        """A copy of the state, which another thread can `pack` while this one goes on."""
        return capture(self.state)

    @staticmethod
    def restore(snapshot: bytes) -> Scheduler:
        """The scheduler that `snapshot` packed, to the bit; its log begins there.

        >>> from venire import Item
        >>> s = Scheduler([Labeler("ann", 0.9)], classes=["spam", "ok"])
        >>> s.arrive(Item("post-1", weight=8))
        >>> Scheduler.restore(s.snapshot()).fingerprint() == s.fingerprint()
        True
        """
        restored = Scheduler.__new__(Scheduler)
        restored.state = unpack(snapshot)
        return restored

    def dissolve(self) -> None:
        """Free all names piece by piece; the scheduler is of no use after that."""
        self.state.registry.dissolve()

    def drain(self) -> list[Event]:
        """Hand over the log so far and forget it, for a server that stores it."""
        taken, self.state.log = self.state.log, []
        return taken
