"""The suite: which worlds there are, by name.

A result is quoted with the name of the suite, `SUITE`: a change to a world, its slots or its number
of seeds requires a new name, so that two tables of the same name can be compared.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from venire import datasets
from venire.errors import InputError, UnknownName
from venire.simulation import World
from venire_research.common.label_sets import Sets
from venire_research.regimes import replayed, synthetic

__all__ = ["QUICK_SEEDS", "REGIMES", "SEEDS", "SUITE", "Regime", "divide", "regimes_named"]

#: The name of this suite. A change in any world makes another suite.
SUITE: Final = "regimes-1"
#: Streams of each world, seeds 0 to SEEDS - 1.
SEEDS: Final = 5
#: The same with `quick`.
QUICK_SEEDS: Final = 2


@dataclass(frozen=True)
class Regime:
    """A kind of world on which policies are compared.

    Parameters
    ----------
    name, sentence
        What it is called, and what it is about.
    make
        A function of a module: `make(seed, slots)` is the world; with `uses`, it is called with
        the folder of label sets too.
    slots, quick_slots
        The length of a run, and with `quick`.
    uses
        The label set that is replayed; None for a made world.

    >>> regime = regimes_named(["bursts"])[0]
    >>> len(regime.world(seed=0).items(regime.slots))
    1500
    """

    name: str
    sentence: str
    make: Callable[..., World]
    slots: int = 300
    quick_slots: int = 60
    uses: str | None = None

    def world(self, seed: int, slots: int | None = None, data: Path | None = None) -> World:
        """The world of this seed, for this number of slots."""
        horizon = self.slots if slots is None else slots
        if self.uses is None:
            return self.make(seed, horizon)
        return self.make(seed, horizon, None if data is None else str(data))

    def digest(self, data: Path | None = None) -> str | None:
        """The digest of the files of labels that are replayed."""
        if self.uses is None:
            return None
        return _digest(datasets.path_of(self.uses, data))


@lru_cache(maxsize=32)  # once in each process, like the labels themselves
def _digest(folder: Path) -> str:
    tables = (folder / "labels.csv", folder / "truth.csv")
    return hashlib.sha256(b"".join(path.read_bytes() for path in tables)).hexdigest()[:16]


REGIMES: Final = (
    Regime("paper", "the paper's section 4", synthetic.paper),
    Regime("overload", "40 items a slot for 30 labelers", synthetic.overload, 150, 40),
    Regime("bursts", "50 items at once, every ten slots", synthetic.bursts),
    Regime("weak-panel", "the same bursts for labelers of 0.55 to 0.65", synthetic.weak_panel),
    Regime("one-expert", "one good labeler among 29 that hardly help", synthetic.one_expert),
    Regime("adversarial", "a third of the labelers are below chance", synthetic.adversarial),
    Regime("drift", "the worst become the best, then half of them tire", synthetic.drift),
    Regime("clones", "families of five who copy one another's errors", synthetic.clones),
    Regime("capacities", "the better a labeler, the slower", synthetic.capacities),
    Regime("four-classes", "four classes instead of two", synthetic.four_classes),
    Regime(
        "counterexample", "300 weak labelers, 600 items at once: the 1/2 guarantee fails",
        synthetic.counterexample, 100, 60,
    ),
    Regime("bluebird", "birds, 39 people, replayed", replayed.bluebird, uses="bluebird"),
    Regime("rte", "textual entailment, 164 people, replayed", replayed.rte, uses="rte"),
    Regime("dog", "four breeds of dogs, 109 people, replayed", replayed.dog, uses="dog"),
    Regime(
        "llmjudge", "relevance, 33 language models, replayed", replayed.llmjudge,
        uses="llmjudge2024_binary",
    ),
    Regime(
        "medrelex", "medical relations, 468 people, at the times they really came",
        replayed.medrelex, 1100, 250, "medrelex_cause",
    ),
)  # fmt: skip


def regimes_named(names: Sequence[str]) -> list[Regime]:
    """The regimes of these names, in the order of the suite; all for none.

    >>> [regime.name for regime in regimes_named(["overload", "paper"])]
    ['paper', 'overload']
    >>> regimes_named(["burst"])
    Traceback (most recent call last):
    venire.errors.UnknownName: unknown regime 'burst': did you mean 'bursts'? Known: adversarial...
    """
    known = {regime.name: regime for regime in REGIMES}
    for name in names:
        if name not in known:
            raise UnknownName("regime", name, known)
    return [regime for name, regime in known.items() if not names or name in names]


def divide(
    regimes: Sequence[Regime], data: Path | None, wanted: bool = False
) -> tuple[list[Regime], dict[str, str]]:
    """The regimes that can be run, and for the others how to get their label sets.

    With `wanted` each of them was requested, and it is an error if one cannot be run.
    """
    sets = Sets(data)
    lacking = {r.name: r.uses for r in regimes if r.uses is not None and not sets.has(r.uses)}
    remedies = {name: sets.remedy(uses) for name, uses in lacking.items()}
    for name in remedies if wanted else ():
        raise InputError(f"{name} needs a label set: {remedies[name]}")
    return [r for r in regimes if r.name not in remedies], remedies
