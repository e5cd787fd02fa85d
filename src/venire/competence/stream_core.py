"""What a stream has learned, by numbers instead of names: arrays that grow, and their upkeep.

Items are known by their place in the window, labelers and classes by their code. See `Streaming`
for what it all means.
"""

from __future__ import annotations

import warnings
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from venire.competence import stream_em as em
from venire.competence.drift import DriftMonitor
from venire.competence.naming import best_names
from venire.competence.shrinkage import fitted_prior, pooled_prior
from venire.competence.stream_window import (
    empty_window,
    entries_needed,
    grow_places,
    grow_pool,
)
from venire.errors import InputError, UnknownName

__all__ = ["ClassPrior", "Core", "Prior", "Setting"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Prior = Literal["panel"] | float | ArrayLike
ClassPrior = Literal["learned", "uniform"] | ArrayLike

#: What is looked at now and then is looked at when there are so many times more labels than the
#: last time, beginning with so many.
_AGAIN, _ENOUGH = 1.5, 100


class Setting(NamedTuple):
    """The parameters of a stream that the arithmetic needs."""

    one_coin: bool
    prior: Prior
    class_prior: ClassPrior
    half_life: float | None
    drift: float | None


class Core:
    """The arrays of a stream over `classes` classes."""

    def __init__(self, setting: Setting, classes: int) -> None:
        self.setting, self.rules = setting, _rules(setting, classes)
        self.window, self.counts = empty_window(classes), _no_counts(classes)
        self.calls, self.labels, self.next_look = 0, 0, _ENOUGH
        self.monitor = None if setting.drift is None else DriftMonitor(classes, setting.drift)
        self.first_prior = _first_prior(setting, classes)
        self.counts.log_class[:] = np.log(self.rules.class_prior / self.rules.class_prior.sum())

    @property
    def classes(self) -> int:
        """How many classes there are."""
        return int(self.counts.log_class.size)

    def add_labelers(self, number: int) -> None:
        """Have so many labelers in all; a new one is what the others are on average."""
        old = len(self.counts.dirty)
        if number <= old:
            return
        grown = {n: _longer(getattr(self.counts, n), number) for n in em.Counts._fields[:7]}
        grown["prior"][old:] = self.counts.prior.mean(axis=0) if old else self.first_prior
        grown["dirty"][old:] = True
        self.counts = self.counts._replace(**grown)
        if self.monitor is not None:
            self.monitor.expand(number)
        em.maximise(self.counts, self.rules)

    def add_classes(self, number: int) -> Core:
        """A core with so many classes in all, of which nobody has said the new ones so far."""
        new = Core(self.setting, number)
        new.window = self.window._replace(posterior=_wider(self.window.posterior, number, 1))
        new.calls, new.labels, new.next_look = self.calls, self.labels, self.next_look
        new.add_labelers(len(self.counts.dirty))
        for name in ("kept", "folded"):
            getattr(new.counts, name)[:] = _wider(getattr(self.counts, name), number, 2)
        for name in ("class_kept", "class_folded"):
            getattr(new.counts, name)[:] = _wider(getattr(self.counts, name), number, 1)
        for name in ("clock", "base"):
            getattr(new.counts, name)[:] = getattr(self.counts, name)
        if new.monitor is not None and self.monitor is not None:
            for name in new.monitor.arrays():
                setattr(new.monitor, name, getattr(self.monitor, name))
        new.counts.dirty[:] = True
        em.maximise(new.counts, new.rules)
        return new

    def take(self, places: Ints, index: Ints, labeler: Ints, said: Ints, sweeps: int) -> None:
        """Insert labels for the items at `places[index]`, visit these, revisit older ones."""
        self._make_room(places, np.bincount(index, minlength=places.size))
        self.calls += 1
        self.labels += index.size
        window = self.window
        em.insert(window, self.counts, self.rules, places, index, labeler, said, self.calls)
        self._watch(places)
        self._learn(places, sweeps, index.size)
        if self.labels >= self.next_look:
            self._look()

    def _watch(self, places: Ints) -> None:
        """Let the drift monitor hear of labels that have company now."""
        if self.monitor is None:
            return
        n = int(self.window.length[places].sum())
        labeler, said, rest = (
            np.empty(n, np.int64),
            np.empty(n, np.int64),
            np.empty((n, self.classes)),
        )
        n = em.others(self.window, self.counts, places, labeler, said, rest, self._scratch())
        self.monitor.score(labeler[:n], said[:n], rest[:n])

    def _learn(self, places: Ints, sweeps: int = 0, labels: int = 0) -> None:
        em.learn(self.window, self.counts, self.rules, places, sweeps, labels, self._scratch())

    def _scratch(self) -> Floats:
        return np.empty((1, self.classes))

    def _make_room(self, places: Ints, added: Ints) -> None:
        if places.max() >= len(self.window.first):
            self.window = grow_places(self.window, max(16, 3 * int(places.max() + 1) // 2))
        entries = entries_needed(self.window, places, added)
        if entries > len(self.window.said):
            self.window = grow_pool(self.window, max(64, 3 * entries // 2))

    def credit(self, labeler: Ints, said: Ints, final: Floats) -> None:
        """Labels for items that have left."""
        em.credit(self.counts, self.rules, labeler, said, final)
        self.labels += labeler.size
        em.maximise(self.counts, self.rules)

    def touch(self, places: Ints) -> None:
        """Count these items among the newest."""
        self.window.touched[places] = self.calls + 1

    def oldest(self, number: int) -> Ints:
        """The items that have waited longest for a label."""
        held = np.flatnonzero(self.window.length)
        when = self.window.touched[held]
        last = np.partition(when, number - 1)[number - 1]
        first = held[when < last]
        return np.concatenate([first, held[when == last][: number - first.size]])

    def fold(self, places: Ints) -> Floats:
        """Let items go; their final posteriors."""
        final = np.empty((places.size, self.classes))
        em.fold(self.window, self.counts, self.rules, places, final, self._scratch())
        return final

    def beliefs(self, places: Ints) -> tuple[Floats, float]:
        """Posteriors by the present parameters, and the log-likelihood of their labels."""
        posteriors = np.empty((places.size, self.classes))
        return posteriors, em.beliefs(self.window, self.counts, places, posteriors)

    def refine(self, max_iter: int, tol: float) -> tuple[int, bool]:
        """Whole sweeps until nothing moves: (how many, whether it settled)."""
        em.recount(self.window, self.counts, self.rules)
        self._look()
        held = np.flatnonzero(self.window.length)
        for n in range(1, max_iter + 1):
            before = self.confusions(), self.priors()
            self._learn(held)
            pairs = zip(before, (self.confusions(), self.priors()), strict=True)
            if max(np.abs(a - b).max(initial=0.0) for a, b in pairs) <= tol:
                return n, True
        return max_iter, False

    def _look(self) -> None:
        """Fit the prior to the panel, as `DawidSkene` does; see whether classes are swapped."""
        self.next_look = max(_ENOUGH, int(_AGAIN * self.labels))
        counts = np.empty_like(self.counts.kept)
        em.present(self.counts, self.rules, counts)
        prior = self.setting.prior
        if isinstance(prior, str):
            self.counts.prior[:] = fitted_prior(counts)
        elif np.ndim(prior) == 0:
            self.counts.prior[:] = pooled_prior(counts, float(prior))  # type: ignore[arg-type]
        self._check_names(counts.sum(axis=0).T)
        self.counts.dirty[:] = True
        em.maximise(self.counts, self.rules)

    def _check_names(self, joint: Floats) -> None:
        """Rename the classes if the labels are right more often then."""
        names = best_names(joint) if joint.any() else np.arange(self.classes)
        if (names == np.arange(self.classes)).all():
            return
        warnings.warn(
            f"the stream has come to take only {np.trace(joint) / joint.sum():.0%} of its labels "
            "for right: renamed the classes, under which more are",
            stacklevel=5,
        )
        old = np.argsort(names)
        c = self.counts
        for a in (c.kept, c.folded, c.class_kept, c.class_folded, self.window.posterior):
            a[:] = a[..., old]

    def confusions(self) -> Floats:
        """Labelers x truth x said."""
        return np.exp(self.counts.log_said).transpose(0, 2, 1)

    def priors(self) -> Floats:
        """How frequent the classes are."""
        return np.exp(self.counts.log_class)


def _rules(setting: Setting, classes: int) -> em.Rules:
    given = setting.class_prior
    if isinstance(given, str) and given not in ("learned", "uniform"):
        raise UnknownName("class prior", given, ("learned", "uniform"))
    shares = np.ones(classes) if isinstance(given, str) else np.asarray(given, dtype=np.float64)
    if shares.shape != (classes,) or not (shares > 0).all():
        raise InputError(
            f"got the class prior {given!r}, expected 'learned', 'uniform' or a probability "
            f"above 0 for each of the {classes} classes"
        )
    learned = isinstance(given, str) and given == "learned"
    return em.Rules(setting.one_coin, float(setting.half_life or 0.0), learned, shares)


def _no_counts(classes: int) -> em.Counts:
    square = (0, classes, classes)
    return em.Counts(
        kept=np.zeros(square),
        folded=np.zeros(square),
        prior=np.zeros(square),
        log_said=np.zeros(square),
        clock=np.zeros(0, np.int64),
        base=np.zeros(0),
        dirty=np.zeros(0, np.bool_),
        class_kept=np.zeros(classes),
        class_folded=np.zeros(classes),
        log_class=np.zeros(classes),
    )


def _first_prior(setting: Setting, classes: int) -> Floats:
    """Pseudo-labels [said, truth] of a labeler of whom nothing is known."""
    K, prior = classes, setting.prior
    if isinstance(prior, str):
        if prior != "panel":
            raise UnknownName("prior", prior, ("panel",))
        return np.array(pooled_prior(np.zeros((1, K, K)))[0])
    given = np.asarray(prior, dtype=np.float64)
    if given.shape not in ((), (2,), (K, K)) or not (np.isfinite(given) & (given > 0)).all():
        raise InputError(
            f"got the prior {prior!r}, expected 'panel', a number, (right, wrong) or a {K} x {K} "
            "table of pseudo-labels, truth by said, all above 0"
        )
    if given.shape == ():
        return np.array(pooled_prior(np.zeros((1, K, K)), float(given))[0])
    if given.shape == (2,):
        given = _symmetric(float(given[0]), float(given[1]), K) / (K if setting.one_coin else 1)
    if not np.trace(given) > given.sum() / K:
        raise InputError(
            f"got the prior {prior!r}, expected one that says better than chance: a stream "
            "begins with it and could not leave it"
        )
    return np.ascontiguousarray(given.T)


def _symmetric(right: float, wrong: float, classes: int) -> Floats:
    return np.where(np.eye(classes, dtype=np.bool_), right, wrong / (classes - 1))


def _longer(array: NDArray[Any], length: int) -> NDArray[Any]:
    grown = np.zeros((length, *array.shape[1:]), array.dtype)
    grown[: len(array)] = array
    return grown


def _wider(array: Floats, classes: int, axes: int) -> Floats:
    """The same with zeros for the new classes on the last axes."""
    more = [(0, 0)] * (array.ndim - axes)
    return np.pad(array, more + [(0, classes - n) for n in array.shape[array.ndim - axes :]])
