"""The contract of a competence estimator, and what all of them share.

The conventions are scikit-learn's: the constructor stores its parameters and nothing else,
`fit` returns the estimator itself, and what was learned has a trailing underscore.
"""

from __future__ import annotations

import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, wraps
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from venire.costs import Costs, cost_matrix, expected_costs
from venire.errors import InputError, StateError, UnknownName
from venire.labels import LabelTable, Names
from venire.labels.partitions import Partitions, Spread, Table, name_draws
from venire.tools.arrays import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from venire.estimators.frames import Backend
    from venire.estimators.gold import Soft

#: Classes whose probabilities differ by no more than this from the largest are tied.
TIE: Final = 1e-9


def winners(
    posteriors: NDArray[np.float64], items: Names, classes: Names, seed: int = 0
) -> NDArray[np.int64]:
    """The most probable class of each item, by its index; a tie is broken by a draw.

    The draw is made from the seed and the names of item and class, so that neither the order of
    rows or classes nor the other items matter.
    """
    top = posteriors >= posteriors.max(axis=1, keepdims=True) - TIE
    best = np.argmax(posteriors, axis=1)
    tied = np.flatnonzero(top.sum(axis=1) > 1)
    if tied.size:
        drawn = name_draws([items[i] for i in tied.tolist()], classes, seed)
        best[tied] = np.argmax(np.where(top[tied], drawn, -1.0), axis=1)
    return np.asarray(best, np.int64)


def verdicts_of(
    table: LabelTable, posteriors: Floats, seed: int = 0, costs: Costs | None = None
) -> dict[Hashable, Hashable]:
    """The class of least expected cost of each item, by default the most probable; None: no label.

    A tie is broken by a draw from `seed`.
    """
    matrix = cost_matrix(costs, tuple(table.classes))
    gains = posteriors if matrix is None else -expected_costs(posteriors, matrix)
    best = winners(gains, table.items, table.classes, seed).tolist()
    labelled = (np.diff(table.start) > 0).tolist()
    said = (table.classes[k] if has else None for k, has in zip(best, labelled, strict=True))
    return dict(zip(table.items, said, strict=True))


def right_shares(posteriors: ArrayLike, truth: ArrayLike) -> Floats:
    """How right the verdict on each item is: 1, 0, or 1/t in a tie of t classes.

    `truth` is the index of the right class; one outside the columns is never right.

    >>> right_shares([[0.9, 0.1], [0.5, 0.5], [0.2, 0.8]], [0, 0, 0]).tolist()
    [1.0, 0.5, 0.0]
    """
    q, right = np.asarray(posteriors, dtype=np.float64), np.asarray(truth, dtype=np.int64)
    if q.ndim != 2 or right.shape != q.shape[:1]:
        raise InputError(
            f"got posteriors of shape {q.shape} and truth of shape {right.shape}, "
            "expected items x classes and one class for each item"
        )
    top = q >= q.max(axis=1, keepdims=True) - TIE
    known = (right >= 0) & (right < q.shape[1])
    hit = top[np.arange(len(right)), np.where(known, right, 0)] & known
    return np.asarray(hit / top.sum(axis=1))


class Parameters:
    """`get_params` and `set_params`, so that scikit-learn's `clone` and searches work."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """What the constructor was given; with `deep` also that of estimators among it."""
        known = list(inspect.signature(type(self).__init__).parameters)[1:]
        found = {name: getattr(self, name) for name in known}
        for name, value in list(found.items()) if deep else ():
            if isinstance(value, Parameters):
                found |= {f"{name}__{inner}": x for inner, x in value.get_params().items()}
        return found

    def set_params(self, **parameters: Any) -> Self:
        """Change some of them, which takes effect at the next `fit`."""
        known = self.get_params()
        for name in parameters:
            if name not in known:
                raise UnknownName("parameter", name, known)
        for name, value in parameters.items():
            owner, _, inner = name.rpartition("__")
            if owner:
                known[owner].set_params(**{inner: value})
            else:
                setattr(self, name, value)
        return self


#: Learned probabilities stay this far from 0 and 1, so that no logarithm is infinite.
TINY: Final = 1e-10

#: Probabilities of an estimator of one's own may be off by so much, as in single precision.
_SLACK: Final = 1e-4

_VIEWS = ("labels_", "probas_", "skills_", "confusions_", "priors_", "skill_intervals_")


def three_arrays(fit: Callable[..., Any]) -> Callable[..., Any]:
    """A `fit` that takes `fit(tasks, workers, labels)` as well as one table."""
    names = ("tasks", "workers", "labels")

    @wraps(fit)
    def either(self: Any, *given: Any, **options: Any) -> Any:
        seed = getattr(self, "seed", 0)
        if not isinstance(seed, int | np.integer) or seed < 0:
            raise InputError(f"got seed={seed!r}, expected a whole number from 0 on")
        if not given and options.keys() >= set(names):
            given = tuple(options.pop(name) for name in names)
        if len(given) == 3 and not any(x is None or isinstance(x, Mapping) for x in given):
            given = (tuple(list(x) if isinstance(x, tuple) else x for x in given),)
        fitted = fit(self, *given, **options)
        if not hasattr(fitted, "fit"):
            raise InputError(
                f"{type(self).__name__}.fit returned {type(fitted).__name__}, expected the "
                "estimator: let it end with return self"
            )
        return fitted

    return either


@dataclass(eq=False)
class _Seeded:
    """The parameter that every estimator takes by name."""

    seed: int = field(default=0, kw_only=True, repr=False)


class BaseEstimator(_Seeded, Parameters, ABC):
    """The shared part: named views of what `fit` found.

    Every estimator takes `seed` by name: ties between classes are broken by a draw from it and
    the names of item and class. `get_params` and `set_params` are scikit-learn's.

    Attributes
    ----------
    competences_ : array
        The competence of each labeler, in the order of `table.labelers`.
    posteriors_ : array, items x classes
        The probability of each class for each item.
    confusions_ : array, labelers x K (truth) x K (said)
        The confusion matrix of each labeler; with a single competence, the one it implies.
    priors_ : array of K
        How frequent each class is.
    log_likelihood_ : float or None
        Log-likelihood of the labels under the fitted model; None for methods without one.
    n_iter_, converged_, history_
        How many iterations it took, whether it converged, and its `Step` per iteration.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        """Let `fit` take three arrays too."""
        super().__init_subclass__(**options)
        if "fit" in cls.__dict__:
            cls.fit = three_arrays(cls.__dict__["fit"])  # type: ignore[method-assign]

    competences_: Floats
    posteriors_: Floats
    log_likelihood_: Any  # a float; None where the method has none
    n_iter_: int
    converged_: bool
    history_: tuple[Step, ...]
    table_: LabelTable

    @abstractmethod
    def fit(self, labels: Any) -> Self:
        """Estimate how good each labeler of the table is.

        `labels` is anything that `as_table` takes, complete or partial; or give three arrays,
        `fit(tasks, workers, labels)`. Those that take `gold`, a mapping of item to class, take the
        class of these items for known.

        >>> from venire import MajorityVote
        >>> MajorityVote().fit(["a", "a", "b"], ["ann", "bob", "ann"], ["yes", "yes", "no"]).labels_
        {'a': 'yes', 'b': 'no'}
        """

    def conclude(
        self,
        table: LabelTable,
        competences: Floats,
        posteriors: Floats,
        log_likelihood: float | None = None,
        confusions: Floats | None = None,
        priors: Floats | None = None,
    ) -> Self:
        """Keep what `fit` found, for an estimator of your own: the last line of its `fit`.

        Competences are in the order of `table.labelers`, posteriors are items x classes; all are
        probabilities, and those of classes sum to 1. Without
        `confusions` (labelers x truth x said) those of one competence each are implied, without
        `priors` all classes are equally frequent. Skills, verdicts, frames and pictures follow
        from them (docs/own-estimator.md).
        """
        n, m, k = len(table.items), len(table.labelers), len(table.classes)
        for name, found, shape in (
            ("competences", competences, (m,)),
            ("posteriors", posteriors, (n, k)),
            ("confusions", confusions, (m, k, k)),
            ("priors", priors, (k,)),
        ):
            if found is not None:
                _check_probabilities(name, found, shape)
        return self._settle(
            table,
            np.asarray(competences, np.float64),
            np.asarray(posteriors, np.float64),
            confusions,
            priors,
            log_likelihood=log_likelihood,
        )

    def _settle(
        self,
        table: Table,
        competences: Floats,
        posteriors: Floats | Spread,
        confusions: Floats | None = None,
        priors: Floats | None = None,
        *,
        log_likelihood: float | None = None,
        monitor: Monitor | None = None,
    ) -> Self:
        """Keep what `fit` found, and forget the views of an earlier fit.

        Without `confusions` those of the one-coin model are implied, without `priors` all
        classes are equally frequent, without `monitor` nothing was iterated. Posteriors of labels
        in partitions stay where they are, and are gathered when they are read.
        """
        self.table_, self.competences_ = cast(LabelTable, table), competences
        for view in ("_spread", "posteriors_"):
            self.__dict__.pop(view, None)
        if isinstance(posteriors, Spread):
            self._spread = posteriors
        else:
            self.posteriors_ = posteriors
        self.log_likelihood_ = log_likelihood
        monitor = monitor or one_iteration()
        self.n_iter_, self.converged_ = monitor.n_iter, monitor.converged
        self.history_ = tuple(monitor.history)
        for view in _VIEWS:
            self.__dict__.pop(view, None)
        if confusions is not None:
            self.confusions_ = confusions
        if priors is not None:
            self.priors_ = priors
        return self

    def fit_predict(self, *labels: Any) -> dict[Hashable, Hashable]:
        """Fit, and say the class of each item."""
        return self.fit(*labels).labels_

    def fit_predict_proba(self, *labels: Any) -> dict[Hashable, dict[Hashable, float]]:
        """Fit, and return the probability of each class for each item."""
        return self.fit(*labels).probas_

    @cached_property
    def confusions_(self) -> Floats:
        """The confusion matrix of each labeler, labelers x K (truth) x K (said)."""
        K = len(self.table_.classes)
        p = self.competences_[:, None, None]
        return np.where(np.eye(K, dtype=np.bool_), p, (1 - p) / (K - 1))

    @cached_property
    def priors_(self) -> Floats:
        """How frequent each class is."""
        K = len(self.table_.classes)
        return np.full(K, 1 / K)

    @cached_property
    def labels_(self) -> dict[Hashable, Hashable]:
        """The most probable class of each item; a tie is broken by a draw from `seed`.

        An item without any label has no verdict: None.
        """
        return verdicts_of(self.table_, self.posteriors_, self.seed)

    def verdicts(self, costs: Costs | None = None) -> dict[Hashable, Hashable]:
        """The class of least expected cost of each item; without costs, `labels_`.

        `costs` is {(truth, verdict): cost}, 1 where nothing is said (`venire.costs`).

        >>> from venire import MajorityVote
        >>> rows = [("a", "ann", "toxic"), *(("a", name, "ok") for name in ("bob", "cec", "dan"))]
        >>> vote = MajorityVote().fit(rows)
        >>> vote.verdicts(), vote.verdicts({("toxic", "ok"): 10})
        ({'a': 'ok'}, {'a': 'toxic'})
        """
        if costs is None:
            return dict(self.labels_)
        return verdicts_of(self.table_, self.posteriors_, self.seed, costs)

    @cached_property
    def probas_(self) -> dict[Hashable, dict[Hashable, float]]:
        """The probability of each class for each item."""
        rows = (dict(zip(self.table_.classes, r, strict=True)) for r in self.posteriors_.tolist())
        return dict(zip(self.table_.items, rows, strict=True))

    @cached_property
    def skills_(self) -> dict[Hashable, float]:
        """The competence of each labeler."""
        return dict(zip(self.table_.labelers, self.competences_.tolist(), strict=True))

    @cached_property
    def skill_intervals_(self) -> Floats:
        """90 % intervals of the skills, labelers x 2: see `venire.estimators.intervals`.

        From samples of the posterior where the method has a likelihood, otherwise, and for labels
        in partitions, from what its posteriors imply (`implied_intervals`).
        """
        from venire.estimators.intervals import implied_intervals, skill_intervals

        if self.log_likelihood_ is None or isinstance(self.table_, Partitions):
            return implied_intervals(self)
        return skill_intervals(self)

    def posterior_rows(self) -> Floats | Spread:
        """`posteriors_`, where they are: labels in partitions have them there, not gathered."""
        spread: Floats | Spread = self.__dict__.get("_spread", None) or self.posteriors_
        return spread

    def to_frame(self, backend: Backend | None = None) -> Any:
        """The verdicts as a dataframe: task, label, confidence, entropy, p(class) for each class.

        `backend` is "pandas", "polars" or "pyarrow"; by default the first of them that is
        installed. `entropy` is that of the votes, in bits.

        >>> from venire import MajorityVote
        >>> MajorityVote().fit([("a", "ann", "yes"), ("b", "ann", "no")]).to_frame("pandas")
          task label  confidence  entropy  p(no)  p(yes)
        0    a   yes         1.0      0.0    0.0     1.0
        1    b    no         1.0      0.0    1.0     0.0
        """
        from venire.estimators.frames import frame_of, verdict_columns

        return frame_of(verdict_columns(self), backend)

    def skills_frame(self, backend: Backend | None = None, *, intervals: bool = False) -> Any:
        """The skills as a dataframe: worker, labels, skill; with `intervals` also low and high."""
        from venire.estimators.frames import frame_of, skill_columns

        return frame_of(skill_columns(self, intervals), backend)

    def plot_skills(self, axes: Axes | None = None) -> Axes:
        """Draw the skill of each labeler, the best first, with its 90 % interval.

        On `axes` of matplotlib, or on new ones, which are returned. Needs the extra `plot`.
        """
        from venire.estimators.frames import plot_skills

        return plot_skills(self, axes)

    def _repr_html_(self) -> str:
        """What a notebook shows: the first verdicts, and the skills of the first labelers."""
        from venire.estimators.frames import shown

        return shown(self)

    @property
    def classes_(self) -> tuple[Hashable, ...]:
        """The classes, in the order of the columns of `posteriors_`."""
        return tuple(self.table_.classes)

    def open_items(self) -> LabelTable:
        """The labels of the items without gold: those whose class is not known."""
        table: LabelTable = self.__dict__.get("_open", self.table_)
        return table

    def fixed_counts(self) -> Soft:
        """The counts of labels of gold items, and of history."""
        from venire.estimators.gold import fixed_counts

        return self.__dict__.get("_fixed") or fixed_counts(self.table_)

    def coin_prior(self) -> tuple[float, float] | None:
        """The pseudo-labels of a labeler with one competence; None if it has a full matrix."""
        return None

    def learns_priors(self) -> bool:
        """Whether the class frequencies are learned, by the parameter `class_prior`."""
        given = getattr(self, "class_prior", None)
        return isinstance(given, str) and given == "learned"

    if not TYPE_CHECKING:  # for a type checker every attribute would then exist

        def __getattr__(self, name: str) -> Any:
            """Explain what is missing when a result is read before `fit`."""
            if name == "posteriors_" and "_spread" in self.__dict__:
                self.posteriors_ = self._spread.gather()
                return self.posteriors_
            kind = type(self).__name__
            fitted = "table_" in self.__dict__
            if name.endswith("_") and not name.startswith("_") and not fitted:
                raise _UnfittedError(f"{kind} has no {name} yet: call fit on a table first")
            raise AttributeError(f"{kind!r} object has no attribute {name!r}")


def _check_probabilities(name: str, found: Floats, shape: tuple[int, ...]) -> None:
    """Refuse what is no probability; those of classes sum to 1 (those of labelers need not)."""
    if np.shape(found) != shape:
        raise InputError(f"got {name} of the shape {np.shape(found)}, expected {shape}")
    values = np.asarray(found, np.float64)
    wrong = values[~((values >= -_SLACK) & (values <= 1 + _SLACK))]
    if wrong.size:
        sums = "" if name == "competences" else ", those of the classes with the sum 1"
        raise InputError(f"got {name} with {wrong[0]:g} among them, expected probabilities{sums}")
    totals = np.atleast_1d(values.sum(axis=-1))
    off = totals[np.abs(totals - 1) > _SLACK]
    if name != "competences" and off.size:
        raise InputError(
            f"got {name} that sum to {off[0]:g}, expected 1: divide them by "
            f"{name}.sum(axis=-1, keepdims=True)"
        )


class _UnfittedError(StateError, AttributeError):
    """Both a StateError and what `hasattr` expects."""


class Step(NamedTuple):
    """One iteration: the log-likelihood it started from, the largest change it made."""

    log_likelihood: float
    change: float


@dataclass
class Monitor:
    """Stops an iteration when the parameters have converged, or after the maximum number of steps.

    Stopping on the change of the parameters, and not of the likelihood, makes the meaning of
    `tol` independent of the number of labels.

    Parameters
    ----------
    tol : float
        Stop when the largest change of a parameter is at most this.
    max_iter : int
        The maximum number of iterations.

    Attributes
    ----------
    history : list of Step
        Log-likelihood (with the penalty, where there is a prior) and largest change.
    reason : "converged", "max_iter" or None
        Why it stopped; None while it runs.

    Examples
    --------
    >>> monitor = Monitor(tol=0.01, max_iter=10)
    >>> for change in (0.5, 0.05, 0.005, 0.0005):
    ...     if monitor.done:
    ...         break
    ...     monitor.report(log_likelihood=-1.0 - change, change=change)
    >>> monitor.n_iter, monitor.reason, monitor.converged
    (3, 'converged', True)
    """

    tol: float = 1e-6
    max_iter: int = 1000
    history: list[Step] = field(default_factory=list)
    reason: Literal["converged", "max_iter"] | None = None

    def __post_init__(self) -> None:
        if not (math.isfinite(self.tol) and self.tol >= 0):
            raise InputError(f"got a tolerance of {self.tol!r}, expected a number of at least 0")
        if self.max_iter != int(self.max_iter) or self.max_iter < 0:
            raise InputError(f"got max_iter={self.max_iter!r}, expected a whole number, 0 or more")
        self._check_length()

    def report(self, log_likelihood: float, change: float) -> None:
        """Record one iteration and decide whether it was the last."""
        self.history.append(Step(float(log_likelihood), float(change)))
        self._check_length()
        if change <= self.tol:
            self.reason = "converged"

    def resume(self) -> None:
        """Continue after a jump to another start; earlier iterations still count."""
        self.reason = None
        self._check_length()

    def _check_length(self) -> None:
        if self.n_iter >= self.max_iter:
            self.reason = "max_iter"

    @property
    def done(self) -> bool:
        return self.reason is not None

    @property
    def converged(self) -> bool:
        return self.reason == "converged"

    @property
    def n_iter(self) -> int:
        return len(self.history)


def one_iteration() -> Monitor:
    """The monitor of a fit without iterations."""
    monitor = Monitor(0.0, 1)
    monitor.report(0.0, 0.0)
    return monitor


def estimator_of(given: BaseEstimator | str) -> BaseEstimator:
    """An estimator, by name or as it is."""
    if isinstance(given, str):
        return method_named(given)
    if not isinstance(given, BaseEstimator):
        raise InputError(
            f"got estimator={given!r}, expected a name such as 'one-coin', or an object such as "
            "venire.OneCoin()"
        )
    return given


def method_named(name: str) -> BaseEstimator:
    """The estimator of this name, with its own defaults."""
    known = methods()
    if name not in known:
        raise UnknownName("method", name, known)
    made: BaseEstimator = known[name]()
    return made


def methods() -> dict[str, type[Any]]:
    """The estimators by name: all that `venire.estimators` exports and that have a `name`."""
    package = import_module("venire.estimators")
    found: list[Any] = [getattr(package, name) for name in dir(package)]
    kinds: list[Any] = [v for v in found if inspect.isclass(v) and issubclass(v, BaseEstimator)]
    return {kind.name: kind for kind in kinds if isinstance(getattr(kind, "name", None), str)}
