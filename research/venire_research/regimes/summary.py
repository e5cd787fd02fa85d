"""Means with their spread over the seeds, and one line for each policy over all regimes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, geometric_mean
from typing import Any, Final, NamedTuple

from venire.errors import UnknownName
from venire_research.common.sheets import spread
from venire_research.regimes.comparison import ACCOUNTS, Row

__all__ = ["MEASURES", "Cell", "Measure", "Table", "measure_named", "short_names", "summarise"]


@dataclass(frozen=True)
class Measure:
    """Something that is compared: `better` is 1 where more is better, -1 where less is.

    Means over regimes are arithmetic, those of ratios geometric: half in one regime and twice in
    another cancel, and no single regime dominates the mean.
    """

    name: str
    title: str
    meaning: str
    better: int
    decimals: int
    percent: bool = False
    ratio: bool = False

    def write(self, value: float | None) -> str:
        """The value in the measure's own digits; "-" for None.

        >>> MEASURES["share"].write(0.9613), MEASURES["utility"].write(7412.31)
        ('96.1', '7,412')
        """
        if value is None:
            return "-"
        scaled = 100 * value if self.percent else value
        return f"{scaled:,.{self.decimals}f}"


def _measures() -> dict[str, Measure]:
    certificate = "the certificate, an upper bound on what any schedule could have earned"
    listed = (
        Measure("share", "utility, % of the certificate",
                f"the paper's utility over {certificate}", 1, 1, True),
        Measure("realised_share", "realised utility, % of the certificate",
                f"the realised utility over {certificate}", 1, 1, True),
        Measure("true_share", "true utility, % of the weight",
                "the true utility over the weight of all items whose truth is known", 1, 1, True),
        Measure("utility", "utility", "the paper's: delay to the last label", 1, 0),
        Measure("realised_utility", "realised utility", "the same, delay to the exit", 1, 0),
        Measure("true_utility", "true utility",
                "the weight of right verdicts, less the delay to the exit", 1, 0),
        Measure("utility_ratio", "utility, ratio to greedy",
                "over that of Algorithm 1 on the same stream", 1, 3, ratio=True),
        Measure("realised_ratio", "realised utility, ratio to greedy",
                "over that of Algorithm 1 on the same stream", 1, 3, ratio=True),
        Measure("true_ratio", "true utility, ratio to greedy",
                "over that of Algorithm 1 on the same stream", 1, 3, ratio=True),
        Measure("accuracy", "right verdicts, %",
                "of all items whose truth is known; no verdict is not right", 1, 1, True),
        Measure("labels_per_item", "labels per item", "labels spent over items", 0, 2),
        Measure("mean_response", "slots to the exit, mean",
                "from the arrival to the exit", -1, 2),
        Measure("p95_response", "slots to the exit, 95th percentile",
                "nineteen in twenty items leave sooner", -1, 1),
    )  # fmt: skip
    return {measure.name: measure for measure in listed}


#: What a table or a picture can show.
MEASURES: Final = _measures()


def measure_named(name: str) -> Measure:
    """The measure of this name.

    >>> measure_named("acuracy")
    Traceback (most recent call last):
    venire.errors.UnknownName: unknown measure 'acuracy': did you mean 'accuracy'? Known: ...
    """
    if name not in MEASURES:
        raise UnknownName("measure", name, MEASURES)
    return MEASURES[name]


class Cell(NamedTuple):
    """Mean and standard deviation over the seeds; both None where nothing was measured."""

    mean: float | None
    spread: float | None


@dataclass(frozen=True, eq=False)
class Table:
    """One measure: regimes by policies, in the order of the rows."""

    measure: Measure
    regimes: tuple[str, ...]
    policies: tuple[str, ...]
    cells: dict[tuple[str, str], Cell]

    @classmethod
    def of(cls, rows: Sequence[Row], measure: Measure) -> Table:
        """Mean and spread over the seeds.

        >>> rows = [{"regime": "a", "policy": "p", "share": x} for x in (0.5, 0.7)]
        >>> Table.of(rows, MEASURES["share"]).cells["a", "p"].mean
        0.6
        """
        values: dict[tuple[str, str], list[float | None]] = {}
        for row in rows:
            values.setdefault((row["regime"], row["policy"]), []).append(row[measure.name])
        regimes = tuple(dict.fromkeys(row["regime"] for row in rows))
        policies = tuple(dict.fromkeys(row["policy"] for row in rows))
        return cls(measure, regimes, policies, {k: _cell(v) for k, v in values.items()})

    def mean(self, policy: str) -> float | None:
        """The mean over the regimes, each counting the same; None for ratios not above 0."""
        found = self._means(policy).values()
        if not found or (self.measure.ratio and min(found) <= 0):
            return None
        return geometric_mean(found) if self.measure.ratio else fmean(found)

    def worst(self, policy: str) -> tuple[float, str] | None:
        """The value and the name of the regime where the policy does worst."""
        found = self._means(policy)
        if not found or not self.measure.better:
            return None
        name = min(found, key=lambda regime: self.measure.better * found[regime])
        return found[name], name

    def best(self, regime: str) -> frozenset[str]:
        """The policies that are written the same as the best one of a regime."""
        scored = {p: self.cells[regime, p].mean for p in self.policies}
        known = {p: m for p, m in scored.items() if m is not None}
        if not known or not self.measure.better:
            return frozenset()
        top = max(known.values(), key=lambda mean: self.measure.better * mean)
        same = self.measure.write(top)
        return frozenset(p for p, m in known.items() if self.measure.write(m) == same)

    def empty(self) -> bool:
        """Whether nothing was measured anywhere."""
        return all(cell.mean is None for cell in self.cells.values())

    def ranked(self) -> list[str]:
        """The policies, the best on average first; those without a mean last, by their worst."""
        sign = self.measure.better or 1

        def place(policy: str) -> tuple[bool, float]:
            mean, worst = self.mean(policy), self.worst(policy)
            value = mean if mean is not None else worst[0] if worst else 0.0
            return mean is None, -sign * value

        return sorted(self.policies, key=place)

    def _means(self, policy: str) -> dict[str, float]:
        means = {regime: self.cells[regime, policy].mean for regime in self.regimes}
        return {regime: mean for regime, mean in means.items() if mean is not None}


def _cell(values: Sequence[float | None]) -> Cell:
    """Empty if any of the seeds has no value: a mean over the others would be too good."""
    known = [value for value in values if value is not None]
    if not known or len(known) < len(values):
        return Cell(None, None)
    return Cell(fmean(known), spread(known))


def summarise(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """One line for each policy: mean and worst regime of every share and ratio, and the rest.

    The mean is over regimes, each counting the same; `..._regimes` says how many had a value
    (a ratio has none where Algorithm 1 earns nothing).
    """
    tables = {name: Table.of(rows, measure) for name, measure in MEASURES.items()}
    ranked = tables["share"] if not tables["share"].empty() else tables["utility_ratio"]
    lines = []
    for policy in ranked.ranked():
        line: dict[str, Any] = {"suite": rows[0]["suite"], "policy": policy}
        line["learning"] = rows[0]["learning"]
        line["seeds"] = len({row["seed"] for row in rows})
        line["regimes"] = len(tables["share"].regimes)
        for name in (n for pair in ACCOUNTS.values() for n in pair):
            line |= _extremes(tables[name], policy)
        for name in ("accuracy", "labels_per_item", "mean_response", "p95_response"):
            line[name] = tables[name].mean(policy)
        lines.append(line)
    return lines


def _extremes(table: Table, policy: str) -> dict[str, Any]:
    name, worst = table.measure.name, table.worst(policy)
    return {
        name: table.mean(policy),
        f"{name}_worst": worst[0] if worst else None,
        f"{name}_worst_regime": worst[1] if worst else None,
        f"{name}_regimes": sum(table.cells[r, policy].mean is not None for r in table.regimes),
    }


def short_names(policies: Iterable[str]) -> dict[str, str]:
    """Names without settings where no two policies share one.

    >>> short_names(["greedy", "random:3", "random:5", "fixed-overlap:3"])
    {'greedy': 'greedy', 'random:3': 'random:3', 'random:5': 'random:5', ...}
    """
    listed = list(policies)
    bare = [policy.partition(":")[0] for policy in listed]
    named = zip(listed, bare, strict=True)
    return {policy: name if bare.count(name) == 1 else policy for policy, name in named}
