"""The engine: one state machine, four verbs, no clock and no I/O.

    arrive(items)     items enter
    assign()          who labels what in this slot
    observe(labels)   labels come back
    close()           end of the slot: learn, decide who leaves, slot += 1

and, because labelers are people and programs: `release` (a label will not come), `join` and
`leave`; because streams are run by people: `withdraw` an item, `change` the settings. Every call
that changes anything appends one event to the log. The state is a fold over that log: a fresh
scheduler that replays it is in the same state, to the bit.

Labels in flight. An item that was given to a labeler is valued as if the label will come, and
revalued if it does not; it does not leave before it comes or is released. A labeler is busy
until then. A label counts from the slot in which it comes. A label for an item that has left
is late: it goes into the log, and into learning while that goes on, but changes no verdict.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Literal

from venire.budget import Budget
from venire.costs import Costs
from venire.engine.replay import follow
from venire.engine.snapshot import Captured, capture, unpack
from venire.engine.state import State
from venire.engine.verbs import Labelling, Settings, Slots
from venire.engine.views import Readable
from venire.errors import StateError
from venire.events import AskedAgain, Event, Repeated, Routed
from venire.model import Assignment, Bounds, Exit, Item, ItemId, Label, Labeler, LabelerId, Verdict
from venire.scheduling.base import Learning, Policy
from venire.scheduling.by_name import learning_of, policy_of

if TYPE_CHECKING:
    from venire.estimators.dependence import Families


class Scheduler(Readable):
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
        self._use(State(panel, classes, rule, way, c, bounds, remember, *more))
        self.state.believe()
        self.state.file()

    def _use(self, state: State) -> None:
        self.state = state
        self._labelling, self._slots = Labelling(state), Slots(state)
        self._settings = Settings(state)

    # the four verbs

    def arrive(self, items: Item | Iterable[Item]) -> None:
        """Items enter; they are outstanding until they leave."""
        self._labelling.arrive(items)

    def assign(
        self, asked: Iterable[LabelerId] | None = None, ahead: int = 0
    ) -> tuple[Assignment, ...]:
        """Hand out work for this slot; a second call hands out what became possible since.

        With `asked`, these labelers get at most one item each: those who pull their work when
        they are free. Their capacity is then how many they may hold at once, and `ahead` how many
        more, for those who fetch the next item while they label one.

        >>> s = Scheduler([Labeler("ann", 0.9), Labeler("bob", 0.8)], classes=["spam", "ok"])
        >>> s.arrive([Item("post-1", weight=8), Item("post-2", weight=9)])
        >>> [(a.item, a.labeler) for a in s.assign(asked=["bob"])]
        [('post-1', 'bob')]
        """
        return self._labelling.assign(asked, ahead)

    def observe(self, labels: Label | Iterable[Label]) -> None:
        """Labels come back: all of them are taken or, if one is refused, none.

        The same label again changes nothing; another one by the same labeler is an error. What
        was said of an item before it left is not remembered after that.
        """
        self._labelling.observe(labels)

    def close(self) -> tuple[Exit, ...]:
        """End the slot: decide who leaves, learn if it is time, and go on to the next slot."""
        return self._slots.close()

    def advance(self, slot: int) -> tuple[Exit, ...]:
        """Close every slot before this one; log those in which items left or were revised.

        A thousand slots in which nothing was outstanding are closed one by one, since a policy
        may learn from them that little arrives; further empty slots are skipped.

        >>> s = Scheduler([Labeler("ann", 0.9)], classes=["spam", "ok"])
        >>> s.advance(1_000_000_000)
        ()
        """
        return self._slots.advance(slot)

    # labels that do not come, items that are withdrawn, changes of panel and settings

    def release(self, item: ItemId, labeler: LabelerId, bar: bool = False) -> None:
        """A label will not come: a lease ended, or the labeler gave the work back.

        With `bar` the labeler does not get the item again, even if it does not hold it any more.
        """
        self._labelling.release(item, labeler, bar)

    def withdraw(self, item: ItemId) -> None:
        """Withdraw an item, without a verdict; its labels in flight are not waited for."""
        self._labelling.withdraw(item)

    def suffice(self, item: ItemId, labeler: LabelerId, said: Hashable) -> None:
        """What one labeler said is enough: an open item leaves with it at the end of the slot.

        Nobody is given the item any more, and labels in flight are not waited for. Its confidence
        is how probable that class is by all labels so far; it is not revised by them later. Only
        the first such word of an item counts; what is said to be gold is its verdict all the same.

        >>> s = Scheduler([Labeler("ann", 0.9), Labeler("bob", 0.8)], ["illegal", "ok"], "everyone")
        >>> s.arrive(Item("post-1", weight=8))
        >>> s.observe([Label("post-1", "ann", "ok"), Label("post-1", "bob", "illegal")])
        >>> s.suffice("post-1", "bob", "illegal")
        >>> for e in s.close():
        ...     print(e.verdict.label, round(e.verdict.confidence, 3), e.reason)
        illegal 0.308 leave_on
        """
        self._labelling.suffice(item, labeler, said)

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
        taught = self._labelling.gold(item, label, before, labels, corrects)
        if warn and not taught:
            warnings.warn(
                f"item {item!r} has left and is no longer remembered (remember="
                f"{self.state.registry.remember}): its verdict is revised, but its labels teach "
                "nothing. Give gold before it leaves, or remember more items",
                stacklevel=2,
            )
        return taught

    def revise(self, item: ItemId, verdict: Verdict, before: Verdict, labels: int) -> None:
        """An item that has left was decided again, by `labels` labels, not by its own alone.

        `before` is the verdict that it had. It is not revised by its own labels from now on.

        >>> s = Scheduler([Labeler("ann", 0.9)], classes=["spam", "ok"])
        >>> s.revise("post-1", Verdict("ok", 0.97), Verdict("spam", 0.6), labels=5)
        >>> s.log[-1].revision.verdict
        Verdict(label='ok', confidence=0.97)
        """
        self._labelling.revise(item, verdict, before, labels)

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

    def join(self, labeler: Labeler | LabelerId) -> None:
        """A labeler joins, or comes back with the capacity and the price given now.

        A competence given now replaces the one known before; what was learned stays.
        """
        self._settings.join(labeler if isinstance(labeler, Labeler) else Labeler(labeler))

    def leave(self, labeler: LabelerId) -> None:
        """A labeler leaves: no more work for it. Labels in flight may still come.

        It may come back, so an item that only it could still improve waits while that is worth
        its delay (Algorithm 1), or while it has no label at all (policies with an overlap). One who
        does not come any more and does not say so is waited for, except in a crowd in which nearly
        nobody comes twice (see `visits`); set a deadline where that is not wanted.
        """
        self._settings.leave(labeler)

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
        usual = policy, learning, bounds, c, revisions, budget
        self._settings.change(*usual, costs=costs, families=families)

    # replay and snapshots

    def replay(self, log: Iterable[Event]) -> Scheduler:
        """Do again what a log says happened, and check that it comes out the same."""
        if self.state.events:
            raise StateError("only a fresh scheduler can replay a log: this one has its own")
        return self.follow(log)

    def follow(self, log: Iterable[Event], obey: bool = False) -> Scheduler:
        """`replay` from here on: the events that a scheduler in this state wrote next.

        With `obey`, decisions are taken from the log instead of made again, for a log that
        another version of the engine wrote (see `replaying`).

        >>> from venire import FixedOverlap, Greedy
        >>> panel = [Labeler("ann", 0.9), Labeler("bob", 0.8)]
        >>> one, other = (Scheduler(panel, ["spam", "ok"], p) for p in (Greedy(), FixedOverlap(1)))
        >>> one.arrive([Item("post-1", 20), Item("post-2", 30)])
        >>> [(a.item, a.labeler) for a in one.assign()]
        [('post-2', 'ann'), ('post-1', 'bob')]
        >>> other.follow(one.log, obey=True).in_flight == one.in_flight
        True
        """
        follow(self, self._slots, log, obey)
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

        >>> s = Scheduler([Labeler("ann", 0.9)], classes=["spam", "ok"])
        >>> s.arrive(Item("post-1", weight=8))
        >>> Scheduler.restore(s.snapshot()).fingerprint() == s.fingerprint()
        True
        """
        restored = Scheduler.__new__(Scheduler)
        restored._use(unpack(snapshot))
        return restored

    def dissolve(self) -> None:
        """Free all names piece by piece; the scheduler is of no use after that."""
        self.state.registry.dissolve()

    def drain(self) -> list[Event]:
        """Hand over the log so far and forget it, for a server that stores it."""
        taken, self.state.log = self.state.log, []
        return taken
