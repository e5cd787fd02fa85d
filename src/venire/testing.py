"""Batteries that every policy, way of learning and estimator must pass; use them for your own.

    from venire.testing import check_competence, check_learning, check_policy

    check_policy(MyPolicy())
    check_learning(MyLearning())
    check_competence(MyEstimator())

Each raises AssertionError with what went wrong.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from venire.costs import Costs
from venire.engine import Scheduler
from venire.estimators.base import BaseEstimator
from venire.labels import LabelTable
from venire.model import Assignment, Bounds, Exit, ExitReason, Item, Label, Labeler
from venire.scheduling.base import Learner, Learning, Policy
from venire.scheduling.policies.greedy import Greedy
from venire.simulation import Poisson, Run, World, simulate
from venire.simulation.loop import answer, stream_of
from venire.simulation.world import Items

__all__ = ["check_competence", "check_learning", "check_policy", "drive"]


def drive(
    world: World,
    policy: Policy,
    slots: int,
    learning: Learning | None = None,
    costs: Costs | None = None,
) -> tuple[list[Assignment], list[Exit], Scheduler]:
    """Drive the engine over a simulated world by its four verbs, every label within its slot.

    >>> from venire import Greedy
    >>> given, left, scheduler = drive(World.synthetic(seed=0), Greedy(), slots=20)
    >>> len(given) == len(list(simulate(World.synthetic(seed=0), Greedy(), slots=20).assignments()))
    True
    """
    items = world.items(slots)
    stream = stream_of(world, items, slots)
    names = [labeler.id for labeler in world.panel]
    number = {name: m for m, name in enumerate(names)}
    row = {str(items.name(i)): i for i in range(len(items))}
    s = Scheduler(_panel(world, learning), world.classes, policy, learning, costs=costs)
    given: list[Assignment] = []
    left: list[Exit] = []
    for slot in range(slots):
        s.arrive(_item(items, i, names) for i in range(stream.first[slot], stream.first[slot + 1]))
        for a in s.assign():
            given.append(a)
            said = answer(stream, row[a.item], number[a.labeler], slot)
            s.observe(Label(a.item, a.labeler, world.classes[said]))
        left += s.close()
    return given, left, s


def _panel(world: World, learning: Learning | None) -> Sequence[Labeler]:
    """The labelers; those who are to be learned about tell nothing of themselves."""
    return [replace(who, competence=None) for who in world.panel] if learning else world.panel


def _item(items: Items, i: int, names: list[str]) -> Item:
    only, barred = items.masks.may_label(i)
    eligible = None if only is None else frozenset(names[m] for m in only)
    excluded = frozenset(names[m] for m in barred)
    return Item(str(items.name(i)), float(items.weight[i]), eligible, excluded)


def check_policy(policy: Policy, slots: int = 60) -> None:
    """What every policy must do.

    It survives pickling; the same seed gives the same rows; it names itself; nobody labels an
    item twice, is given one it may not label or is over capacity; an item leaves once; the
    engine does what the compiled run does; a log replays to the same state. All this holds too
    where work is handed out several times a slot, given back, and pulled by one at a time. An
    item that must have a confidence does not leave below it while somebody may label it.

    >>> from venire import FixedOverlap
    >>> check_policy(FixedOverlap(2))
    """
    assert pickle.loads(pickle.dumps(policy)) == policy, "it does not survive pickling"
    assert policy.describe().split(":")[0] == policy.name, "describe() does not begin with name"
    world = _busy_world()
    run, again = (simulate(world, policy, slots=slots) for _ in range(2))
    assert run.touches.tobytes() == again.touches.tobytes(), "the same seed gave other rows"
    pairs = Counter(zip(run.touches["row"].tolist(), run.touches["labeler"].tolist(), strict=True))
    assert max(pairs.values(), default=0) <= 1, "a labeler was given an item twice"
    assert all(t["slot"] >= run.rows["arrival"][t["row"]] for t in run.touches), "given too early"
    load = Counter(zip(run.touches["slot"].tolist(), run.touches["labeler"].tolist(), strict=True))
    for (_, m), n in load.items():
        assert n <= world.panel[m].capacity, "a labeler was given more than its capacity"
    _check_engine(run)
    _check_hand_outs(policy, world, slots)
    _check_floor(policy)


def _check_floor(policy: Policy) -> None:
    """Items that hardly any policy wants a second label of: three that agree are enough."""
    names, bounds = ("ann", "bob", "eve"), Bounds(min_confidence=0.97)
    panel = [Labeler(name, 0.8) for name in names]
    s = Scheduler(panel, ("spam", "ok"), policy, bounds=bounds)
    s.arrive([Item(f"i{k}", weight=0.01) for k in range(4)])
    left: list[Exit] = []
    for _ in range(20):
        for name in names * 4:
            for a in s.assign([name]):
                other = (a.item, name) == ("i1", "bob")
                s.observe(Label(a.item, name, "ok" if other else "spam"))
        left += s.close()
    assert len(left) == 4, "an item below its confidence is left to wait"
    for e in left:
        how = ("undecided" if e.item == "i1" else "confident", 3)
        assert (e.reason, e.labels) == how, "an item left below its confidence"


def _check_hand_outs(policy: Policy, world: World, slots: int) -> None:
    """Everyone gets work twice a slot, then each asks for itself; labels come, or come back."""
    rng = np.random.default_rng(3)
    items, names = world.items(slots), [who.id for who in world.panel]
    first = stream_of(world, items, slots).first
    desk = _HandOuts(world, policy)
    for slot in range(slots):
        desk.arrive(_item(items, i, names) for i in range(first[slot], first[slot + 1]))
        if slot % 3:  # in every third slot all work is pulled
            given = desk.hand_out()
            if given:
                desk.release(given[rng.integers(len(given))], bar=bool(rng.random() < 0.5))
            desk.hand_out()
        desk.hear(0.6, rng)
        for name in rng.permutation(names).tolist():
            given = desk.hand_out([name])
            if given and rng.random() < 0.3:
                desk.release(given[0], bar=False)
                desk.hand_out([name])
            desk.hear(0.2, rng)
        desk.close()
    _check_replay(Scheduler(world.panel, world.classes, policy), desk.scheduler)


class _HandOuts:
    """A scheduler whose every hand-out is checked."""

    def __init__(self, world: World, policy: Policy) -> None:
        self.scheduler = Scheduler(world.panel, world.classes, policy)
        self.capacity = {who.id: who.capacity for who in world.panel}
        self.classes = world.classes
        self.here: dict[str, Item] = {}
        self.taken: set[tuple[str, str]] = set()  # who has, had or may not have what
        self.held: list[Assignment] = []

    def arrive(self, items: Iterable[Item]) -> None:
        batch = list(items)
        self.here |= {str(item.id): item for item in batch}
        self.scheduler.arrive(batch)

    def hand_out(self, asked: list[str] | None = None) -> tuple[Assignment, ...]:
        given = self.scheduler.assign(asked)
        for a in given:
            assert a.item in self.here, "an item was given that is not there"
            only, barred = self.here[a.item].eligible, self.here[a.item].excluded
            assert only is None or a.labeler in only, "an item was given to who may not label it"
            assert a.labeler not in barred, "an item was given to who may not label it"
            assert (a.item, a.labeler) not in self.taken, "a labeler was given an item twice"
            self.taken.add((a.item, a.labeler))
        if asked is not None:
            who = [a.labeler for a in given]
            assert set(who) <= set(asked), "work was given to somebody who did not ask"
            assert len(set(who)) == len(who), "who asked once was given more than one item"
        self.held += given
        for name, n in Counter(a.labeler for a in self.held).items():
            assert n <= self.capacity[name], "a labeler holds more than its capacity"
        return given

    def release(self, work: Assignment, bar: bool) -> None:
        self.scheduler.release(work.item, work.labeler, bar)
        self.held.remove(work)
        if not bar:
            self.taken.remove((work.item, work.labeler))

    def hear(self, share: float, rng: np.random.Generator) -> None:
        """Of the labels that somebody holds, about this share comes."""
        for a in [a for a in self.held if rng.random() < share]:
            self.held.remove(a)
            said = self.classes[rng.integers(len(self.classes))]
            self.scheduler.observe(Label(a.item, a.labeler, said))

    def close(self) -> None:
        for e in self.scheduler.close():
            assert self.here.pop(str(e.item), None) is not None, "an item left twice"
        self.held = [a for a in self.held if a.item in self.here]


def _busy_world() -> World:
    """More work than the panel can do, unequal capacities, some items not for everybody."""
    rng = np.random.default_rng(7)
    panel = [Labeler(f"m{i}", float(p), 1 + i % 3) for i, p in enumerate(rng.uniform(0.5, 0.95, 8))]
    counts = Poisson(6).draw(rng, 60)
    arrival = np.repeat(np.arange(60), counts)
    some = [None, None, frozenset({"m0", "m1", "m2"}), frozenset({"m5"}), frozenset[str]()]
    items = [
        Item(f"i{i}", float(rng.integers(1, 12)), some[rng.integers(len(some))])
        for i in range(len(arrival))
    ]
    return World.trace(items, arrival, panel, seed=7)


def check_learning(learning: Learning, policy: Policy | None = None, slots: int = 150) -> None:
    """What every way of learning must do.

    It survives pickling; it names itself; the engine learns what the compiled run does, and a
    log replays to the same state, with somebody who joins and somebody who leaves in the middle;
    a learner that is restored from a snapshot goes on as the other one, to the bit.

    >>> from venire import LearnThenServe
    >>> check_learning(LearnThenServe(20))
    """
    policy = policy or Greedy()
    again = pickle.loads(pickle.dumps(learning))
    assert repr(again) == repr(learning), "it does not survive pickling"
    assert learning.describe().split(":")[0] == learning.name, "describe() begins otherwise"
    p = [0.92, 0.85, 0.8, 0.7, 0.6, 0.5, 0.45]
    world = World.synthetic(3, p, Poisson(4), weights=(2, 5, 9), capacity=[1, 2, 1, 1, 3, 1, 1])
    run = simulate(world, policy, learning, slots)
    _check_engine(run)
    panel = _panel(world, learning)
    busy = _come_and_go(Scheduler(panel, world.classes, policy, learning), world)
    _check_replay(Scheduler(panel, world.classes, policy, learning), busy)
    _check_snapshots(learning, run.touches, len(panel), len(world.classes))


def _check_engine(run: Run) -> None:
    """The engine does what the compiled run did, and its log replays to the same state."""
    world, policy, learning = run.world, run.policy, run.learning
    given, left, scheduler = drive(world, policy, run.slots, learning)
    assert list(map(repr, given)) == list(map(repr, run.assignments())), "the engine differs"
    gone = [e for e in run.exits() if e.reason is not ExitReason.HORIZON]
    assert left == gone, "items leave the engine otherwise than the compiled run"
    fresh = Scheduler(_panel(world, learning), world.classes, policy, learning)
    _check_replay(fresh, scheduler)


def _check_replay(fresh: Scheduler, first: Scheduler) -> None:
    fresh.replay(first.log)
    assert fresh.fingerprint() == first.fingerprint(), "replay gave another state"


def _come_and_go(s: Scheduler, world: World, slots: int = 40) -> Scheduler:
    """Labels that come slots later, or after the item has left; labelers who come and go."""
    rng = np.random.default_rng(5)
    open_work: list[Assignment] = []
    for slot in range(slots):
        s.arrive(Item(f"{slot}.{i}", 6.0) for i in range(3))
        open_work += s.assign()
        for a in [a for a in open_work if rng.random() < 0.6]:
            open_work.remove(a)
            s.observe(Label(a.item, a.labeler, world.classes[rng.integers(2)]))
        if slot == slots // 2:
            s.join("newcomer")
            s.join(Labeler("expert", 0.95))
            s.leave(world.panel[0].id)
        s.close()
    return s


def _check_snapshots(learning: Learning, touches: Any, labelers: int, classes: int) -> None:
    """Go on from a snapshot at every tenth look, beside the one that it was taken of."""
    one, other = (learning.begin([None] * labelers, classes) for _ in range(2))
    slot, heard, looks, last = 0, 0, 0, int(touches["slot"][-1])
    while (refresh := learning.next_refresh(slot)) is not None and refresh <= last:
        if looks % 10 == 9:
            other = learning.begin([None] * labelers, classes)
            other.restore(one.state())
        stop = int(np.searchsorted(touches["slot"], refresh, side="right"))
        part = [touches[heard:stop][n].astype(np.int64) for n in ("row", "labeler", "said")]
        for learner in (one, other):
            if looks % 10 == 9:
                learner.join(None)
            learner.learn(*part)
        assert _packed(other) == _packed(one), "a restored learner goes on otherwise"
        labelers += looks % 10 == 9
        assert one.belief is None or len(one.belief.competences) == labelers, "somebody is missing"
        slot, heard, looks = refresh + 1, stop, looks + 1


def _packed(learner: Learner) -> list[bytes]:
    belief = learner.belief
    parts = [] if belief is None else [belief.competences, belief.confusions, belief.prior]
    parts += [] if belief is None else [belief.hoped]
    state = learner.state()
    return [a.tobytes() for a in [*parts, *(state[k] for k in sorted(state))] if a is not None]


def check_competence(estimator: BaseEstimator) -> None:
    """What every estimator must do.

    `fit` returns the estimator and takes labels of any form (`as_table`); it survives pickling;
    fitting twice gives the same; the order of the rows is irrelevant; competences and posteriors
    are probabilities, in the order of the table; verdicts are right more often than labels;
    better labelers are told from worse ones.

    >>> from venire import OneCoin
    >>> check_competence(OneCoin())
    """
    rng = np.random.default_rng(11)
    p = np.array([0.92, 0.85, 0.8, 0.75, 0.7, 0.6])
    truth = rng.integers(2, size=600)
    said = np.where(rng.random((600, 6)) < p, truth[:, None], 1 - truth[:, None])
    rows = [(i, m, int(said[i, m])) for i in range(600) for m in range(6) if rng.random() < 0.8]
    table = _table(rows)
    assert estimator.fit(table) is estimator, "fit does not return the estimator"
    first = estimator.competences_.copy()
    again = pickle.loads(pickle.dumps(estimator)).fit(table).competences_
    assert (again == first).all(), "it does not survive pickling, or a second fit gives another"
    shuffled = [rows[k] for k in rng.permutation(len(rows))]
    assert (estimator.fit(_table(shuffled)).competences_ == first).all(), "row order matters"
    assert ((first >= 0) & (first <= 1)).all(), "a competence is not a probability"
    totals = estimator.posteriors_.sum(axis=1)
    assert np.allclose(totals, 1), "posteriors do not sum to 1"
    assert np.corrcoef(first, p)[0, 1] > 0.9, "it does not tell good labelers from bad ones"
    verdicts: dict[Any, Any] = estimator.labels_
    right = np.mean([verdict == truth[item] for item, verdict in verdicts.items()])
    assert right > p.mean(), "its verdicts are not better than one label"
    assert list(estimator.fit(rows).labels_) == list(dict.fromkeys(i for i, _, _ in rows)), (
        "fit takes no rows: begin with table = as_table(labels)"
    )


def _table(rows: list[tuple[int, int, int]]) -> LabelTable:
    item, labeler, said = np.array(rows).T
    names = tuple(range(600)), tuple(range(6))
    return LabelTable.from_codes(item, labeler, said, *names, (0, 1))
