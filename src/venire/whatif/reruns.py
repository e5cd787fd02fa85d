"""A recorded stream: what its log holds, and its run by another policy, panel or budget."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from statistics import median_low
from typing import Final, NamedTuple

import numpy as np

from venire.engine import Scheduler
from venire.errors import InputError, UnknownName
from venire.estimators.auto import Auto
from venire.events import (
    Arrived,
    AskedAgain,
    Assigned,
    Changed,
    Closed,
    Event,
    GoldGiven,
    Joined,
    Left,
    Observed,
    Released,
    Revised,
    Sufficed,
    Withdrawn,
)
from venire.labels import LabelTable
from venire.labels.partitions import name_draws
from venire.model import (
    Assignment,
    Bounds,
    Budget,
    Exit,
    ExitReason,
    ItemId,
    Label,
    LabelerId,
    Verdict,
)
from venire.scheduling.by_name import learning_named, policy_named
from venire.scheduling.kernel.desk import PENDING

Pair = tuple[ItemId, LabelerId]


class Asked(NamedTuple):
    """A labeler was asked for a label, and what came of it: the label, or that it will not come.

    `event` is the place of the assignment in the log, -1 if nobody asked; `answers` are the events
    that answer it, each with its place. A lease may end before the label comes, so there may be
    two; at the end of the log there may be none.
    """

    event: int
    slot: int
    answers: list[tuple[int, Observed | Released]]


@dataclass(eq=False)
class Recorded:
    """A recorded stream.

    `start` is the scheduler before its first event, `log` what happened. From the log: `asked` is
    how often each labeler was asked about each item, and what came of it; `said` the label of each
    pair that the log holds, `labelled_by` the labelers of each item, `exits` what happened to each
    item, and `prices` what a label of each labeler costs. `voices` are labelers who are models that
    learn from the verdicts: what they said hangs on what they were taught. `sufficed` are the pairs
    of which what the labeler said was enough for the item to leave.

    >>> from venire import Item, Label, Labeler
    >>> panel = [Labeler("ann", 0.9), Labeler("bob", 0.8)]
    >>> start, s = (Scheduler(panel, ["spam", "ok"]) for _ in range(2))
    >>> s.arrive(Item("post-1", weight=8))
    >>> s.observe([Label(a.item, a.labeler, "ok") for a in s.assign()])
    >>> [exit.verdict.label for exit in s.close()]
    ['ok']
    >>> recorded = Recorded.of(start, s.log)
    >>> sorted(recorded.said.items()), recorded.slots
    ([(('post-1', 'ann'), 'ok'), (('post-1', 'bob'), 'ok')], 1)
    """

    start: Scheduler
    log: list[Event] = field(default_factory=list)
    asked: dict[Pair, list[Asked]] = field(default_factory=dict)
    said: dict[Pair, Hashable] = field(default_factory=dict)
    exits: dict[ItemId, Exit] = field(default_factory=dict)
    prices: dict[LabelerId, float] = field(default_factory=dict)
    labelled_by: dict[ItemId, list[LabelerId]] = field(default_factory=dict)
    items: list[ItemId] = field(default_factory=list)
    slots: int = 0
    voices: frozenset[LabelerId] = frozenset()
    sufficed: set[Pair] = field(default_factory=set)

    @classmethod
    def of(
        cls, start: Scheduler, log: Iterable[Event], progress: Callable[[int], None] | None = None
    ) -> Recorded:
        """Read a log; `progress` is called with the number of events so far."""
        if start.slot or start.log or start.outstanding:
            raise InputError(
                f"got a scheduler in slot {start.slot} with {len(start.log)} events, expected it "
                "as it was before the first event of its log"
            )
        recorded = cls(start)
        recorded.prices = {who.id: who.price for who in start.panel}
        for number, event in enumerate(log):
            recorded._note(number, event)
            if progress is not None and number % 1000 == 999:
                progress(number + 1)
        return recorded

    def table(self) -> LabelTable:
        rows = ((item, labeler, said) for (item, labeler), said in self.said.items())
        return LabelTable.from_rows(rows, self.start.classes)

    def _note(self, number: int, event: Event) -> None:
        self.log.append(event)
        self.slots = max(self.slots, event.slot + 1)
        match event:
            case Arrived():
                self.items += [item.id for item in event.items]
            case Assigned():
                for a in event.assignments:
                    asked = Asked(number, event.slot, [])
                    self.asked.setdefault((a.item, a.labeler), []).append(asked)
            case Observed():
                pair = event.label.item, event.label.labeler
                self._answer(pair, number, event)
                self.said[pair] = event.label.said
                self.labelled_by.setdefault(pair[0], []).append(pair[1])
            case Released():
                self._answer((event.item, event.labeler), number, event)
            case Closed():
                self.exits.update((e.item, e) for e in event.exits)
            case Sufficed():
                self.sufficed.add((event.item, event.labeler))
            case Joined():
                self.prices[event.labeler.id] = event.labeler.price
            case _:
                pass

    def _answer(self, pair: Pair, number: int, event: Observed | Released) -> None:
        asked = self.asked.setdefault(pair, [])
        if not asked:
            asked.append(Asked(-1, event.slot, []))
        asked[-1].answers.append((number, event))


class Drawn:
    """Draws the missing labels of a recorded stream; the same seed gives the same labels.

    An item's class is drawn once from its posterior given every label in the log, and a label
    from the confusion matrix of its labeler, so all labels of an item are about the same class.
    """

    def __init__(self, recorded: Recorded, fitted: Auto, seed: int) -> None:
        self._classes, self._seed = list(fitted.table_.classes), seed
        self._row = {name: s for s, name in enumerate(fitted.table_.items)}
        self._number = {name: m for m, name in enumerate(fitted.table_.labelers)}
        self._posteriors, self._rows = fitted.posteriors_, fitted.confusions_
        shares = self._posteriors.mean(axis=0)
        self._prior, self._mean_row = shares / shares.sum(), self._rows.mean(axis=0)
        delays = dict[str, list[int]]()
        for (_, labeler), every in recorded.asked.items():
            for asked in every:
                waits = [event.slot - asked.slot for _, event in asked.answers[-1:]]
                delays.setdefault(labeler, []).extend(waits)
        self._delay = {name: median_low(slots) for name, slots in delays.items() if slots}

    def label(self, pair: Pair) -> Hashable:
        """What the labeler would have said of the item."""
        item, labeler = pair
        known = item in self._row
        q = self._posteriors[self._row[item]] if known else self._prior
        truth = self._draw(f"class of {item}", q)
        m = self._number.get(labeler)
        row = self._mean_row[truth] if m is None else self._rows[m, truth]
        said: Hashable = self._classes[self._draw(f"{labeler} on {item}", row)]
        return said

    def delay(self, pair: Pair) -> int:
        """How many slots the labeler would have taken: as usual."""
        return self._delay.get(pair[1], 0)

    def _draw(self, name: str, shares: np.ndarray[tuple[int], np.dtype[np.float64]]) -> int:
        drawn = float(name_draws([name], [""], self._seed)[0, 0])
        place = int(np.searchsorted(np.cumsum(shares), drawn * shares.sum(), side="right"))
        return min(place, len(shares) - 1)


#: How many events are followed between two calls of `progress`.
PIECE: Final = 200


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do otherwise; None: as it was.

    Names of policy and learning are as `venire simulate` takes them; `without` are labelers who
    are left out. When the next label cannot be paid from the budget, nothing more is bought, and
    items leave with the labels that they have. `min_confidence` and `max_labels` bound
    every item; a confidence that an item has of its own stays. `gold` are known classes of items,
    to learn from; what the log says of the truth of these items does not count.
    """

    policy: str | None = None
    learning: str | None = None
    without: frozenset[LabelerId] = frozenset()
    budget: Budget | None = None
    min_confidence: float | None = None
    max_labels: int | None = None
    gold: Mapping[ItemId, Hashable] = field(default_factory=dict)

    def bounds(self, bounds: Bounds) -> Bounds:
        """The bounds with those of the plan in their place."""
        least = self.min_confidence
        if least is not None:
            bounds = replace(bounds, min_confidence=least, floor=True)
        if self.max_labels is not None:
            few = min(bounds.min_labels, self.max_labels)
            bounds = replace(bounds, max_labels=self.max_labels, min_labels=few)
        return bounds

    def __post_init__(self) -> None:
        if self.budget is not None and self.budget.per_day:
            raise InputError("got a budget per day, expected one for the whole log: leave per_day")


@dataclass(eq=False)
class Rerun:
    """What came of it: exits by item, labels of each item, and what could not be repeated.

    `departed` is the slot of the first decision that the log has otherwise; None: there is none.
    `missing` are the labels that were asked for and that the log does not hold, by item: they could
    not be had, or were `drawn`. `gold_moved` counts items whose gold came before they left in one
    case, and after that in the other. `idle` are the visits on which a labeler was given nothing,
    of `visits`.
    """

    exits: dict[ItemId, Exit] = field(default_factory=dict)
    labels: dict[ItemId, list[LabelerId]] = field(default_factory=dict)
    departed: int | None = None
    missing: dict[ItemId, int] = field(default_factory=dict)
    drawn: int = 0
    gold_moved: int = 0
    visits: int = 0
    idle: int = 0

    @property
    def ran_out(self) -> int:
        """How many items left when nobody was left to ask."""
        ends = ExitReason.EXHAUSTED, ExitReason.UNDECIDED
        return sum(exit.reason in ends for exit in self.exits.values())


def rerun(
    recorded: Recorded,
    plan: Plan,
    seed: int = 0,
    drawn: Drawn | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Rerun:
    """Run the stream again; with `drawn`, missing labels are drawn.

    >>> from venire import Item, Labeler, Scheduler
    >>> panel = [Labeler("ann", 0.9), Labeler("bob", 0.8)]
    >>> start, s = (Scheduler(panel, ["spam", "ok"], policy_named("everyone")) for _ in range(2))
    >>> s.arrive(Item("post-1", weight=8))
    >>> s.observe([Label(a.item, a.labeler, "ok") for a in s.assign()])
    >>> [exit.labels for exit in s.close()]
    [2]
    >>> recorded = Recorded.of(start, s.log)
    >>> rerun(recorded, Plan()).exits == recorded.exits
    True
    >>> cheaper = rerun(recorded, Plan(policy="fixed-overlap:1"))
    >>> cheaper.labels, cheaper.exits["post-1"].labels
    ({'post-1': ['ann']}, 1)
    """
    return _Running(recorded, plan, seed, drawn).run(progress)


class _Running:
    """A rerun while it lasts."""

    def __init__(self, recorded: Recorded, plan: Plan, seed: int, drawn: Drawn | None) -> None:
        self.recorded, self.plan, self.drawn = recorded, plan, drawn
        self.engine = _engine(recorded, plan, seed)
        self.out = Rerun()
        others = plan.without or plan.budget is not None
        if others or _settings(self.engine) != _settings(recorded.start):
            self.out.departed = 0
        self.number = 0  # the place in the log
        self.asked: dict[Pair, int] = {}  # how often each pair was asked
        self.awaited: set[int] = set()  # places of answers that come where they came
        self.due: list[tuple[int, int, Observed | Released]] = []  # other answers, by their slot
        self.coming: set[Pair] = set()  # whose labels are among either
        self.gone: set[ItemId] = set()  # items that have left by the log
        self.paid: dict[Pair, float] = {}
        self.sent, self.money, self.spent = 0, 0.0, False

    def run(self, progress: Callable[[int, int], None] | None) -> Rerun:
        log = self.recorded.log
        for self.number, event in enumerate(log):
            self._pass_to(event.slot)
            self._do(event)
            self.engine.drain()
            if progress is not None and self.number % PIECE == 0:
                progress(self.number, len(log))
        return self.out

    def _pass_to(self, slot: int) -> None:
        """Let time pass to a slot, with the answers that come until then."""
        while self.due and self.due[0][0] <= slot:
            self._left(self.engine.advance(self.due[0][0]))
            self._answer(heapq.heappop(self.due)[2])
        self._left(self.engine.advance(slot))

    def _left(self, exits: tuple[Exit, ...], then: tuple[Exit, ...] = ()) -> None:
        """These items left, where by the log those did."""
        self.out.exits.update((exit.item, exit) for exit in exits)
        self._compare(exits, then)
        for exit in exits:
            if exit.item in self.plan.gold:
                label = self.plan.gold[exit.item]
                self.engine.gold(exit.item, label, exit.verdict, exit.labels, warn=False)

    def _compare(self, now: object, then: object) -> None:
        if self.out.departed is None and now != then:
            self.out.departed = self.engine.slot

    def _do(self, event: Event) -> None:
        match event:
            case Arrived():
                self.engine.arrive(event.items)
            case Assigned():
                self._visit(event)
            case Observed() | Released():
                self._answer_then(event)
            case Closed():
                self._left(self.engine.close(), event.exits)
                self.gone.update(exit.item for exit in event.exits)
            case Joined() if event.labeler.id not in self.plan.without:
                self.engine.join(event.labeler)
            case AskedAgain() if event.labeler not in self.plan.without:
                self.engine.ask_again(event.item, event.labeler)
            case Left() if event.labeler not in self.plan.without:
                self.engine.leave(event.labeler)
            case Withdrawn() if self._is_open(event.item):
                self.engine.withdraw(event.item)
            case GoldGiven() if event.item not in self.plan.gold:
                self._give_gold(event)
            case Revised(revision=r) if r.item in self.out.exits:
                self.engine.revise(r.item, r.verdict, r.before, r.labels)
            case Changed():
                self._change(event)
            case _:
                pass

    def _is_open(self, item: ItemId) -> bool:
        return item in self.engine.state.registry.row

    def _give_gold(self, event: GoldGiven) -> None:
        """Tell the class of an item, unless it was withdrawn."""
        exit, is_open = self.out.exits.get(event.item), self._is_open(event.item)
        self.out.gold_moved += is_open == (event.item in self.gone)
        if is_open:
            known = self.engine.state.gold.get(event.item)
            if known is None or event.corrects is not None:  # what is known stays
                wrong = None if known is None else self.engine.classes[known]
                self.engine.gold(event.item, event.label, corrects=wrong)
        elif exit is not None:
            before, wrong = exit.verdict, event.corrects
            if wrong is not None:
                before = Verdict(wrong, 1.0)
            self.engine.gold(
                event.item, event.label, before, exit.labels, corrects=wrong, warn=False
            )

    # labels

    def _visit(self, event: Assigned) -> None:
        """Hand out work when it was handed out, and answer for the labelers."""
        names = event.asked
        if names is not None and self.plan.without:
            names = tuple(name for name in names if name not in self.plan.without)
        if self.spent or names == ():
            return
        work = self.engine.assign(names, event.ahead)
        self._compare(_pairs(work), _pairs(event.assignments))
        self.out.visits += 1 if names is None else len(names)
        served = 0
        while work:
            missed = [a for a in work if not self._ask((a.item, a.labeler), a.slot)]
            served += len(work) - len(missed)
            again = None if names is None else [a.labeler for a in missed]
            work = self.engine.assign(again, event.ahead) if missed and not self.spent else ()
        self.out.idle += (not served) if names is None else len(names) - served

    def _ask(self, pair: Pair, slot: int) -> bool:
        """Ask for a label, whose answer comes after the time that it took; False: not to be had."""
        if not self._affords(self.recorded.prices.get(pair[1], 0.0)):
            self.engine.release(*pair)
            return True
        answer = None if pair in self.coming else self._recorded_answer(pair)
        if answer is None and pair not in self.coming:
            self.out.missing[pair[0]] = self.out.missing.get(pair[0], 0) + 1
            if self.drawn is None:
                self.engine.release(*pair, bar=True)
                return False
            self.out.drawn += 1
            label, wait = Label(*pair, self.drawn.label(pair)), self.drawn.delay(pair)
            answer = Asked(-1, slot, [(-1, Observed(slot + wait, label, False))])
        self._pay(pair)
        if answer is not None:
            self._await(pair, slot, answer)
        return True

    def _await(self, pair: Pair, slot: int, answer: Asked) -> None:
        """The answer comes at its place in the log or, if it was asked elsewhere, in its time."""
        events = [event for _, event in answer.answers]
        labels = [event for event in events if isinstance(event, Observed)]
        if labels:
            self.coming.add(pair)
        if answer.event == self.number:
            self.awaited.update(place for place, _ in answer.answers)
            return
        for event in labels or events:
            come = slot + event.slot - answer.slot
            if come <= self.engine.slot:
                self._answer(event)
            else:
                self.sent += 1
                heapq.heappush(self.due, (come, self.sent, event))

    def _recorded_answer(self, pair: Pair) -> Asked | None:
        """What the log says to this question; None: nothing, or that the answer is still to come.

        If it was asked here in the log too, the answer that came then is it, even if none came.
        """
        asked, times = self.recorded.asked.get(pair, []), self.asked.get(pair, 0)
        for k in range(times, len(asked)):
            if asked[k].answers or asked[k].event == self.number:
                self.asked[pair] = k + 1
                return asked[k]
        return None

    def _answer_then(self, event: Observed | Released) -> None:
        """An answer, at its place in the log."""
        who = event.label.labeler if isinstance(event, Observed) else event.labeler
        if self.number in self.awaited:
            self.awaited.remove(self.number)
            self._answer(event)
        elif who in self.plan.without:
            return
        elif self.out.departed is None:
            self._answer(event)  # nobody asked
        elif isinstance(event, Observed) and self._is_unasked(event.label):
            if self._is_seated(who):
                self._visit(Assigned(event.slot, (), (who,)))
            elif self._is_open(event.label.item):
                self._answer(event)

    def _is_unasked(self, label: Label) -> bool:
        """Whether nobody asked for the label, then or now."""
        pair = label.item, label.labeler
        return self.recorded.asked[pair][0].event < 0 and pair not in self.asked

    def _is_seated(self, labeler: LabelerId) -> bool:
        m = self.engine.state.registry.known(labeler)
        return bool(self.engine.state.raw.queue.capacity[m] > 0)

    def _answer(self, event: Observed | Released) -> None:
        """A label comes, or will not come; nothing if its item was withdrawn or is forgotten."""
        registry = self.engine.state.registry
        if isinstance(event, Released):
            if event.item in registry.row and (event.barred or self._holds(event)):
                self.engine.release(event.item, event.labeler, event.barred)
                self.money -= self.paid.pop((event.item, event.labeler), 0.0)
            return
        pair = event.label.item, event.label.labeler
        self.coming.discard(pair)
        if pair[0] in registry.row or pair[0] in registry.left:
            self._pay(pair)
            self.out.labels.setdefault(pair[0], []).append(pair[1])
            self.engine.observe(event.label)
            if pair in self.recorded.sufficed and pair[0] in registry.row:
                self.engine.suffice(*pair, event.label.said)

    def _holds(self, event: Released) -> bool:
        """Whether the labeler holds the item, which may be otherwise once things are otherwise."""
        state = self.engine.state
        row, m = state.registry.row[event.item], state.registry.known(event.labeler)
        touch = state.queue.find(row, m)
        return touch >= 0 and int(state.queue.desk.touches["said"][touch]) == PENDING

    def _pay(self, pair: Pair) -> None:
        if pair not in self.paid:
            self.paid[pair] = self.recorded.prices.get(pair[1], 0.0)
            self.money += self.paid[pair]

    def _affords(self, price: float) -> bool:
        """Whether another label can be paid; after the first that cannot, nothing is bought."""
        budget = self.plan.budget
        if budget is None or self.spent:
            return not self.spent
        left = budget.left(self.money, len(self.paid))
        short = left.money is not None and left.money + 1e-9 < price
        if short or left.labels == 0:
            self.spent = True
            self.engine.change(bounds=replace(self.engine.bounds, spent=True))
        return not self.spent

    def _change(self, event: Changed) -> None:
        """Settings as they were changed, but for those of the plan and a budget that was spent."""
        plan, bounds = self.plan, event.bounds
        if bounds is not None:
            bounds = plan.bounds(bounds)
            if plan.budget is not None:
                bounds = replace(bounds, spent=self.spent)
        policy = event.policy if plan.policy is None else None
        learning = event.learning if plan.learning is None else None
        budget = event.budget if plan.budget is None else None
        now = policy, learning, bounds, budget
        self._compare(now, (event.policy, event.learning, event.bounds, event.budget))
        costs = None if event.costs is None else {(t, v): x for t, v, x in event.costs}
        kin = None if event.families is None else dict(event.families)
        usual = policy, learning, bounds, event.c, event.revisions, budget
        self.engine.change(*usual, costs=costs, families=kin)


def _pairs(work: Iterable[Assignment]) -> list[Pair]:
    return [(a.item, a.labeler) for a in work]


def _settings(s: Scheduler) -> tuple[object, ...]:
    """What a plan may change."""
    return s.policy, s.learning, s.bounds


def _engine(recorded: Recorded, plan: Plan, seed: int) -> Scheduler:
    """A fresh scheduler as the stream began, but for the plan."""
    start = recorded.start
    joined = {e.labeler.id for e in recorded.log if isinstance(e, Joined)}
    known = {who.id for who in start.panel} | joined
    for name in sorted(plan.without):
        if name not in known:
            raise UnknownName("labeler", name, known)
    panel = [who for who in start.panel if who.id not in plan.without]
    if not panel or not known - plan.without:
        raise InputError("nobody is left on the panel, expected somebody: leave out fewer labelers")
    policy = start.policy if plan.policy is None else policy_named(plan.policy, seed)
    learning = start.learning
    if plan.learning is not None:
        learning = learning_named(plan.learning, seed)
    bounds = plan.bounds(start.bounds)
    engine = Scheduler(
        panel,
        start.classes,
        policy,
        learning,
        start.c,
        bounds if plan.budget is None else replace(bounds, spent=False),
        remember=start.state.registry.remember,
        revisions=start.revisions,
        budget=start.budget if plan.budget is None else None,
        costs=start.costs,
        families=start.families,
    )
    for who in panel:
        if who.id not in start.seated:
            engine.leave(who.id)
    return engine
