"""Changes of the panel and of the settings."""

from __future__ import annotations

from typing import Literal

from venire.budget import Budget
from venire.costs import Costs
from venire.engine.heard import Heard
from venire.engine.purse import Purse
from venire.engine.state import State, no_competence
from venire.errors import StateError
from venire.estimators.families import Families
from venire.events import Changed, Joined, Left
from venire.model import Bounds, Labeler, LabelerId
from venire.scheduling.base import Learning
from venire.scheduling.by_name import learning_named, policy_named
from venire.scheduling.kernel.beliefs import check_c

__all__ = ["Settings"]


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
        """A labeler leaves the panel."""
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
