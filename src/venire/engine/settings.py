"""Who is on the panel, what is believed of them, and by which settings they work."""

from __future__ import annotations

import numpy as np

from venire.engine.views import Reader
from venire.errors import InputError, StateError
from venire.model import Bounds, Changed, Event, Joined, Labeler, LabelerId, Left, Revision
from venire.scheduling.algorithm1.verdicts import check_c
from venire.scheduling.base import Belief, Learner, Learning, Policy
from venire.scheduling.by_name import learning_named, policy_named

__all__ = ["Panel"]


class Panel(Reader):
    """The part of a scheduler that changes its labelers and its settings."""

    learning: Learning | None
    c: float
    log: list[Event]
    _events: int

    def join(self, labeler: Labeler | LabelerId) -> None:
        """A labeler comes, or comes back with its capacity as now given.

        A competence given now replaces the one known before; what was learned stays.
        """
        who = labeler if isinstance(labeler, Labeler) else Labeler(labeler)
        number = self._roll.number
        if who.id in number and self._books.capacity[number[who.id]] > 0:
            raise StateError(f"labeler {who.id!r} is on the panel already")
        if self.learning is None and who.competence is None and who.id not in number:
            raise self._no_competence(who.id)
        if self._learner is not None and who.id not in number:
            self._learner.join(who.competence)
        self._seat(who)
        self._believe()
        self._write(Joined(self.slot, who))

    def leave(self, labeler: LabelerId) -> None:
        """A labeler goes: no more work for it. Labels in flight may still come.

        It may come back, so an item that only it could still improve waits while that is worth
        its delay (Algorithm 1), or while it has no label at all (policies with an overlap).
        """
        m = self._roll.known(labeler)
        if self._books.capacity[m] == 0:
            raise StateError(f"labeler {labeler!r} has left already")
        self._books.set_capacity(m, 0)
        self._write(Left(self.slot, labeler))

    def change(
        self,
        policy: str | None = None,
        learning: str | None = None,
        bounds: Bounds | None = None,
        c: float | None = None,
        revisions: int | None = None,
    ) -> None:
        """Change settings from now on; None: as before.

        Names are as the command line takes them, so that the log can say them. Another way of
        learning starts from what is believed now. Another policy starts with a fresh memory: what
        the one before it forecast, counted or had in its queue is gone. The same policy with
        other settings goes on with its memory.

        >>> from venire import Bounds, Item, Label, Labeler, Scheduler
        >>> s = Scheduler([Labeler("ann", 0.9)], classes=["spam", "ok"])
        >>> s.change(policy="fixed-overlap:2", bounds=Bounds(min_confidence=0.9))
        >>> s.policy
        FixedOverlap(overlap=2)
        """
        new = self.policy if policy is None else policy_named(policy)
        if c is not None:
            check_c(c)
        if learning is not None:
            self._change_learning(learning_named(learning))
        if revisions is not None:
            self._departed.keep(revisions)
        self.policy, self.c = new, self.c if c is None else c
        self._books.c = self.c
        if bounds is not None:
            self._books.bound(bounds)
        self._books.use(self._active())
        self._believe()
        self._write(Changed(self.slot, policy, learning, bounds, c, revisions))

    def _change_learning(self, learning: Learning | None) -> None:
        known = self.competences or {}
        seated = [
            Labeler(who.id, who.competence or known.get(who.id), who.capacity)
            for who in self._roll.labelers
        ]
        missing = next((who.id for who in seated if who.competence is None), None)
        if learning is None and missing is not None:
            raise self._no_competence(missing)
        self._roll.labelers, self.learning, self._heard = seated, learning, []
        self._learner = self._new_learner()

    def _seat(self, who: Labeler) -> None:
        roll = self._roll
        if who.id in roll.number:
            m = roll.number[who.id]
            before = roll.labelers[m]
            kept = before.competence if who.competence is None else who.competence
            roll.labelers[m] = Labeler(who.id, kept, who.capacity)
        else:
            m = roll.number[who.id] = self._books.add_labeler()
            roll.labelers.append(who)
            groups, rows = roll.expected(who.id)
            for group in groups:
                self._books.join_group(group, m)
            for row in rows:
                self._books.bar(row, m, self.slot)
        self._books.set_capacity(m, who.capacity)

    def _new_learner(self) -> Learner | None:
        if self.learning is None:
            return None
        return self.learning.begin([w.competence for w in self._roll.labelers], len(self.classes))

    def _believe(self) -> None:
        """Known competences, or those learned."""
        if self._learner is not None:
            self._books.believe(self._learner.belief)
            return
        missing = next((w.id for w in self._roll.labelers if w.competence is None), None)
        if missing is not None:
            raise self._no_competence(missing)
        known = np.array([who.competence for who in self._roll.labelers], np.float64)
        self._books.believe(Belief(known))

    def _no_competence(self, name: LabelerId) -> InputError:
        return InputError(
            f"labeler {name!r} has no competence: give Labeler({name!r}, competence=...), "
            "or let the scheduler learn it with learning=LearnWhileServing()"
        )

    def _revise(self) -> tuple[Revision, ...]:
        """Look at the verdicts of items that have left again, by what is believed now."""
        if not self._departed.items:
            return ()
        found = self._departed.revise(self._books.belief, len(self.classes))
        return tuple(
            Revision(
                item,
                self.slot,
                self._verdict(before.verdict, before.confidence),
                self._verdict(now.verdict, now.confidence),
                len(now.said),
            )
            for item, before, now in found
        )

    def _active(self) -> Policy:
        return (self.learning.phase(self.slot) if self.learning else None) or self.policy

    def _write(self, *events: Event) -> None:
        self.log += events
        self._events += len(events)
