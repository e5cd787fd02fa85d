"""Labels in batches: the estimator of tables on a window, and its results at any time."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike

from venire.errors import InputError, UnknownName
from venire.estimators.auto import Auto
from venire.estimators.base import Parameters, winners
from venire.estimators.dependence import certainty
from venire.estimators.streaming.drift import Drift
from venire.estimators.streaming.state import (
    FIRST_LOOK,
    ITEM,
    LABELER,
    SAID,
    Found,
    StreamState,
    codes_of,
    distinct,
    latest,
    listed,
    not_repeated,
    opinions,
    pick,
    watch,
)
from venire.labels import LabelTable, Names, Repeats
from venire.paper.accuracy import clamp_confusions, one_coin
from venire.tools.arrays import Bools, Floats, Ints, softmax


def _ints(numbers: Iterable[int]) -> Ints:
    return np.fromiter(numbers, dtype=np.int64)


Model = Literal["dawid-skene", "one-coin"]

#: Right and wrong pseudo-labels of a newcomer, in each class.
STRANGER: Final = (7.0, 3.0)

#: Competences are clamped at 1 - RHO.
RHO: Final = 0.01

#: A full window drops this share of its items at once.
_ROOM: Final = 1 / 16

#: The next drift check is made after this share of the labels in the window has been added.
_AGAIN: Final = 1 / 16


@dataclass(eq=False)
class Streaming(Parameters):
    """Competences, confusion matrices and verdicts from batches of labels, in bounded memory.

    Results are those of `Auto` on the labels in the window, fitted from scratch as in
    `LearnWhileServing`: nothing is carried over from an earlier fit, so no belief reinforces
    itself, and labelers who always say one class count for nothing. A posterior uses all labels of
    an item with these matrices and class shares; its log-odds are discounted for dependence between
    labels (`venire.estimators.certainty`). The fit is made when a result is read, and kept until
    new labels come: adding labels is cheap, and the first read after that costs a fit of the
    window.

    Parameters
    ----------
    classes : sequence of names, optional
        The classes, if they are known; any other label is then an error. Otherwise a class is added
        when it is first seen.
    labelers : sequence of names, optional
        The panel, if it is known; others are still added when they are first seen.
    model : "dawid-skene" or "one-coin"
        Full confusion matrices, or one probability of being right.
    max_items : int, optional
        How many items keep their labels (once full, between 15/16 of that and all of it); None
        keeps all. The items that have waited longest for a label are dropped first: their verdict
        becomes final, and their labels are forgotten.
    max_finals : int, optional
        How many final verdicts are remembered, by default as many as `max_items`.
    half_life : float, optional
        Only the latest `half_life` / ln 2 labels of each labeler are learned from, which is the
        total weight of labels that decay with this half-life.
    repeats : "error", "first" or "last"
        What to do with a second label of a labeler for an item in the window.
    drift : float, optional
        The false-alarm probability, per 1,000 labels of a labeler, of the test for a change of
        skill (see `venire.estimators.streaming.drift`); the labels of a labeler who has changed are
        forgotten. None turns it off. The test runs each time the labels grow by a sixteenth.

    Notes
    -----
    A label for an item whose verdict is final comes too late and is ignored. An item whose final
    verdict has been forgotten counts as new. As long as only one class was seen, the arrays have a
    second, nameless one.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(2, size=(500, 1))
    >>> said = np.where(rng.random((500, 4)) < [0.9, 0.8, 0.7, 0.6], truth, 1 - truth)
    >>> stream = Streaming(classes=(0, 1))
    >>> for i in range(0, 500, 20):
    ...     rows = [(i + j, m, x) for j in range(20) for m, x in enumerate(said[i + j].tolist())]
    ...     _ = stream.partial_fit(LabelTable.from_rows(rows, classes=(0, 1)))
    >>> stream.competences_.round(1).tolist()
    [0.9, 0.8, 0.7, 0.6]
    >>> stream.labels_[499], truth[499].tolist(), 0.9 < stream.probas_[499][1] < 1
    (1, [1], True)
    """

    classes: Names | None = None
    labelers: Names | None = None
    model: Model = "dawid-skene"
    max_items: int | None = 100_000
    max_finals: int | None = None
    half_life: float | None = None
    repeats: Repeats = "error"
    drift: float | None = 0.001

    def __post_init__(self) -> None:
        _check(self)
        given = ([] if x is None else listed(x) for x in (self.classes, self.labelers))
        self._begin(*given)

    def _begin(self, classes: list[Hashable], labelers: list[Hashable]) -> None:
        self.state = StreamState.begin(classes, labelers, self.finals_kept, self.drift)
        self._read: Found | None = None

    @property
    def finals_kept(self) -> int | None:
        """How many final verdicts are remembered; None for all."""
        return self.max_items if self.max_finals is None else self.max_finals

    def partial_fit(self, labels: Any) -> Self:
        """Add a batch of labels, for new and for known items; on an error, nothing is added.

        Parameters
        ----------
        labels
            A `LabelTable`, or anything that `venire.as_table` takes. A batch may be
            of one class only, and one without labels changes nothing.
        """
        labels = self._as_table(labels, part=True)
        length = np.diff(labels.start)
        held = np.flatnonzero(length)
        spoken, said = np.unique(labels.said, return_inverse=True)
        heard, labeler = np.unique(labels.labeler, return_inverse=True)
        classes, labelers = pick(labels.classes, spoken), pick(labels.labelers, heard)
        self._check_classes(classes)
        said, labeler = (
            codes_of(self.state.classes, classes)[said],
            codes_of(self.state.labelers, labelers)[labeler],
        )
        names, index = pick(labels.items, held), np.repeat(np.arange(held.size), length[held])
        once = self._once(names, index, labeler, said)
        self._meet(classes, labelers)
        return self._take(names, index, labeler, said, once)

    def _as_table(self, labels: Any, part: bool = False) -> LabelTable:
        if isinstance(labels, LabelTable):
            return labels
        from venire.labels.sources.build import as_batch, as_table

        classes = None if self.classes is None else listed(self.classes)
        return (as_batch if part else as_table)(labels, classes, self.repeats)

    def update(self, items: Names, labeler: ArrayLike, said: ArrayLike) -> Self:
        """The same with codes instead of names, which is faster: one entry per label.

        Parameters
        ----------
        items : array of int, or sequence of names
            The item of each label.
        labeler, said : arrays of int
            Codes into `labelers_` and `classes_`, which must be known: declared, or seen before.
        """
        who, what = (np.asarray(a, dtype=np.int64) for a in (labeler, said))
        if not len(items) == who.size == what.size:
            raise InputError(
                f"got {len(items)} items, {who.size} labelers and {what.size} labels, expected "
                "equal numbers"
            )
        _check_codes("labeler", who, len(self.state.labelers))
        _check_codes("class", what, len(self.state.classes))
        names, index = distinct(items)
        return self._take(names, index, who, what, self._once(names, index, who, what))

    def _once(self, names: list[Hashable], index: Ints, labeler: Ints, said: Ints) -> Bools:
        """Which labels to take so that nobody labels an item twice."""
        keep = not_repeated(index, labeler, self.repeats)
        before = self._before(names, index, labeler)
        old = before >= 0
        if self.repeats == "error" and (old.any() or not keep.all()):
            j = int(np.argmax(old | ~keep))
            raise InputError(
                f"labeler {self.labelers_[labeler[j]]!r} labels item {names[index[j]]!r} more "
                "than once, expected one label of each labeler for an item: leave the repeated "
                'label out, or have repeats="first" or "last"'
            )
        return keep & (~old if self.repeats == "first" else before != said)

    def _before(self, names: list[Hashable], index: Ints, labeler: Ints) -> Ints:
        """What each labeler said of the item before, -1 if nothing."""
        state = self.state
        said = np.full(index.size, -1)
        known = np.array([state.items.get(name, -1) for name in names], np.int64)
        if (known < 0).all():
            return said
        held = state.labels[np.isin(state.labels[:, ITEM], known)]
        wide = max(len(state.labelers), int(labeler.max(initial=0)) + 1)
        keys = held[:, ITEM] * wide + held[:, LABELER]
        order = np.argsort(keys)
        wanted = known[index] * wide + labeler
        place = np.minimum(np.searchsorted(keys[order], wanted), max(0, keys.size - 1))
        same = (known[index] >= 0) & (keys[order][place] == wanted) if keys.size else place < 0
        said[same] = held[order[place[same]], SAID]
        return said

    def _take(
        self, names: list[Hashable], index: Ints, labeler: Ints, said: Ints, once: Bools
    ) -> Self:
        """Labels by the position of their item among `names`, and by codes."""
        late = np.array([name in self.state.finals.of for name in names], np.bool_)
        keep = once & ~late[index]
        index, labeler, said = index[keep], labeler[keep], said[keep]
        most = max(1, len(names) if self.max_items is None else self.max_items)
        for a in range(0, len(names), most):
            part = (index >= a) & (index < a + most)
            if part.any():
                self._take_chunk(names, index[part], labeler[part], said[part])
        return self

    def _take_chunk(self, names: list[Hashable], index: Ints, labeler: Ints, said: Ints) -> None:
        """Labels of no more items than the window holds."""
        state = self.state
        self._read = None
        numbers = np.full(len(names), -1)
        for i in np.unique(index).tolist():
            number = state.items.pop(names[i], state.known)  # it goes to the end
            state.items[names[i]] = numbers[i] = number
            state.known = max(state.known, number + 1)
        self._unsay(numbers[index], labeler)
        new = np.column_stack([numbers[index], labeler, said, np.zeros_like(said)])
        state.labels = np.concatenate([state.labels, new])
        state.taken += index.size
        if self.max_items is not None and len(state.items) > self.max_items:
            need = max(len(state.items) - self.max_items, int(_ROOM * self.max_items))
            self._fold(min(need, len(state.items) - np.unique(index).size))
        if state.taken >= state.next_look:
            self._look()

    def _unsay(self, items: Ints, labelers: Ints) -> None:
        """Drop the labels that these replace."""
        state = self.state
        if self.repeats == "last" and len(state.labels):
            wide = len(state.labelers)
            keys = state.labels[:, ITEM] * wide + state.labels[:, LABELER]
            state.labels = state.labels[~np.isin(keys, items * wide + labelers)]

    def _fold(self, number: int) -> None:
        """Drop the items that have waited longest, never those of this batch."""
        state = self.state
        names = list(state.items)[:number]
        state.finals.add(names, self.posterior_of(names))
        gone = np.array([state.items.pop(name) for name in names])
        for name in names:
            state.gold.pop(name, None)
        state.labels = state.labels[~np.isin(state.labels[:, ITEM], gone)]
        self._read = None

    def _look(self) -> None:
        """Drop the labels of labelers who have changed; the next check uses the beliefs of now."""
        state = self.state
        state.next_look = state.taken + max(FIRST_LOOK, int(_AGAIN * len(state.labels)))
        if state.monitor is None:
            return
        if state.looked is not None and len(state.labels):
            changed = watch(state.monitor, state.labels, *state.looked[:2])
            state.labels = state.labels[~np.isin(state.labels[:, LABELER], changed)]
        state.looked = self._fit()

    def _fit(self) -> Found:
        """Fit the estimator to the labels that count."""
        K, M = max(2, len(self.state.classes)), len(self.state.labelers)
        right, wrong = STRANGER
        labels = self.state.labels
        if self.half_life is not None:
            labels = labels[latest(labels, self.half_life)]
        if not len(labels):
            return Found(_strangers(M, K), np.full(K, 1 / K))
        items, index = np.unique(labels[:, ITEM], return_inverse=True)
        names = range(len(items)), range(M), range(K)
        table = LabelTable.from_codes(index, labels[:, LABELER], labels[:, SAID], *names)
        stranger = np.where(np.eye(K, dtype=np.bool_), right, wrong / (K - 1))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # few labels, near chance: more will come
            fitted = Auto(stranger=stranger).fit(table, self._gold_of(items))
        if self.model == "one-coin":
            p = np.clip(fitted.competences_, 1 / K, 1 - RHO)
            found = Found(one_coin(p, K), np.full(K, 1 / K))
        else:
            found = Found(clamp_confusions(fitted.rows_, RHO), fitted.shares_)
        _, logs = opinions(labels, *found[:2])
        return found._replace(certainty=certainty(table, softmax(logs)))

    def add_gold(self, gold: Mapping[Any, Hashable]) -> Self:
        """Say what the class of items is; their labels then count as known to be right or wrong.

        Items may have labels or get them later. Gold is kept until the item is dropped.
        """
        self._check_classes(list(gold.values()))
        self._meet(list(gold.values()), [])
        self.state.gold |= {name: self.state.classes[label] for name, label in gold.items()}
        self._read = None
        return self

    def _gold_of(self, items: Ints) -> dict[Any, int] | None:
        """The gold of items in the window, by their places among these numbers."""
        of, gold = self.state.items, self.state.gold
        place = {number: k for k, number in enumerate(items.tolist())} if gold else {}
        known = ((of.get(name, -1), code) for name, code in gold.items())
        return {place[number]: code for number, code in known if number in place} or None

    def refine(self) -> Self:
        """Fit the window now, so that reading does not have to."""
        self._present()
        return self

    def fit(self, labels: Any) -> Self:
        """Start again with these labels."""
        table = self._as_table(labels)
        given = table.classes if self.classes is None else self.classes
        self._begin(listed(given), listed(table.labelers))
        return self.partial_fit(table)

    def fit_predict(self, labels: Any) -> dict[Hashable, Hashable]:
        """Fit, and say the class of each item."""
        return self.fit(labels).labels_

    def save(self, path: str | Path) -> None:
        """Write all of it to a file; its format is in `venire.estimators.streaming.state`."""
        from venire.estimators.streaming.state import save

        save(self, path)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Continue a saved stream, bit for bit."""
        from venire.estimators.streaming.state import load

        return load(cls, path)

    def _present(self) -> Found:
        """The current fit, kept until new labels come."""
        if self._read is None:
            self._read = self._fit()
        return self._read

    def posterior_of(self, items: Iterable[Hashable]) -> Floats:
        """The probability of each class, one row per item: current, or final."""
        names = list(items)
        of, finals = self.state.items, self.state.finals.of
        unknown = next((n for n in names if n not in of and n not in finals), None)
        if unknown is not None:
            raise InputError(
                f"item {unknown!r} is not known: expected one that was labelled and is among the "
                f"{len(of)} items in the window or the {len(finals)} final verdicts"
            )
        present = self._present()
        out = np.empty((len(names), len(present.priors)))
        here = np.array([n in of for n in names], dtype=np.bool_)
        out[here] = self._posteriors(_ints(of[n] for n in names if n in of))
        out[~here] = self.state.finals.posteriors((n for n in names if n not in of), out.shape[1])
        return out

    def _posteriors(self, numbers: Ints) -> Floats:
        """Posteriors of items in the window; class shares for one whose labels were all dropped."""
        found = self._present()
        wanted = np.unique(numbers)
        labels = self.state.labels
        if len(wanted) < len(self.state.items):
            labels = labels[np.isin(labels[:, ITEM], wanted)]
        items, told = opinions(labels, *found[:2])
        logs = np.tile(np.log(found.priors), (len(wanted), 1))
        logs[np.searchsorted(wanted, items)] = told
        out = softmax(found.certainty * logs)
        for name, code in self.state.gold.items():
            place = int(np.searchsorted(wanted, self.state.items.get(name, -1)))
            if place < len(wanted) and wanted[place] == self.state.items.get(name, -1):
                out[place] = np.eye(out.shape[1])[code]
        return out[np.searchsorted(wanted, numbers)]

    def skill_of(self, labeler: Hashable) -> float:
        """The chance that this labeler is right about an item."""
        if labeler not in self.state.labelers:
            raise InputError(
                f"labeler {labeler!r} is not known: expected one who was declared or seen"
            )
        return float(self.competences_[self.state.labelers[labeler]])

    def is_final(self, item: Hashable) -> bool:
        """Whether the verdict on this item is final."""
        return item in self.state.finals.of

    @property
    def classes_(self) -> tuple[Hashable, ...]:
        """The classes, in the order of their codes."""
        return tuple(self.state.classes)

    @property
    def labelers_(self) -> tuple[Hashable, ...]:
        """The labelers, in the order of their codes."""
        return tuple(self.state.labelers)

    @property
    def items_(self) -> tuple[Hashable, ...]:
        """The items that are known: those with final verdicts, then those in the window."""
        return (*self.state.finals.of, *self.state.items)

    @property
    def posteriors_(self) -> Floats:
        """The probability of each class, one row for each of `items_`."""
        return self.posterior_of(self.items_)

    @property
    def labels_(self) -> dict[Hashable, Hashable]:
        """The most probable class of each of `items_`; a tie is broken by a draw from names."""
        names, items = self.classes_, self.items_
        best = winners(self._named(), items, names).tolist() if names else []
        return dict(zip(items, (names[k] for k in best), strict=True))

    @property
    def probas_(self) -> dict[Hashable, dict[Hashable, float]]:
        """The probability of each class for each of `items_`."""
        rows = (dict(zip(self.classes_, r, strict=True)) for r in self._named().tolist())
        return dict(zip(self.items_, rows, strict=True))

    def _named(self) -> Floats:
        """The posteriors without a second class that has no name yet."""
        return self.posteriors_[:, : max(1, len(self.state.classes))]

    @property
    def confusions_(self) -> Floats:
        """Confusion matrices, labelers x K (truth) x K (said)."""
        return self._present().confusions.copy()

    @property
    def priors_(self) -> Floats:
        """How frequent each class is."""
        return self._present().priors.copy()

    @property
    def competences_(self) -> Floats:
        """The chance that a labeler is right, in the order of `labelers_`."""
        return np.asarray(np.einsum("mkk,k->m", self.confusions_, self.priors_))

    @property
    def skills_(self) -> dict[Hashable, float]:
        """The chance that a labeler is right."""
        return dict(zip(self.state.labelers, self.competences_.tolist(), strict=True))

    @property
    def log_likelihood_(self) -> float:
        """Log-likelihood of the labels in the window."""
        _, told = opinions(self.state.labels, *self._present()[:2])
        return float(np.logaddexp.reduce(told, axis=1).sum())

    @property
    def drift_(self) -> dict[Hashable, Drift]:
        """Whether each labeler has changed; empty with drift=None."""
        if self.state.monitor is None:
            return {}
        return dict(zip(self.state.labelers, self.state.monitor.drifts(), strict=True))

    def _check_classes(self, names: list[Hashable]) -> None:
        new = [name for name in names if name not in self.state.classes]
        if new and self.classes is not None:
            raise InputError(
                f"got the label {new[0]!r}, expected one of the classes {list(self.classes)}"
            )

    def _meet(self, classes: list[Hashable], labelers: list[Hashable]) -> None:
        """Add the new names; to the next drift check new labelers are newcomers."""
        state = self.state
        more = [name for name in labelers if name not in state.labelers]
        if any(name not in state.classes for name in classes):
            state.looked = None
        for known, names in ((state.classes, classes), (state.labelers, labelers)):
            for name in names:
                known.setdefault(name, len(known))
        if state.monitor is not None:
            state.monitor.expand(len(state.labelers))
        if state.looked is not None and more:
            square, priors, _ = state.looked
            square = np.concatenate([square, _strangers(len(more), len(priors))])
            state.looked = Found(square, priors)
        if more or classes:
            self._read = None


def _strangers(number: int, classes: int) -> Floats:
    """The matrices of this many newcomers."""
    right, wrong = STRANGER
    return one_coin(np.full(number, max(right / (right + wrong), 1 / classes)), classes)


def _check(stream: Streaming) -> None:
    if stream.model not in get_args(Model):
        raise UnknownName("model", stream.model, get_args(Model))
    if stream.repeats not in get_args(Repeats):
        raise UnknownName("value of repeats", stream.repeats, get_args(Repeats))
    for name, least in (("max_items", 1), ("max_finals", 0)):
        value = getattr(stream, name)
        if value is not None and (value != int(value) or value < least):
            raise InputError(f"got {name}={value!r}, expected a whole number from {least} on")
    if stream.half_life is not None and not 1 <= stream.half_life < np.inf:
        raise InputError(f"got half_life={stream.half_life!r}, expected at least 1 label")
    for kind, names, least in (("classes", stream.classes, 2), ("labelers", stream.labelers, 0)):
        if names is not None and len(set(names)) < max(least, len(names)):
            many = "two or more" if least else "any"
            raise InputError(f"got the {kind} {list(names)}, expected {many}, each once")


def _check_codes(kind: str, codes: Ints, known: int) -> None:
    if codes.size and not 0 <= codes.min() <= codes.max() < known:
        raise InputError(
            f"got {kind} codes from {codes.min()} to {codes.max()}, expected them from 0 to "
            f"{known - 1}: those declared or seen before"
        )
