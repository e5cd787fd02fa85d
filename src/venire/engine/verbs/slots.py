"""The end of a slot: items leave, competences are learned, verdicts are revised."""

from __future__ import annotations

from typing import Final

from venire.engine.departed import Kept
from venire.engine.heard import Heard
from venire.engine.state import State
from venire.engine.untracked import untracked
from venire.events import Closed
from venire.model import Exit, ExitReason, Revision
from venire.scheduling.kernel.desk import REASONS

__all__ = ["Slots"]

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
        reason = REASONS[r["reason"]]
        if item.id in state.gold:
            verdict = state.verdict(state.gold.pop(item.id), 1.0)
            reason = ExitReason.CONFIDENT if reason == ExitReason.UNDECIDED else reason
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
