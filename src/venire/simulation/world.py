"""A simulated world: a panel, what arrives, and everybody's labels.

Labels are fixed by the world, not by the schedule: the label of an item by a labeler is the same
under every policy, so that policies are compared on the same random draws.

Arrivals and weights by name, as the command line takes them. The items of a simulated stream, as
arrays in order of arrival.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from venire.errors import InputError
from venire.labels import LabelTable, Names
from venire.labels.sources import as_table
from venire.model import MOST_WEIGHT, Item, Labeler
from venire.scheduling.by_name import made_of
from venire.tools.arrays import Floats

#: The most excluded labelers that are listed for an item; with more it gets a group.
FEW = 4


@dataclass(frozen=True, eq=False)
class Masks:
    """Who may label which item.

    `group` picks a set of labelers out of `groups`, who alone may label the item; group 0, like
    None, is everyone. `barred` are pairs of an item and a labeler who may not label it.
    """

    group: NDArray[np.int32] | None = None
    groups: tuple[NDArray[np.int32], ...] = (np.zeros(0, np.int32),)
    barred: NDArray[np.int32] = field(default_factory=lambda: np.zeros((0, 2), np.int32))

    @classmethod
    def of(cls, allowed: Sequence[frozenset[int] | None], labelers: int) -> Masks:
        """One set of labelers for each item, None for everyone.

        A set that lacks only a few ("anyone but the author") is everyone with those barred;
        other sets that are equal share a group.
        """
        everyone = frozenset(range(labelers))
        numbers: dict[frozenset[int] | None, int] = {None: 0}
        group = np.zeros(len(allowed), np.int32)
        barred: list[tuple[int, int]] = []
        for i, members in enumerate(allowed):
            lacking = frozenset() if members is None else everyone - members
            if len(lacking) <= FEW and len(lacking) < labelers:
                barred += [(i, m) for m in sorted(lacking)]
            else:
                group[i] = numbers.setdefault(members, len(numbers))
        groups = tuple(np.array(sorted(s or ()), dtype=np.int32) for s in numbers)
        return cls(group, groups, np.array(barred, np.int32).reshape(-1, 2))

    def take(self, rows: NDArray[np.int32]) -> Masks:
        """The masks of these items, in this order; items may repeat."""
        if self.group is None:
            return self
        places: dict[int, list[int]] = {}
        for i, m in self.barred.tolist():
            places.setdefault(i, []).append(m)
        barred = [(k, m) for k, i in enumerate(rows.tolist()) for m in places.get(i, ())]
        return Masks(self.group[rows], self.groups, np.array(barred, np.int32).reshape(-1, 2))

    def may_label(self, item: int) -> tuple[NDArray[np.int32] | None, NDArray[np.int32]]:
        """The only labelers who may label the item (None: anyone), and those who may not."""
        g = 0 if self.group is None else int(self.group[item])
        return self.groups[g] if g else None, self.barred[self.barred[:, 0] == item, 1]


@dataclass(frozen=True, eq=False)
class Items:
    """What arrives: one entry per item, in order of arrival.

    `truth` is the class that a simulated label is drawn around; `truth_known` says whether
    it is used to judge verdicts. `source` is the item's row in a recorded table.
    """

    arrival: NDArray[np.int64]
    weight: NDArray[np.float64]
    truth: NDArray[np.int16]
    truth_known: bool = True
    ids: tuple[Hashable, ...] | None = None
    source: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    masks: Masks = field(default_factory=lambda: Masks())

    def __len__(self) -> int:
        return len(self.arrival)

    def first(self, slots: int) -> NDArray[np.int64]:
        """Entry t is the first item that arrives in slot t or later."""
        if len(self) and self.arrival[-1] >= slots:
            raise InputError(
                f"an item arrives in slot {self.arrival[-1]} and the last slot is {slots - 1}: "
                f"simulate at least {self.arrival[-1] + 1} slots"
            )
        return np.searchsorted(self.arrival, np.arange(slots + 1))

    def name(self, row: int) -> Hashable:
        """The item's id; its number where it has none."""
        return str(row) if self.ids is None else self.ids[row]


def arrivals_of(counts: Counts) -> NDArray[np.int64]:
    """The slot of each item, from the number of items in each slot."""
    if counts.sum(dtype=np.float64) >= 2**31:
        raise InputError(
            f"got {counts.sum(dtype=np.float64):.3g} items, expected fewer than 2**31: "
            "fewer slots, or fewer arrivals"
        )
    return np.repeat(np.arange(len(counts)), counts)


#: The longest range of weights, since all of them are listed.
LONGEST = 1_000_000


def arrivals_named(text: str) -> Arrivals:
    """`poisson[:RATE]`, `fixed[:ITEMS]` or `bursty[:SIZE[:EVERY[:TRICKLE]]]`.

    >>> arrivals_named("bursty:50:10")
    Bursty(size=50, every=10, trickle=0.0)
    """
    return made_of("arrivals", text, _ARRIVALS)


def weights_named(text: str) -> tuple[float, ...]:
    """Whole weights from a to b, `a-b`, or a list, `a,b,c`; all equally likely.

    >>> weights_named("3-6"), weights_named("0.5,8")
    ((3.0, 4.0, 5.0, 6.0), (0.5, 8.0))
    """
    low, dash, high = text.partition("-")
    if dash and low.strip().isdecimal() and high.strip().isdecimal():
        a, b = int(low), int(high)
        values = tuple(map(float, range(a, b + 1))) if b - a < LONGEST else ()
    else:
        values = tuple(map(_number, text.split(",")))
    if not values or not all(0 < w <= MOST_WEIGHT for w in values):
        raise InputError(
            f"got the weights {text!r}, expected numbers above 0: write a range such as 3-10, "
            "or a list such as 1,2,5"
        )
    return values


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


#: The paper's weights: 3, 4, ..., 10, equally likely.
PAPER_WEIGHTS = tuple(range(3, 11))


@dataclass(frozen=True, eq=False)
class World:
    """A panel with its true competences, a stream of items, and everybody's labels.

    Make one with `synthetic` (the paper's section 4), `recorded` (the labels of a real data
    set, replayed) or `trace` (your own items). `items(slots)` draws what arrives; the first
    slots of a longer stream are those of a shorter one. `changes` are slots from which on the
    labelers have other competences, with these: `((500, (0.6, 0.9)),)`.

    >>> world = World.synthetic(seed=0)
    >>> len(world.panel), world.panel[0].competence, len(world.items(1000))
    (30, 0.895, 4996)
    >>> world
    World(30 labelers of competence 0.75 to 0.895, classes 1, 2, seed=0)
    """

    panel: tuple[Labeler, ...]
    classes: tuple[Hashable, ...]
    seed: int
    draw: Callable[[World, int], Items]
    recorded_labels: LabelTable | None = None
    changes: tuple[tuple[int, tuple[float, ...]], ...] = ()

    def __post_init__(self) -> None:
        names = [labeler.id for labeler in self.panel]
        if not names:
            raise InputError("the panel is empty, expected at least one labeler")
        if len(set(names)) < len(names):
            twice = next(n for n in names if names.count(n) > 1)
            raise InputError(f"labeler {twice!r} is on the panel twice, expected distinct names")
        if any(labeler.competence is None for labeler in self.panel):
            raise InputError("a simulated labeler has no competence, expected one for each")
        if not isinstance(self.seed, int | np.integer) or self.seed < 0:
            raise InputError(f"got the seed {self.seed!r}, expected a whole number from 0 on")
        if len(self.classes) < 2:
            raise InputError(f"got the classes {list(self.classes)}, expected at least two")
        starts = [slot for slot, _ in self.changes]
        if any(a >= b for a, b in zip([0, *starts], starts, strict=False)):
            raise InputError(f"got changes from the slots {starts}, expected rising ones above 0")
        if any(len(p) != len(names) for _, p in self.changes):
            raise InputError(f"a change has too few or too many competences, expected {len(names)}")
        for slot, levels in self.changes:
            for name, p in zip(names, levels, strict=True):
                if not 0 < p < 1:
                    raise InputError(
                        f"labeler {name!r} has competence {p} from slot {slot} on, "
                        "expected a probability strictly between 0 and 1"
                    )

    def __repr__(self) -> str:
        p = self.competences
        classes = ", ".join(map(str, self.classes))
        return (
            f"World({len(p)} labelers of competence {p.min():.3g} to {p.max():.3g}, "
            f"classes {classes}, seed={self.seed})"
        )

    @property
    def competences(self) -> Floats:
        """The true competences, by which every schedule is measured, before any change."""
        return np.array([labeler.competence for labeler in self.panel], dtype=np.float64)

    @property
    def prices(self) -> Floats:
        """What one label of each labeler costs, in slots of delay."""
        return np.array([labeler.price for labeler in self.panel], dtype=np.float64)

    @property
    def levels(self) -> tuple[NDArray[np.int64], Floats]:
        """The slots from which on competences hold, and a row of them for each.

        >>> World.synthetic(competences=[0.9, 0.8], changes=[(50, (0.6, 0.8))]).levels
        (array([ 0, 50]), array([[0.9, 0.8], [0.6, 0.8]]))
        """
        since = np.array([0, *(slot for slot, _ in self.changes)], dtype=np.int64)
        return since, np.vstack([self.competences, *(p for _, p in self.changes)])

    def items(self, slots: int) -> Items:
        """What arrives in the first `slots` slots."""
        return self.draw(self, slots)

    def rng(self, purpose: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, purpose])

    def label_seed(self) -> np.uint64:
        """The seed of everybody's labels."""
        return np.uint64(self.rng(3).integers(2**63))

    def with_seed(self, seed: int) -> World:
        """The same world with other random draws."""
        return replace(self, seed=seed)

    @classmethod
    def synthetic(
        cls,
        seed: int = 0,
        competences: Sequence[float] | Floats | None = None,
        arrivals: Arrivals | str | None = None,
        weights: Sequence[float] = PAPER_WEIGHTS,
        capacity: int | Sequence[int] = 1,
        classes: int = 2,
        changes: Sequence[tuple[int, Sequence[float]]] = (),
    ) -> World:
        """The paper's synthetic set: 30 labelers of 0.9 - 0.005 m, Poisson(5), weights 3..10.

        Classes are equally likely; weights are drawn from `weights`, each equally likely.
        """
        p = 0.9 - 0.005 * np.arange(1, 31) if competences is None else np.asarray(competences)
        most = np.broadcast_to(capacity, len(p)).tolist()
        panel = tuple(Labeler(f"m{i + 1}", round(float(v), 12), most[i]) for i, v in enumerate(p))
        later = tuple((int(slot), tuple(map(float, levels))) for slot, levels in changes)
        draw = _Drawn(_flow(arrivals), _weights(weights))
        return cls(panel, tuple(range(1, classes + 1)), seed, draw, changes=later)

    @classmethod
    def recorded(
        cls,
        table: Any,
        truth: Mapping[Any, Hashable],
        competences: Mapping[Any, float] | Sequence[float] | Floats,
        seed: int = 0,
        arrivals: Arrivals | str | None = None,
        weights: Sequence[float] = PAPER_WEIGHTS,
        capacity: int | Sequence[int] = 1,
        repeats: bool = True,
    ) -> World:
        """Replay recorded labels (all that `as_table` takes): items are drawn with replacement.

        With `repeats=False` every item of the table arrives at most once, in random order and
        under its own name; when all have arrived, nothing more does. A labeler may label an
        item only where the table holds that label. `competences` is who the labelers are
        taken to be, such as the `skills_` that were learned on the whole table: by labeler, or
        in the order of `table.labelers`. `truth` may cover some of the items. `capacity` is one
        number for all, or one for each labeler.

        >>> rows = [("a", "ann", "yes"), ("a", "bob", "no"), ("b", "bob", "no")]
        >>> World.recorded(rows, {"a": "yes", "b": "no"}, {"bob": 0.7, "ann": 0.9}).competences
        array([0.9, 0.7])
        """
        table = as_table(table)
        most = np.broadcast_to(capacity, len(table.labelers)).tolist()
        levels = _levels(table.labelers, competences)
        panel = tuple(
            Labeler(str(name), min(max(p, 1e-9), 1 - 1e-9), int(n))
            for name, p, n in zip(table.labelers, levels, most, strict=True)
        )
        known = _known(table, truth)
        complete = len(table.labeler) == len(table.items) * len(table.labelers)
        allowed = [
            None if complete else frozenset(table.labeler[a:b].tolist())
            for a, b in zip(table.start[:-1], table.start[1:], strict=True)
        ]
        masks = Masks.of(allowed, len(panel))
        draw = _Replayed(_flow(arrivals), _weights(weights), table.items, known, masks, repeats)
        return cls(panel, tuple(table.classes), seed, draw, table)

    @classmethod
    def trace(
        cls,
        items: Sequence[Item],
        arrival: Sequence[int] | NDArray[np.int64],
        panel: Sequence[Labeler],
        truth: Sequence[Hashable] | None = None,
        classes: Sequence[Hashable] = (1, 2),
        seed: int = 0,
    ) -> World:
        """Your own items, each with its slot of arrival, and the labels drawn.

        Without `truth` the true class is drawn too, and no verdict is judged by it. Items of one
        slot keep their order.
        """
        names = frozenset(labeler.id for labeler in panel)
        return cls.columns(
            [item.id for item in items],
            arrival,
            [item.weight for item in items],
            panel,
            [_allowed(item, names) for item in items],
            truth,
            classes,
            seed,
        )

    @classmethod
    def columns(
        cls,
        ids: Sequence[str],
        arrival: Sequence[int] | NDArray[np.int64],
        weight: Sequence[float] | Floats,
        panel: Sequence[Labeler],
        allowed: Sequence[frozenset[str] | None] | None = None,
        truth: Sequence[Hashable] | None = None,
        classes: Sequence[Hashable] = (1, 2),
        seed: int = 0,
    ) -> World:
        """`trace` for very many items, as columns instead of `Item` objects.

        `allowed` names who may label an item, None for anyone; see `files.read_items`.
        """
        lengths = [len(c) for c in (ids, arrival, weight, allowed, truth) if c is not None]
        if len(set(lengths)) > 1:
            raise InputError(f"got columns of {lengths} items, expected equal numbers")
        order = np.argsort(np.asarray(arrival, dtype=np.int64), kind="stable")
        slots = np.asarray(arrival, dtype=np.int64)[order]
        weights = _weights(weight, empty=True)[order]
        if len(slots) and slots[0] < 0:
            raise InputError(f"an item arrives in slot {slots[0]}, expected slot 0 or later")
        if len(set(ids)) < len(ids):
            twice = next(name for name, n in Counter(ids).items() if n > 1)
            raise InputError(f"item {twice!r} is there twice, expected distinct ids")
        places = order.tolist()
        names = tuple(ids[i] for i in places)
        number = {labeler.id: m for m, labeler in enumerate(panel)}
        masks = Masks()
        if allowed is not None:
            masks = Masks.of([_numbers(allowed[i], number) for i in places], len(panel))
        given = None
        if truth is not None:
            given = _codes(truth, classes)[order]
        draw = _Listed(slots, weights, given, names, masks)
        return cls(tuple(panel), tuple(classes), seed, draw)


@dataclass(frozen=True, eq=False)
class _Drawn:
    """The items of `World.synthetic`; like those below no closure, so that a world is pickled."""

    flow: Arrivals
    weights: Floats

    def __call__(self, world: World, slots: int) -> Items:
        arrival, weight = self._arrive(world, slots)
        return Items(arrival, weight, _truth(world, len(arrival)))

    def _arrive(self, world: World, slots: int, most: int | None = None) -> Any:
        arrival = arrivals_of(self.flow.draw(world.rng(0), slots))[:most]
        return arrival, self.weights[world.rng(1).integers(len(self.weights), size=len(arrival))]


@dataclass(frozen=True, eq=False)
class _Replayed(_Drawn):
    """The items of `World.recorded`."""

    names: Names
    known: NDArray[np.int16]
    masks: Masks
    repeats: bool

    def __call__(self, world: World, slots: int) -> Items:
        arrival, weight = self._arrive(world, slots, None if self.repeats else len(self.names))
        source = _pick(world.rng(2), len(self.names), len(arrival), self.repeats)
        ids = None if self.repeats else tuple(self.names[i] for i in source)
        masks = self.masks.take(source)
        return Items(arrival, weight, self.known[source], True, ids, source, masks)


@dataclass(frozen=True, eq=False)
class _Listed:
    """The items of `World.columns`."""

    slots: NDArray[np.int64]
    weights: Floats
    truth: NDArray[np.int16] | None
    names: tuple[str, ...]
    masks: Masks

    def __call__(self, world: World, slots: int) -> Items:
        truth = _truth(world, len(self.names)) if self.truth is None else self.truth
        known, none = self.truth is not None, np.zeros(0, np.int32)
        return Items(self.slots, self.weights, truth, known, self.names, none, self.masks)


def _truth(world: World, items: int) -> NDArray[np.int16]:
    return world.rng(2).integers(len(world.classes), size=items).astype(np.int16)


def _levels(
    labelers: Names, competences: Mapping[Any, float] | Sequence[float] | Floats
) -> list[float]:
    """The competence of each labeler: by name, or in their order."""
    if isinstance(competences, Mapping):
        missing = next((name for name in labelers if name not in competences), None)
        if missing is not None:
            raise InputError(f"got no competence of labeler {missing!r}, expected one for each")
        levels = [float(competences[name]) for name in labelers]
    else:
        levels = np.asarray(competences, np.float64).tolist()
    if len(levels) != len(labelers):
        raise InputError(f"got {len(levels)} competences, expected {len(labelers)}, one a labeler")
    for name, p in zip(labelers, levels, strict=True):
        if not 0 <= p <= 1:
            raise InputError(f"labeler {name!r} has competence {p:g}, expected a probability")
    return levels


def _known(table: LabelTable, truth: Mapping[Any, Hashable]) -> NDArray[np.int16]:
    """The true class of each item by its number, -1 where it is not known."""
    code = {name: k for k, name in enumerate(table.classes)}
    known = np.array([code.get(truth.get(i), -1) for i in table.items], dtype=np.int16)
    if len(truth) and not (known >= 0).any():
        item, label = next(iter(truth.items()))
        raise InputError(
            f"the truth, {item!r}: {label!r:.40} and so on, is that of no item: expected items "
            f"such as {table.items[0]!r} and the classes {list(table.classes)}"
        )
    return known


def _flow(arrivals: Arrivals | str | None) -> Arrivals:
    """What arrives, by name or as it is; None: the paper's."""
    if isinstance(arrivals, str):
        return arrivals_named(arrivals)
    if not isinstance(arrivals, Arrivals | None):
        raise InputError(
            f"got arrivals={arrivals!r}, expected a name such as 'poisson:5', or an object such as "
            "venire.Poisson(5)"
        )
    return arrivals or Poisson(5)


def _weights(weights: Sequence[float] | Floats, empty: bool = False) -> Floats:
    """Validate weights; `empty` says whether there may be none."""
    values = np.asarray(weights, dtype=np.float64)
    wrong = values[~((values > 0) & (values <= MOST_WEIGHT))]
    if len(wrong) or not (empty or len(values)):
        got = f"a weight of {wrong[0]}" if len(wrong) else "no weights"
        raise InputError(f"got {got}, expected numbers above 0 and up to {MOST_WEIGHT:g}")
    return values


def _pick(rng: np.random.Generator, items: int, count: int, repeats: bool) -> NDArray[np.int32]:
    """The item of a recorded table for each arrival."""
    if repeats:
        return rng.integers(items, size=count).astype(np.int32)
    return rng.permutation(items)[:count].astype(np.int32)


def _allowed(item: Item, panel: frozenset[str]) -> frozenset[str] | None:
    """Who may label the item, None for anyone."""
    if item.eligible is None and not item.excluded:
        return None
    unknown = sorted(((item.eligible or frozenset()) | item.excluded) - panel)
    if unknown:
        raise InputError(
            f"item {item.id!r} names labeler {unknown[0]!r}, who is not on the panel: "
            f"expected some of {sorted(panel)}"
        )
    return (panel if item.eligible is None else item.eligible) - item.excluded


def _numbers(names: frozenset[str] | None, number: Mapping[str, int]) -> frozenset[int] | None:
    return None if names is None else frozenset(number[name] for name in names)


def _codes(truth: Sequence[Hashable], classes: Sequence[Hashable]) -> NDArray[np.int16]:
    code = {name: k for k, name in enumerate(classes)}
    unknown = next((name for name in truth if name not in code), None)
    if unknown is not None:
        raise InputError(f"the truth {unknown!r} is not one of the classes {list(classes)}")
    return np.array([code[name] for name in truth], dtype=np.int16)


Counts = NDArray[np.int64]


@runtime_checkable
class Arrivals(Protocol):
    """How many items arrive in each slot."""

    def draw(self, rng: np.random.Generator, slots: int) -> Counts: ...


@dataclass(frozen=True)
class Poisson:
    """A Poisson number of items in each slot (the paper's synthetic set: rate 5).

    >>> Poisson(5).draw(np.random.default_rng(0), 4).tolist()
    [3, 7, 3, 4]
    """

    rate: float = 5.0

    def __post_init__(self) -> None:
        if not self.rate > 0:
            raise InputError(f"got an arrival rate of {self.rate}, expected a number above 0")

    def draw(self, rng: np.random.Generator, slots: int) -> Counts:
        return rng.poisson(self.rate, slots)


@dataclass(frozen=True)
class Fixed:
    """The same number of items in each slot.

    >>> Fixed(2).draw(np.random.default_rng(0), 3).tolist()
    [2, 2, 2]
    """

    items: int = 1

    def __post_init__(self) -> None:
        if self.items < 0:
            raise InputError(f"got {self.items} items a slot, expected at least 0")

    def draw(self, rng: np.random.Generator, slots: int) -> Counts:
        return np.full(slots, self.items, dtype=np.int64)


@dataclass(frozen=True)
class Bursty:
    """`size` items at once, every `every` slots, and a Poisson trickle in between.

    >>> Bursty(size=50, every=3).draw(np.random.default_rng(0), 5).tolist()
    [50, 0, 0, 50, 0]
    """

    size: int = 50
    every: int = 10
    trickle: float = 0.0

    def __post_init__(self) -> None:
        if self.size < 0 or self.every < 1 or self.trickle < 0:
            raise InputError(
                f"got bursts of {self.size} every {self.every} slots and a trickle of "
                f"{self.trickle}, expected at least 0, 1 and 0"
            )

    def draw(self, rng: np.random.Generator, slots: int) -> Counts:
        counts = rng.poisson(self.trickle, slots).astype(np.int64)
        counts[:: self.every] += self.size
        return counts


@dataclass(frozen=True)
class Trace:
    """Recorded counts of arrivals; nothing arrives after the last one.

    >>> Trace((3, 0, 1)).draw(np.random.default_rng(0), 5).tolist()
    [3, 0, 1, 0, 0]
    """

    counts: tuple[int, ...]

    def __post_init__(self) -> None:
        if any(n < 0 for n in self.counts):
            raise InputError("a count of arrivals is negative, expected at least 0")

    def draw(self, rng: np.random.Generator, slots: int) -> Counts:
        if slots < len(self.counts):
            raise InputError(
                f"the trace has {len(self.counts)} slots and the horizon is {slots}: "
                "give at least as many slots as the trace has"
            )
        counts = np.zeros(slots, dtype=np.int64)
        counts[: len(self.counts)] = self.counts
        return counts


_ARRIVALS: dict[str, type[Bursty] | type[Fixed] | type[Poisson]] = {
    "bursty": Bursty,
    "fixed": Fixed,
    "poisson": Poisson,
}
