"""The worlds of the suite: panels that violate the model; functions of seed and slots.

What every labeler would say of every item is drawn in advance, so a labeler may err in any way:
always say the same, copy another, know only some kinds of items. Items weigh 20 to 100 and arrive
at random, with about four labels each if everybody works, unless stated otherwise. A change to any
of them requires a new name for the suite.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from venire.errors import UnknownName
from venire.labels import LabelTable
from venire.simulation import Poisson, World
from venire.simulation.world import Arrivals, Fixed, Items, Masks
from venire_research.trust.posts import JUDGES, posts

__all__ = ["SLOTS", "WORLDS", "TrustWorld", "world_named"]

#: How long a stream is.
SLOTS: Final = 300

#: What items weigh: enough for a label or two more.
HEAVY: Final = tuple(range(20, 101, 10))

#: Labels per item, if everybody works all the time.
EACH: Final = 4.0

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

#: What everybody says of items of these classes: items x labelers.
Say = Callable[[Ints, np.random.Generator], Ints]
#: Who may label items that come in these slots: items x labelers.
May = Callable[[Ints, np.random.Generator], Bools]


def made(
    seed: int,
    slots: int,
    say: Say,
    labelers: int,
    *,
    shares: tuple[float, ...] | Callable[[Floats], Floats] = (1, 1),
    arrivals: Arrivals | None = None,
    weights: tuple[float, ...] = HEAVY,
    capacity: int = 1,
    may: May | None = None,
) -> World:
    """A world in which `say` draws what everyone says; classes have these shares.

    A function says how frequent the second of two classes is at each place in the stream, 0 to 1.
    """
    flow = arrivals or Poisson(labelers / EACH)
    classes, coin = 2 if callable(shares) else len(shares), [0.5] * labelers
    world = World.synthetic(seed, coin, flow, weights, capacity, classes)
    items, rng = world.items(slots), world.rng(4)
    if callable(shares):
        place = np.arange(len(items)) / max(len(items), 1)
        truth = (rng.random(len(items)) < shares(place)).astype(np.int64)
    else:
        truth = rng.choice(classes, len(items), p=np.array(shares) / sum(shares))
    said = say(truth, rng)
    right = np.clip((said == truth[:, None]).mean(axis=0), 0.01, 0.99)
    able = None if may is None else may(items.arrival, rng)
    if able is not None:
        said = np.where(able, said, -1)
    table = LabelTable.from_matrix(said, classes)
    masks = Masks()
    if able is not None:
        masks = Masks.of([frozenset(np.flatnonzero(row).tolist()) for row in able], labelers)

    def draw(world: World, horizon: int) -> Items:
        rows = np.arange(np.searchsorted(items.arrival, horizon), dtype=np.int32)
        known = truth[rows].astype(np.int16)
        come, weight = items.arrival[rows], items.weight[rows]
        return Items(come, weight, known, source=rows, masks=masks.take(rows))

    pairs = zip(world.panel, right.tolist(), strict=True)
    panel = tuple(replace(who, competence=p) for who, p in pairs)
    return replace(world, panel=panel, draw=draw, recorded_labels=table)


def coins(truth: Ints, p: Floats, classes: int, rng: np.random.Generator) -> Ints:
    """Right with probability p (one for each labeler, or for each item too), else any other."""
    p = np.broadcast_to(p, (len(truth), np.shape(p)[-1]))
    other = rng.integers(1, classes, size=p.shape)
    wrong = (truth[:, None] + other) % classes
    return np.where(rng.random(p.shape) < p, truth[:, None], wrong)


def spammers(seed: int, slots: int, many: int) -> World:
    """12 labelers of 0.8, and `many` who always say the first class."""

    def say(truth: Ints, rng: np.random.Generator) -> Ints:
        honest = coins(truth, np.full(12, 0.8), 2, rng)
        return np.hstack([honest, np.zeros((len(truth), many), np.int64)])

    return made(seed, slots, say, 12 + many, arrivals=Poisson(3))


def small_panel(seed: int, slots: int, many: int) -> World:
    """A small panel of labelers of 0.9 to 0.6, about two and a half labels per item."""
    p = np.linspace(0.9, 0.6, many)
    flow = Poisson(many / 2.5)
    return made(seed, slots, lambda truth, rng: coins(truth, p, 2, rng), many, arrivals=flow)


def five_classes(seed: int, slots: int) -> World:
    """Five classes, 15 labelers of 0.8 to 0.45."""
    p = np.linspace(0.8, 0.45, 15)
    return made(seed, slots, lambda truth, rng: coins(truth, p, 5, rng), 15, shares=(1,) * 5)


def rare(seed: int, slots: int) -> World:
    """One item in 51 is of the second class; 12 labelers of 0.95 to 0.75."""
    p = np.linspace(0.95, 0.75, 12)
    return made(seed, slots, lambda truth, rng: coins(truth, p, 2, rng), 12, shares=(50, 1))


def class_specialists(seed: int, slots: int) -> World:
    """Four classes; each of 12 labelers is right on one of them (0.95), else at 0.45."""
    knows = np.arange(12)[None, :] % 4

    def say(truth: Ints, rng: np.random.Generator) -> Ints:
        return coins(truth, np.where(truth[:, None] == knows, 0.95, 0.45), 4, rng)

    return made(seed, slots, say, 12, shares=(1,) * 4)


def type_specialists(seed: int, slots: int) -> World:
    """Two hidden kinds of items; half of 12 labelers know the one (0.95), half the other (0.55)."""
    knows = np.arange(12)[None, :] % 2

    def say(truth: Ints, rng: np.random.Generator) -> Ints:
        kind = rng.integers(2, size=(len(truth), 1))
        return coins(truth, np.where(kind == knows, 0.95, 0.55), 2, rng)

    return made(seed, slots, say, 12)


def families(seed: int, slots: int) -> World:
    """16 judges in four families of 0.85 to 0.65; four in five times all say what one of them does.

    In the other fifth a member errs independently, so each is as good as its family.
    """
    p = np.repeat(np.linspace(0.85, 0.65, 4), 4)

    def say(truth: Ints, rng: np.random.Generator) -> Ints:
        own, shared = coins(truth, p, 2, rng), coins(truth, p[::4], 2, rng)
        return np.where(rng.random(own.shape) < 0.8, np.repeat(shared, 4, axis=1), own)

    return made(seed, slots, say, 16)


def adversaries(seed: int, slots: int) -> World:
    """10 labelers of 0.85 to 0.65, and 4 of 0.35 to 0.2: wrong more often than right."""
    p = np.concatenate([np.linspace(0.85, 0.65, 10), np.linspace(0.35, 0.2, 4)])
    return made(seed, slots, lambda truth, rng: coins(truth, p, 2, rng), 14)


def come_and_go(seed: int, slots: int) -> World:
    """40 labelers of 0.9 to 0.55; each is there for a quarter of the time, then gone for good.

    An item may be labelled by those who are there when it comes.
    """
    p, stay = np.linspace(0.9, 0.55, 40), max(1, slots // 4)

    def may(arrival: Ints, rng: np.random.Generator) -> Bools:
        begin = rng.permutation(np.linspace(-0.75 * stay, slots - 0.25 * stay, 40))
        return (begin <= arrival[:, None]) & (arrival[:, None] < begin + stay)

    flow = Poisson(10 / EACH)
    say = partial(coins, p=p, classes=2)
    return made(seed, slots, lambda t, rng: say(t, rng=rng), 40, arrivals=flow, may=may)


def few_labels(seed: int, slots: int) -> World:
    """300 labelers of 0.9 to 0.55, five of whom may label an item: about 12 labels each."""
    p = np.linspace(0.9, 0.55, 300)

    def may(arrival: Ints, rng: np.random.Generator) -> Bools:
        return rng.random((len(arrival), 300)).argsort(axis=1) < 5

    say = partial(coins, p=p, classes=2)
    return made(seed, slots, lambda t, rng: say(t, rng=rng), 300, arrivals=Poisson(2.5), may=may)


def walk_through(seed: int, slots: int) -> World:
    """Three of the programs of docs/serve.md on its posts: spam and ham; 1.2 labels an item.

    `keywords` and `shouting` are good, each in its own way, and `length` knows nothing.
    """

    def say(truth: Ints, rng: np.random.Generator) -> Ints:
        texts = posts(truth.tolist(), int(rng.integers(2**31)))
        return np.array([[judge(text) for judge in JUDGES] for text in texts]).reshape(-1, 3)

    return made(seed, slots, say, 3, arrivals=Fixed(5), weights=(1000,), capacity=2)


def bots(seed: int, slots: int, honest: int, many: int) -> World:
    """`honest` labelers of 0.85 to 0.65, and `many` bots that all give one and the same guess."""
    p = np.linspace(0.85, 0.65, honest)

    def say(truth: Ints, rng: np.random.Generator) -> Ints:
        guess = rng.integers(2, size=(len(truth), 1))
        return np.hstack([coins(truth, p, 2, rng), np.repeat(guess, many, axis=1)])

    return made(seed, slots, say, honest + many)


def loose_bots(seed: int, slots: int) -> World:
    """12 labelers of 0.85 to 0.65, and five bots that give the same guess four times in five."""
    p = np.linspace(0.85, 0.65, 12)

    def say(truth: Ints, rng: np.random.Generator) -> Ints:
        shared, own = (rng.integers(2, size=(len(truth), n)) for n in (1, 5))
        return np.hstack(
            [coins(truth, p, 2, rng), np.where(rng.random(own.shape) < 0.8, shared, own)]
        )

    return made(seed, slots, say, 17)


def repeaters(seed: int, slots: int) -> World:
    """Ten labelers of 0.85 to 0.65, and six who repeat what one of them says of the item."""
    p = np.linspace(0.85, 0.65, 10)

    def say(truth: Ints, rng: np.random.Generator) -> Ints:
        own = coins(truth, p, 2, rng)
        heard = own[np.arange(len(truth)), rng.integers(10, size=len(truth))]
        return np.hstack([own, np.repeat(heard[:, None], 6, axis=1)])

    return made(seed, slots, say, 16)


def inverters(seed: int, slots: int) -> World:
    """Nine labelers of 0.85, and six who say the opposite of what such a labeler would."""
    p = np.repeat([0.85, 0.15], [9, 6])
    return made(seed, slots, lambda truth, rng: coins(truth, p, 2, rng), 15)


def few_good(seed: int, slots: int) -> World:
    """Four labelers of 0.92 among 14 of 0.55."""
    p = np.repeat([0.92, 0.55], [4, 14])
    return made(seed, slots, lambda truth, rng: coins(truth, p, 2, rng), 18)


def turned(seed: int, slots: int) -> World:
    """Ten labelers of 0.8 to 0.65, and six who fall from 0.92 to 0.3 halfway."""
    steady = np.linspace(0.8, 0.65, 10)

    def say(truth: Ints, rng: np.random.Generator) -> Ints:
        late = np.arange(len(truth))[:, None] >= len(truth) / 2
        fallen = np.where(late, 0.3, 0.92) * np.ones(6)
        return coins(truth, np.hstack([np.tile(steady, (len(truth), 1)), fallen]), 2, rng)

    return made(seed, slots, say, 16)


def deceived(seed: int, slots: int) -> World:
    """12 labelers of 0.9 to 0.7; a fifth of the items deceives everybody (0.35)."""
    p = np.linspace(0.9, 0.7, 12)

    def say(truth: Ints, rng: np.random.Generator) -> Ints:
        hard = rng.random((len(truth), 1)) < 0.2
        return coins(truth, np.where(hard, 0.35, p), 2, rng)

    return made(seed, slots, say, 12)


def lazy(seed: int, slots: int, shares: tuple[float, ...]) -> World:
    """Ten labelers of 0.85 to 0.7, and four who say the commoner class three times in four."""
    p = np.linspace(0.85, 0.7, 10)

    def say(truth: Ints, rng: np.random.Generator) -> Ints:
        idle = rng.random((len(truth), 4)) < 0.75
        careless = np.where(idle, 0, coins(truth, np.full(4, 0.7), 2, rng))
        return np.hstack([coins(truth, p, 2, rng), careless])

    return made(seed, slots, say, 14, shares=shares)


def alternating(seed: int, slots: int) -> World:
    """Ten labelers of 0.85 to 0.65; four alternate between the classes, two are sticky."""
    p = np.linspace(0.85, 0.65, 10)

    def say(truth: Ints, rng: np.random.Generator) -> Ints:
        n = np.arange(len(truth))[:, None]
        turns = (n + np.arange(4)) % 2
        sticky = (n // 40 + np.arange(2)) % 2
        return np.hstack([coins(truth, p, 2, rng), turns, sticky])

    return made(seed, slots, say, 16)


def twenty_classes(seed: int, slots: int) -> World:
    """20 classes, 15 labelers of 0.8 to 0.4."""
    p = np.linspace(0.8, 0.4, 15)
    return made(seed, slots, lambda truth, rng: coins(truth, p, 20, rng), 15, shares=(1,) * 20)


def shifted(seed: int, slots: int, biased: bool = False, slowly: bool = False) -> World:
    """12 labelers of 0.9 to 0.65; the second class has a share of 0.1 at first, 0.9 in the end.

    At once halfway, or `slowly`; `biased` labelers say the second class too seldom.
    """
    p = np.linspace(0.9, 0.65, 12)
    right = np.stack([np.minimum(p + 0.08, 0.98), p - 0.12]) if biased else np.stack([p, p])

    def say(truth: Ints, rng: np.random.Generator) -> Ints:
        return coins(truth, right[truth], 2, rng)

    def share(place: Floats) -> Floats:
        return 0.1 + 0.8 * place if slowly else np.where(place < 0.5, 0.1, 0.9)

    return made(seed, slots, say, 12, shares=share)


@dataclass(frozen=True)
class TrustWorld:
    """A world of the suite: `make(seed, slots)`."""

    name: str
    sentence: str
    make: Callable[[int, int], World]


WORLDS: Final = (
    *(
        TrustWorld(
            f"spammers-{n}",
            f"12 labelers of 0.8, and {n or 'nobody'} who always say{'s' * (not n)} the same",
            partial(spammers, many=n),
        )
        for n in (0, 2, 4, 6, 8, 12)
    ),
    *(
        TrustWorld(f"panel-{n}", f"{n} labelers of 0.9 to 0.6", partial(small_panel, many=n))
        for n in (3, 4, 5, 8)
    ),
    TrustWorld("five-classes", "15 labelers of 0.8 to 0.45", five_classes),
    TrustWorld("rare", "one item in 51 is of the second class", rare),
    TrustWorld("class-specialists", "each labeler knows one of four classes", class_specialists),
    TrustWorld("type-specialists", "each labeler knows one of two kinds of items",
               type_specialists),
    TrustWorld("families", "16 judges in four families that err together", families),
    TrustWorld("adversaries", "4 of 14 labelers are wrong more often than right", adversaries),
    TrustWorld("come-and-go", "40 labelers, each there for a quarter of the time", come_and_go),
    TrustWorld("few-labels", "300 labelers, about 12 labels each", few_labels),
    TrustWorld("walk-through", "three of the programs of docs/serve.md", walk_through),
    TrustWorld("bots-5", "five of 17 are bots that give the same guess",
               partial(bots, honest=12, many=5)),
    TrustWorld("bots-9", "nine of 20 are bots that give the same guess",
               partial(bots, honest=11, many=9)),
    TrustWorld("loose-bots", "five of 17 are bots that mostly give the same guess", loose_bots),
    TrustWorld("repeaters", "six of 16 repeat what one of the others says", repeaters),
    TrustWorld("inverters", "six of 15 say the opposite of the truth", inverters),
    TrustWorld("few-good", "four of 18 are good", few_good),
    TrustWorld("turned", "six of 16 turn from good to bad halfway", turned),
    TrustWorld("deceived", "a fifth of the items deceives everybody", deceived),
    TrustWorld("lazy", "four of 14 mostly say the first class", partial(lazy, shares=(1, 1))),
    TrustWorld("rare-lazy", "the same, and the second class is one in 13",
               partial(lazy, shares=(12, 1))),
    TrustWorld("alternating", "six of 16 alternate between the classes", alternating),
    TrustWorld("twenty-classes", "15 labelers of 0.8 to 0.4", twenty_classes),
    TrustWorld("shift", "a class goes from one in ten to nine in ten, at once", shifted),
    TrustWorld("slow-shift", "the same, slowly", partial(shifted, slowly=True)),
    TrustWorld("biased-shift", "the same at once, with biased labelers",
               partial(shifted, biased=True)),
)  # fmt: skip


def world_named(name: str) -> TrustWorld:
    """The world of this name.

    >>> world_named("panel-3").sentence
    '3 labelers of 0.9 to 0.6'
    >>> world_named("panel-2")
    Traceback (most recent call last):
    venire.errors.UnknownName: unknown world 'panel-2': did you mean 'panel-8'? Known: ...
    """
    known = {world.name: world for world in WORLDS}
    if name not in known:
        raise UnknownName("world", name, known)
    return known[name]
