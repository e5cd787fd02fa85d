"""What the parts of a scheduler share: registry, queue, learner, settings, slot and log."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from venire.costs import Costs, cost_matrix
from venire.engine.bounded_queue import BoundedQueue, Purse
from venire.engine.queue import Queue, Visits
from venire.engine.registry import Departed, Heard, Registry
from venire.errors import InputError
from venire.estimators.voices import Tones
from venire.events import Event
from venire.model import Bounds, Budget, ItemId, Labeler, LabelerId, Verdict
from venire.scheduling.base import Belief, Learner, Learning, Policy
from venire.scheduling.kernel.verdicts import check_c

if TYPE_CHECKING:
    from venire.estimators.dependence import Families


#: After this many slots in a row with nothing outstanding, the next ones are skipped.
QUIET: Final = 1000


class State:
    """The whole state of a scheduler; `believe` and `file` make a fresh one ready.

    `raw` is the queue as it was left: a change of panel, belief or policy makes it stale, and
    filing every item again takes time. So that waits until somebody looks (`bounded`, `queue`): a
    thousand labelers who join one after the other cost as much as one.
    """

    def __init__(
        self,
        panel: Sequence[Labeler | LabelerId],
        classes: Sequence[Hashable],
        policy: Policy,
        learning: Learning | None,
        c: float,
        bounds: Bounds,
        remember: int | None,
        revisions: int,
        budget: Budget | None = None,
        costs: Costs | None = None,
        families: Families | None = None,
    ) -> None:
        check_c(c)
        self.families = _checked(families)
        self.purse = Purse(budget)
        self.departed = Departed(revisions)
        self.registry = Registry(panel, classes, remember)
        self.policy, self.learning, self.c = policy, learning, c
        self.slot = 0
        self.log: list[Event] = []
        self.events = 0  # how many were ever written
        self.quiet = 0  # slots since something was outstanding
        self.heard = Heard()  # labels since competences were learned
        self.gold: dict[ItemId, int] = {}  # the class of outstanding items, where it is known
        self.sufficed: dict[ItemId, int] = {}  # outstanding items for which one word was enough
        self.visits = Visits()
        self.tones = Tones()
        self.learner = self.new_learner()
        capacity = [who.capacity for who in self.registry.labelers]
        queue = Queue(capacity, len(self.registry.classes), self.active, c)
        self.raw = BoundedQueue(queue, bounds)
        self.use_costs(costs)

    def use_costs(self, costs: Costs | None) -> None:
        """Errors cost this from now on; None: every error costs 1."""
        self.raw.queue.costs = cost_matrix(costs, self.registry.classes)
        self.costs = {pair: float(cost) for pair, cost in (costs or {}).items()}

    def use_families(self, families: Families) -> None:
        """These labelers may share errors, as competences are learned from now on."""
        self.families = _checked(families)
        if self.learner is not None:
            self.relate(self.learner)

    def relate(self, learner: Learner) -> None:
        """Tell a learner who on the panel is of which family."""
        number = self.registry.number
        learner.relate({number[name]: kin for name, kin in self.families.items() if name in number})

    @property
    def bounded(self) -> BoundedQueue:
        """The queue with its bounds, filed by the panel, belief and policy of now."""
        if self.raw.queue.stale:
            self.file()
        return self.raw

    @property
    def queue(self) -> Queue:
        """The queue, filed by the panel, belief and policy of now."""
        return self.bounded.queue

    def file(self) -> None:
        self.raw.refresh(self.slot)

    @property
    def active(self) -> Policy:
        return (self.learning.phase(self.slot) if self.learning else None) or self.policy

    def new_learner(self) -> Learner | None:
        """A learner that starts from the competences in the registry."""
        if self.learning is None:
            return None
        known = [who.competence for who in self.registry.labelers]
        learner = self.learning.begin(known, len(self.registry.classes))
        if self.families:
            self.relate(learner)
        return learner

    def believe(self) -> None:
        """Take the competences that were learned, or those that are given, for true.

        And the prices of the labelers.
        """
        self.charge()
        if self.learner is not None:
            self.raw.queue.believe(self.learner.belief)
            return
        labelers = self.registry.labelers
        missing = next((who.id for who in labelers if who.competence is None), None)
        if missing is not None:
            raise no_competence(missing)
        known = np.array([who.competence for who in labelers], np.float64)
        self.raw.queue.believe(Belief(known))

    @property
    def prices(self) -> NDArray[np.float64]:
        return np.array([who.price for who in self.registry.labelers], np.float64)

    @property
    def in_flight(self) -> NDArray[np.int64]:
        return self.raw.queue.desk.panel["inflight"].astype(np.int64)

    def charge(self) -> None:
        self.raw.queue.charge(self.purse.charge(self.prices, self.in_flight))

    def spend(self, made: range) -> None:
        if self.purse.budget is not None:
            desk, prices = self.raw.queue.desk, self.prices
            for k in made:
                m = int(desk.touches["labeler"][k])
                gain, charged = float(desk.touches["gain"][k]), float(desk.panel["price"][m])
                self.purse.handed_out(gain, float(prices[m]), charged)

    def skip(self, slot: int) -> bool:
        """Skip slots in which nothing can happen, if there are any before this one."""
        if self.registry.row or self.quiet < QUIET:
            return False
        until = self.learning.next_refresh(self.slot) if self.learning else None
        until = slot if until is None else min(slot, until)
        if until <= self.slot:
            return False
        self.slot = until
        self._use_active()
        return True

    def next(self) -> None:
        """Go on to the next slot; items that have left make room."""
        if self.purse.budget is not None:
            self.purse.close(self.slot, self.in_flight, self.prices)
            self.charge()
        self.slot += 1
        self.quiet = 0 if self.registry.row else self.quiet + 1
        tidied = self.raw.tidy()
        if tidied is not None:
            self.registry.keep(tidied[0].tolist(), tidied[1])
        self._use_active()

    def learn(self) -> bool:
        """Learn if it is time; whether it was."""
        if self.learner is None or self.learning is None:
            return False
        if self.learning.next_refresh(self.slot) != self.slot:
            return False
        self.learner.learn(*self.heard.columns())
        self.heard = Heard()
        self.believe()
        return True

    def _use_active(self) -> None:
        queue, active = self.raw.queue, self.active
        if active != queue.policy:
            queue.use(active)
        self.file()

    def verdict(self, code: int, confidence: float) -> Verdict:
        """A verdict from the code of its class; -1: no label."""
        return Verdict(self.registry.classes[code] if code >= 0 else None, confidence)

    def write(self, *events: Event) -> None:
        self.visits.note(events, self.registry.number)
        self.log += events
        self.events += len(events)


def _checked(families: Families | None) -> dict[LabelerId, Hashable]:
    if families is not None and not isinstance(families, Mapping):
        raise InputError(
            f"got families of type {type(families).__name__}, expected a mapping of labeler to the "
            'name of its family, such as {"llama-a": "llama", "llama-b": "llama"}'
        )
    return {name: family for name, family in (families or {}).items() if family is not None}


def no_competence(name: LabelerId) -> InputError:
    return InputError(
        f"labeler {name!r} has no competence: give Labeler({name!r}, competence=...), "
        "or let the scheduler learn it with learning=LearnWhileServing()"
    )
