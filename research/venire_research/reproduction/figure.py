"""The contract of a figure, and how figures are found.

A figure is a module of `venire_research.figures` with a `FIGURE`. Add a file, and it is run,
drawn and reported with the others.
"""

from __future__ import annotations

import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

from venire.errors import UnknownName
from venire_research.common.label_sets import Sets
from venire_research.reproduction.claims import Claim
from venire_research.sweeps.sweep import Point

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

__all__ = ["Figure", "Findings", "Plan", "Results", "all_figures", "figures_named"]

#: The results of a sweep, by the key of their point.
Results = Mapping[str, Any]

T = TypeVar("T")


@dataclass(frozen=True)
class Plan:
    """The request: quick or full, on how many seeds, with which label sets."""

    quick: bool = False
    seeds: int | None = None
    sets: Sets = field(default_factory=Sets)

    def pick(self, full: T, quick: T) -> T:
        """The configuration of this plan."""
        return quick if self.quick else full

    def seeds_or(self, usual: int) -> range:
        """The seeds 0, 1, ...: as many as requested, or the default."""
        return range(self.seeds or usual)


@dataclass(frozen=True, eq=False)
class Findings:
    """What a figure found.

    `drawn` has a row for every point of every curve, with its interval; `runs` a row for every
    single run behind them. `words` is what was measured, in sentences; `shown` is for `draw`.
    """

    drawn: Sequence[Mapping[str, Any]]
    runs: Sequence[Mapping[str, Any]]
    claims: Sequence[Claim]
    words: Sequence[str]
    seeds: Sequence[int]
    shown: Any = None
    #: Where not all streams have the same seeds: which has which, in words.
    seeds_in_words: str = ""


class Figure(ABC):
    """A figure of the paper, or one that it should have had.

    `paper` is what the paper claims, in words; `assumptions` are our choices where it leaves
    something open.
    """

    name: str
    title: str
    paper: str
    assumptions: tuple[str, ...] = ()

    @property
    def needs(self) -> tuple[str, ...]:
        """The label sets without which it cannot be made."""
        return ()

    @property
    def uses(self) -> tuple[str, ...]:
        """The label sets that it uses if they are available."""
        return self.needs

    @abstractmethod
    def points(self, plan: Plan) -> list[Point]:
        """What has to be run."""

    @abstractmethod
    def measure(self, plan: Plan, results: Results) -> Findings:
        """What came of it."""

    @abstractmethod
    def draw(self, findings: Findings) -> Canvas:
        """The picture."""

    def missing(self, plan: Plan) -> tuple[str, ...]:
        """The label sets that it needs and that are missing."""
        return tuple(name for name in self.needs if not plan.sets.has(name))


def all_figures() -> dict[str, Figure]:
    """Every figure, by name, in the order of the paper."""
    package = import_module("venire_research.figures")
    modules = [
        import_module(f"{package.__name__}.{info.name}")
        for info in pkgutil.iter_modules(package.__path__)
    ]
    found: list[Figure] = [m.FIGURE for m in modules if hasattr(m, "FIGURE")]
    order = list(package.ORDER)
    found.sort(key=lambda f: (order.index(f.name) if f.name in order else len(order), f.name))
    return {figure.name: figure for figure in found}


def figures_named(names: Sequence[str]) -> list[Figure]:
    """The figures of these names; all of them without any."""
    known = all_figures()
    for name in names:
        if name not in known:
            raise UnknownName("figure", name, known)
    return [known[name] for name in dict.fromkeys(names or known)]
