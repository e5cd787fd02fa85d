"""Numeric ratings: a mean that allows for the bias and the precision of each labeler."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final, Self

import numpy as np
from numpy.typing import NDArray

from venire.errors import InputError
from venire.estimators.base import Monitor, three_arrays
from venire.estimators.frames import Columns, Valued
from venire.labels import LabelTable
from venire.labels.sources.truth import as_ratings
from venire.tools.arrays import Floats

#: Pseudo-labels of each labeler, with the panel's variance.
VARIANCE_LABELS: Final = 4.0

#: Degrees of freedom of the biases: one labeler far off does not shift the level of all.
_BIAS_FREEDOM: Final = 3.0

#: Degrees of freedom that are tried.
_FREEDOMS: Final = (2.5, 3.0, 4.0, 6.0, 10.0, 20.0, 50.0, 200.0)

#: No labeler's variance is below this share of that of all labels.
_LEAST: Final = 1e-6


@dataclass(eq=False)
class RobustMean(Valued):
    r"""The value of each item from numbers that labelers of unequal quality gave it.

    Labeler m gives item s

        x_sm = z_s + b_m + sigma_m * e,     e ~ Student's t with `freedom` degrees of freedom
        b_m ~ beta * t with 3 degrees,     sigma_m^2 ~ inverse chi-squared around the panel's

    so a labeler who rates high is corrected, an imprecise one counts for little, and an outlier of
    a precise one does not spoil a mean. z has no prior: an item with one label is not shrunk
    towards the others. Mean-field EM, from the medians, repeats until nothing moves by more than
    `tol` standard deviations of all labels

        u   = (freedom + 1) / (freedom + E[(x - z - b)^2] / sigma_m^2)            for each label
        z_s = mean of x - b_m with weights u / sigma_m^2,   b_m = the same of x - z_s, shrunk
        sigma_m^2 = (sum of u E[(x - z - b)^2] + 4 panel's) / (labels of m + 4)

    Values include the mean bias of the panel: if everybody rates high, the labels cannot show it.

    Parameters
    ----------
    freedom : float, optional
        Below 10, outliers count for little; `inf` is the normal distribution. By default the one of
        2.5 to 200 that makes the labels most probable.
    max_iter, tol
        When to stop.

    Attributes
    ----------
    values_, standard_errors_ : dict of item to number
    biases_, spreads_ : dict of labeler to number
        How much higher than the panel a labeler rates, and sigma_m.
    freedom_ : float
        The degrees of freedom.
    n_iter_, converged_, table_

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.normal(50, 10, size=200)
    >>> bias, spread = [5, 0, 0, -5, 0], [2, 2, 2, 8, 30]
    >>> seen = truth[:, None] + bias + spread * rng.normal(size=(200, 5))
    >>> rows = [(s, m, x) for (s, m), x in np.ndenumerate(seen)]
    >>> robust = RobustMean().fit(rows)
    >>> [round(x) for x in robust.spreads_.values()]
    [2, 2, 2, 9, 30]
    >>> found = np.array(list(robust.values_.values()))
    >>> error = [x - truth for x in (found, seen.mean(axis=1), np.median(seen, axis=1))]
    >>> [round(float(np.std(x)), 1) for x in error]
    [1.1, 6.3, 1.9]
    """

    name: ClassVar[str] = "robust-mean"

    freedom: float | None = None
    max_iter: int = 200
    tol: float = 1e-5

    @three_arrays
    def fit(self, labels: Any) -> Self:
        """Learn the values, and the bias and the spread of each labeler."""
        if self.freedom is not None and not self.freedom > 2:
            raise InputError(f"got freedom={self.freedom!r}, expected a number above 2, or inf")
        table = as_ratings(labels)
        ratings = _Ratings(table, self.freedom)
        monitor = Monitor(self.tol, self.max_iter)
        while not monitor.done:
            monitor.report(0.0, ratings.step())
        self.table_ = table
        self.n_iter_, self.converged_ = monitor.n_iter, monitor.converged
        self.freedom_ = ratings.freedom
        self.values_, self.standard_errors_ = (
            dict(zip(table.items, values.tolist(), strict=True)) for values in ratings.in_units()
        )
        self.biases_, self.spreads_ = (
            dict(zip(table.labelers, values.tolist(), strict=True))
            for values in ratings.labelers_in_units()
        )
        return self

    def _size(self) -> str | None:
        table: LabelTable | None = self.__dict__.get("table_")
        if table is None:
            return None
        return f"{len(table.said):,} ratings of {len(table.items):,} items"

    def value_columns(self) -> Columns:
        """The values, in the order of the items.

        >>> rows = [("a", "ann", 3.0), ("a", "bob", 5.0), ("b", "ann", 4.0), ("b", "bob", 6.0)]
        >>> list(RobustMean().fit(rows).to_frame("pandas"))
        ['task', 'value', 'standard_error', 'labels']
        """
        return {
            "task": list(self.values_),
            "value": list(self.values_.values()),
            "standard_error": list(self.standard_errors_.values()),
            "labels": np.diff(self.table_.start).tolist(),
        }

    def labeler_columns(self) -> Columns:
        given = np.bincount(self.table_.labeler, minlength=len(self.table_.labelers))
        return {
            "worker": list(self.biases_),
            "labels": given.tolist(),
            "bias": list(self.biases_.values()),
            "spread": list(self.spreads_.values()),
        }


class _Ratings:
    """The state of EM, in units in which all ratings have mean 0 and variance 1."""

    def __init__(self, table: LabelTable, freedom: float | None) -> None:
        self.s, self.m = table.item, table.labeler.astype(np.int64)
        x = np.asarray(table.classes)[table.said]
        self._centre, self._unit = float(x.mean()), float(x.std())
        self.x = (x - self._centre) / (self._unit or 1.0)
        self._learns = freedom is None
        self.freedom = freedom or 4.0
        self.n, self.M = len(table.items), len(table.labelers)
        self.given = np.bincount(self.m, minlength=self.M)
        self.z = _medians(self.s, self.x, table.start)
        self.z_var = np.zeros(self.n)
        self.b, self.b_var = np.zeros(self.M), np.zeros(self.M)
        first = np.median((self.x - self.z[self.s]) ** 2) * 2 + _LEAST
        self.panel = float(min(first, 1.0))
        self.sigma2 = np.full(self.M, self.panel)
        self.beta2 = 0.1

    def step(self) -> float:
        """One round; the largest change of a value."""
        off = self._off()
        nu, precision = self.freedom, 1 / self.sigma2[self.m]
        u = np.ones_like(off) if np.isinf(nu) else (nu + 1) / (nu + off * precision)
        weight = u * precision
        before = self.z, self.b, np.sqrt(self.sigma2)
        self._value(weight)
        self._biases(weight)
        off = self._off()
        noise = np.bincount(self.m, u * off, minlength=self.M) + VARIANCE_LABELS * self.panel
        self.sigma2 = np.maximum(noise / (self.given + VARIANCE_LABELS), _LEAST)
        self.panel = (self.M + 1) / float((1 / self.sigma2).sum() + 1 / max(self.panel, _LEAST))
        if self._learns:
            self.freedom = _freedom(off / self.sigma2[self.m])
        after = self.z, self.b, np.sqrt(self.sigma2)
        return float(max(np.abs(a - b).max() for a, b in zip(after, before, strict=True)))

    def _off(self) -> Floats:
        """The expected squared distance of each label from where it should be."""
        gap = self.x - self.z[self.s] - self.b[self.m]
        return gap**2 + self.z_var[self.s] + self.b_var[self.m]

    def _value(self, weight: Floats) -> None:
        total = np.bincount(self.s, weight, minlength=self.n)
        moved = np.bincount(self.s, weight * (self.x - self.b[self.m]), minlength=self.n)
        total = np.where(total > 0, total, 1.0)  # an item without labels stays in the middle
        self.z, self.z_var = moved / total, 1 / total
        shared = (weight / total[self.s]) ** 2 * self.b_var[self.m]
        self._error2 = self.z_var + np.bincount(self.s, shared, minlength=self.n)

    def _biases(self, weight: Floats) -> None:
        common = (_BIAS_FREEDOM + 1) / (_BIAS_FREEDOM + (self.b**2 + self.b_var) / self.beta2)
        total = np.bincount(self.m, weight, minlength=self.M) + common / self.beta2
        moved = np.bincount(self.m, weight * (self.x - self.z[self.s]), minlength=self.M)
        self.b, self.b_var = moved / total, 1 / total
        self.b = self.b - np.average(self.b, weights=common)
        self.beta2 = float((common * (self.b**2 + self.b_var)).mean() + _LEAST)

    def in_units(self) -> tuple[Floats, Floats]:
        """The values and their standard errors, as they were measured."""
        value = self._centre + self._unit * self.z
        return value, self._unit * np.sqrt(self._error2)

    def labelers_in_units(self) -> tuple[Floats, Floats]:
        return self._unit * self.b, self._unit * np.sqrt(self.sigma2)


def _freedom(off: Floats) -> float:
    """The degrees of freedom that make these squared distances most probable."""
    from scipy.special import gammaln

    nu = np.array(_FREEDOMS)
    n = off.size
    fit = n * (gammaln((nu + 1) / 2) - gammaln(nu / 2) - np.log(nu) / 2)
    fit -= (nu + 1) / 2 * np.array([np.log1p(off / v).sum() for v in nu])
    return float(nu[np.argmax(fit)])


def _medians(item: NDArray[np.int64], x: Floats, start: NDArray[np.int64]) -> Floats:
    """The median of each item's numbers; 0 where it has none."""
    ranked = x[np.lexsort((x, item))]
    size = np.diff(start)
    low, high = start[:-1] + (size - 1) // 2, start[:-1] + size // 2
    last = max(x.size - 1, 0)
    middle = (ranked[np.minimum(low, last)] + ranked[np.minimum(high, last)]) / 2
    return np.where(size > 0, middle, 0.0)
