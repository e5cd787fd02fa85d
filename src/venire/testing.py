"""Batteries that every policy and every estimator must pass; use them for your own.

    from venire.testing import check_competence, check_policy

    check_policy(MyPolicy())
    check_competence(MyEstimator())

Each raises AssertionError with what went wrong.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from venire.competence.base import BaseEstimator
from venire.engine import Scheduler
from venire.labels import LabelTable
from venire.model import Assignment, Exit, Item, Label, Labeler
from venire.scheduling.base import Learning, Policy
from venire.scheduling.loop import ask
from venire.simulation import Poisson, World, simulate
from venire.simulation.items import Items
from venire.simulation.run import stream_of

__all__ = ["check_competence", "check_policy", "drive"]


def drive(
    world: World, policy: Policy, slots: int, learning: Learning | None = None
) -> tuple[list[Assignment], list[Exit], Scheduler]:
    """Drive the engine over a simulated world by its four verbs, every label within its slot.

    >>> from venire import Greedy
    >>> given, left, scheduler = drive(World.synthetic(seed=0), Greedy(), slots=20)
    >>> len(given) == len(list(simulate(World.synthetic(seed=0), slots=20).assignments()))
    True
    """
    items = world.items(slots)
    stream = stream_of(world, items, slots)
    names = [labeler.id for labeler in world.panel]
    number = {name: m for m, name in enumerate(names)}
    row = {str(items.name(i)): i for i in range(len(items))}
    s = Scheduler(_panel(world, learning), world.classes, policy, learning)
    given: list[Assignment] = []
    left: list[Exit] = []
    for slot in range(slots):
        s.arrive(_item(items, i, names) for i in range(stream.first[slot], stream.first[slot + 1]))
        for a in s.assign():
            given.append(a)
            said = ask(stream, row[a.item], number[a.labeler], slot)
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
    engine does what the compiled run does; a log replays to the same state.

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
    given, left, scheduler = drive(world, policy, slots)
    assert list(map(repr, given)) == list(map(repr, run.assignments())), "the engine differs"
    gone = [e for e in run.exits() if e.reason != "horizon"]
    assert left == gone, "items leave the engine otherwise than the compiled run"
    replayed = Scheduler(world.panel, world.classes, policy).replay(scheduler.log)
    assert replayed.fingerprint() == scheduler.fingerprint(), "replay gave another state"


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


def check_competence(estimator: BaseEstimator) -> None:
    """What every estimator must do.

    It survives pickling; fitting twice gives the same; the order of the rows is irrelevant;
    competences and posteriors are probabilities; better labelers are told from worse ones.

    >>> from venire import OneCoin
    >>> check_competence(OneCoin())
    """
    rng = np.random.default_rng(11)
    p = np.array([0.92, 0.85, 0.8, 0.75, 0.7, 0.6])
    truth = rng.integers(2, size=600)
    said = np.where(rng.random((600, 6)) < p, truth[:, None], 1 - truth[:, None])
    rows = [(i, m, int(said[i, m])) for i in range(600) for m in range(6) if rng.random() < 0.8]
    table = _table(rows)
    first = estimator.fit(table).competences_.copy()
    assert (pickle.loads(pickle.dumps(estimator)).fit(table).competences_ == first).all()
    shuffled = [rows[k] for k in rng.permutation(len(rows))]
    assert (estimator.fit(_table(shuffled)).competences_ == first).all(), "row order matters"
    assert ((first >= 0) & (first <= 1)).all(), "a competence is no probability"
    totals = estimator.posteriors_.sum(axis=1)
    assert np.allclose(totals, 1), "posteriors do not sum to 1"
    assert np.corrcoef(first, p)[0, 1] > 0.9, "it does not tell good labelers from bad ones"


def _table(rows: list[tuple[int, int, int]]) -> LabelTable:
    item, labeler, said = np.array(rows).T
    names = tuple(range(600)), tuple(range(6))
    return LabelTable.from_codes(item, labeler, said, *names, (0, 1))
