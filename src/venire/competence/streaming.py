r"""Labels as they come: competences and verdicts that follow a stream."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from venire.competence.shrinkage import FIRST
from venire.competence.stream_core import ClassPrior, Core, Prior, Setting
from venire.competence.stream_names import Finals, Places
from venire.competence.stream_views import StreamViews
from venire.competence.stream_window import already
from venire.errors import InputError, UnknownName
from venire.labels import Codes, LabelTable, Names, Repeats

__all__ = ["BETTER_THAN_CHANCE", "Streaming"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Model = Literal["dawid-skene", "one-coin"]

#: The prior of a labeler in the one-coin model: right and wrong pseudo-labels.
BETTER_THAN_CHANCE: Final = (7.0, 3.0)

#: A full window makes room for so many of its items at once.
_ROOM: Final = 1 / 16


@dataclass(eq=False)
class Streaming(StreamViews):
    r"""Competences, confusion matrices and verdicts from batches of labels, in bounded memory.

    Incremental EM (Neal and Hinton 1998). The sum over all labels of the posterior of their
    item, the soft counts, determines the parameters. Each batch does

        insert   new labels join their items; items, labelers and classes may be new
        visit    the posteriors of these items are worked out again, and their old part of the
                 soft counts is replaced by the new
        revisit  `sweeps` times as many older labels of the window get the same, in turn
        fold     if there are more than `max_items` items, those that have waited longest
                 for a label go: their part of the counts stays for good, their verdict is final

    so the work is proportional to the labels, whatever the batches, and with a window that
    holds everything the stream tends to the same fixed point as the batch fit; `refine` goes
    all the way. The prior of the model is kept in every M step.

    Parameters
    ----------
    classes : sequence of names, optional
        The classes, if they are known; another label is then an error. Otherwise a class is
        added, after those that are there, when it is first seen.
    labelers : sequence of names, optional
        The panel, if it is known; others are still added when they are first seen.
    model : "dawid-skene" or "one-coin"
        Full confusion matrices, or one probability of being right.
    prior : "panel", number, (right, wrong) or array of truth x said, optional
        Pseudo-labels of each labeler, kept in every M step: fitted to the panel as
        `DawidSkene` does; so many a row, spread as the panel's; a number of right and wrong
        ones (for full matrices: in each row); or a table. They must say "better than chance".
        What depends on the panel is worked out again when there are half as many more
        labels. By default (7, 3) for one-coin, "panel" for full matrices, but with a
        half-life only two a row: a panel that is alike must not hold back one who changes.
    class_prior : "learned", "uniform" or array, optional
        By default learned for full matrices and uniform for one-coin.
    max_items : int, optional
        So many items keep their labels (once it is full, between 15/16 of that and all of
        it); None keeps all. An item should get its labels before so many others come, for
        it leaves with those it has.
    max_finals : int, optional
        So many final verdicts are remembered, by default as many as `max_items`.
    sweeps : int
        How many older labels are looked at again for each new one.
    half_life : float, optional
        A label counts half as much after the labeler has given so many more, so that a
        labeler whose skill drifts is followed. Labels of one batch are equally old. Keep
        the window shorter than a few half-lives: old items are read with today's skills.
    repeats : "error", "first" or "last"
        What to do with a second label of a labeler for an item in the window. Unless it is an
        error, a batch whose labels are all there already changes nothing. Of items that have
        left the window it is not known who labelled them: a second label counts again.
    drift : float, optional
        The false-alarm probability of the drift flag per 1,000 labels of a labeler (see
        `venire.competence.drift`); None turns it off.

    Notes
    -----
    A label for an item with a final verdict counts for the labeler, as that verdict says, and
    the verdict stays. An item whose final verdict is forgotten too counts as new. As long as
    one class only was seen, the arrays have a second one beside it that has no name.

    EM may come to call the classes by each other's names. If more of the labels are right
    under other names, the classes are renamed, however many there are, with a warning. This is
    looked at when the prior is, with half as many more labels, and by `refine`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(2, size=(500, 1))
    >>> said = np.where(rng.random((500, 4)) < [0.9, 0.8, 0.7, 0.6], truth, 1 - truth)
    >>> stream = Streaming(classes=(0, 1), model="one-coin")
    >>> for i in range(0, 500, 20):
    ...     rows = [(i + j, m, x) for j in range(20) for m, x in enumerate(said[i + j].tolist())]
    ...     _ = stream.partial_fit(LabelTable.from_rows(rows, classes=(0, 1)))
    >>> stream.competences_.round(1).tolist()
    [0.9, 0.8, 0.7, 0.6]
    >>> stream.posterior_of([499]).round(2).tolist(), truth[499].tolist()
    ([[0.02, 0.98]], [1])
    """

    classes: Names | None = None
    labelers: Names | None = None
    model: Model = "dawid-skene"
    prior: Prior | None = None
    class_prior: ClassPrior | None = None
    max_items: int | None = 100_000
    max_finals: int | None = None
    sweeps: int = 4
    half_life: float | None = None
    repeats: Repeats = "error"
    drift: float | None = 0.05

    def __post_init__(self) -> None:
        _check(self)
        given = ([] if x is None else _listed(x) for x in (self.classes, self.labelers))
        self._begin(*given)

    def _begin(self, classes: list[Hashable], labelers: list[Hashable]) -> None:
        self._class, self._labeler = _numbered(classes), _numbered(labelers)
        self._core = Core(self._setting(), max(2, len(classes)))
        self._core.add_labelers(len(labelers))
        self._places = Places()
        self._finals = Finals(self.max_items if self.max_finals is None else self.max_finals)
        self.n_iter_, self.converged_ = 0, False

    def _setting(self) -> Setting:
        one_coin = self.model == "one-coin"
        prior: Prior = BETTER_THAN_CHANCE if one_coin else "panel" if not self.half_life else FIRST
        prior = prior if self.prior is None else self.prior
        usual: ClassPrior = "uniform" if one_coin else "learned"
        given = usual if self.class_prior is None else self.class_prior
        return Setting(one_coin, prior, given, self.half_life, self.drift)

    def partial_fit(self, labels: Any) -> Self:
        """Take a batch of labels in, for new items and for old ones; on an error, none of it.

        The order of the labels within a batch is irrelevant (up to rounding, and to the order
        in which older labels and the drift flag get their turn).

        Parameters
        ----------
        labels
            A `LabelTable`, or anything that `venire.tables.as_table` takes. A batch may be
            of one class only, and one without labels changes nothing.
        """
        labels = self._as_table(labels, part=True)
        length = np.diff(labels.start)
        held = np.flatnonzero(length)
        spoken, said = np.unique(labels.said, return_inverse=True)
        heard, labeler = np.unique(labels.labeler, return_inverse=True)
        classes, labelers = _pick(labels.classes, spoken), _pick(labels.labelers, heard)
        self._check_classes(classes)
        said, labeler = _codes(self._class, classes)[said], _codes(self._labeler, labelers)[labeler]
        names, index = _pick(labels.items, held), np.repeat(np.arange(held.size), length[held])
        once = self._once(names, index, labeler, said)
        self._meet(classes, labelers)
        return self._take(names, index, labeler, said, once)

    def _as_table(self, labels: Any, part: bool = False) -> LabelTable:
        if isinstance(labels, LabelTable):
            return labels
        from venire.tables.build import as_batch, as_table

        classes = None if self.classes is None else _listed(self.classes)
        return (as_batch if part else as_table)(labels, classes, self.repeats)

    def update(self, items: Names, labeler: ArrayLike, said: ArrayLike) -> Self:
        """The same without names, for callers in a hurry: one entry per label.

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
                "as many of each"
            )
        _check_codes("labeler", who, len(self._labeler))
        _check_codes("class", what, len(self._class))
        if isinstance(items, np.ndarray):
            names, index = _distinct(items)
        else:
            seen = _numbered(items)
            names, index = list(seen), np.array([seen[name] for name in items], dtype=np.int64)
        return self._take(names, index, who, what, self._once(names, index, who, what))

    def _take(
        self,
        names: list[Hashable],
        index: Ints,
        labeler: Ints,
        said: Ints,
        once: NDArray[np.bool_] | None,
    ) -> Self:
        """Labels by the position of their item among `names`, and by codes."""
        if once is not None:
            index, labeler, said = index[once], labeler[once], said[once]
        most = len(names) if self.max_items is None else self.max_items
        if len(names) <= most:
            self._take_chunk(names, index, labeler, said)
            return self
        for a in range(0, len(names), most):
            part = (index >= a) & (index < a + most)
            self._take_chunk(names[a : a + most], index[part] - a, labeler[part], said[part])
        return self

    def _once(
        self, names: list[Hashable], index: Ints, labeler: Ints, said: Ints
    ) -> NDArray[np.bool_] | None:
        """Which labels to take so that nobody labels an item twice; None for all."""
        keep = _not_repeated(index, labeler, self.repeats)
        before = np.empty_like(index)
        already(self._core.window, self._places.find(names)[index], labeler, before)
        old = before >= 0
        if self.repeats == "error" and (old.any() or not keep.all()):
            j = int(np.argmax(old | ~keep))
            raise InputError(
                f"labeler {self.labelers_[labeler[j]]!r} labels item {names[index[j]]!r} more "
                "than once, expected one label of each labeler for an item: leave the repeated "
                'label out, or have repeats="first" or "last"'
            )
        keep &= ~old if self.repeats == "first" else before != said
        return None if keep.all() else keep

    def _take_chunk(self, names: list[Hashable], index: Ints, labeler: Ints, said: Ints) -> None:
        """Labels of no more items than the window holds."""
        if self._finals.of and index.size:
            late = np.array([name in self._finals.of for name in names], dtype=np.bool_)
            if late.any():
                self._credit(names, late[index], index, labeler, said)
                on_time, names = ~late[index], [n for n in names if n not in self._finals.of]
                index = (np.cumsum(~late) - 1)[index[on_time]]
                labeler, said = labeler[on_time], said[on_time]
        if index.size:
            self._core.take(self._find_places(names), index, labeler, said, self.sweeps)

    def _credit(
        self, names: list[Hashable], late: NDArray[np.bool_], index: Ints, labeler: Ints, said: Ints
    ) -> None:
        """Labels for items whose verdict is final."""
        final = self._finals.posteriors((names[i] for i in index[late]), self._core.classes)
        self._core.credit(labeler[late], said[late], final)

    def _find_places(self, names: list[Hashable]) -> Ints:
        """The place of each item, after making room for new ones."""
        place = self._places.find(names)
        new = np.flatnonzero(place < 0)
        if new.size:
            held = len(self._places.of)
            if self.max_items is not None and held + new.size > self.max_items:
                known = place[place >= 0]
                self._core.touch(known)
                need = max(held + new.size - self.max_items, int(_ROOM * self.max_items))
                self._fold(min(need, held - known.size))
            place[new] = self._places.add(names[i] for i in new.tolist())
        return place

    def _fold(self, number: int) -> None:
        """Let the items go that have waited longest."""
        places = self._core.oldest(number)
        final = self._core.fold(places)
        self._finals.add(self._places.leave(places.tolist()), final)

    def refine(self, max_iter: int = 100, tol: float = 1e-6) -> Self:
        """Sweep the whole window until no probability moves by more than `tol`.

        This is the batch fit of the items in the window, from where the stream stands, with
        the items that have left as they are. `n_iter_` and `converged_` say how it went.
        """
        self.n_iter_, self.converged_ = self._core.refine(max_iter, tol)
        return self

    def fit(self, labels: Any) -> Self:
        """Begin afresh with these labels, and refine."""
        table = self._as_table(labels)
        given = table.classes if self.classes is None else self.classes
        self._begin(_listed(given), _listed(table.labelers))
        return self.partial_fit(table).refine()

    def fit_predict(self, labels: Any) -> dict[Hashable, Hashable]:
        """Fit, and say the class of each item."""
        return self.fit(labels).labels_

    def save(self, path: str | Path) -> None:
        """Write all of it to a file; see `venire.competence.stream_files` for the format."""
        from venire.competence.stream_files import save

        save(self, path)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Go on where the stream that was saved there stopped, to the bit."""
        from venire.competence.stream_files import load

        return load(cls, path)

    def _check_classes(self, names: list[Hashable]) -> None:
        new = [name for name in names if name not in self._class]
        if new and self.classes is not None:
            raise InputError(
                f"got the label {new[0]!r}, expected one of the classes {list(self.classes)}"
            )

    def _meet(self, classes: list[Hashable], labelers: list[Hashable]) -> None:
        """Make room for those that are new."""
        for known, names in ((self._class, classes), (self._labeler, labelers)):
            for name in names:
                known.setdefault(name, len(known))
        if len(self._class) > self._core.classes:
            self._core = self._core.add_classes(len(self._class))
        self._core.add_labelers(len(self._labeler))


def _check(stream: Streaming) -> None:
    if stream.model not in get_args(Model):
        raise UnknownName("model", stream.model, get_args(Model))
    if stream.repeats not in get_args(Repeats):
        raise UnknownName("way with repeats", stream.repeats, get_args(Repeats))
    for name, least in (("max_items", 1), ("max_finals", 0), ("sweeps", 0)):
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


def _not_repeated(index: Ints, labeler: Ints, repeats: Repeats) -> NDArray[np.bool_]:
    """Leave one label of each labeler for an item within a batch: the first, or the last."""
    keep = np.ones(index.size, dtype=np.bool_)
    key = index * (labeler.max(initial=0) + 1) + labeler
    ordered = np.sort(key)
    if (ordered[1:] == ordered[:-1]).any():
        keep[:] = False
        last = repeats == "last"
        chosen = np.unique(key[::-1] if last else key, return_index=True)[1]
        keep[index.size - 1 - chosen if last else chosen] = True
    return keep


def _codes(known: dict[Hashable, int], names: list[Hashable]) -> Ints:
    """Codes of names; those that are new get the next ones."""
    new = iter(range(len(known), len(known) + len(names)))
    codes = (known[name] if name in known else next(new) for name in names)
    return np.fromiter(codes, dtype=np.int64)


def _distinct(items: NDArray[Any]) -> tuple[list[Hashable], Ints]:
    """The distinct items, sorted, and the position of each among them."""
    new = items[1:] > items[:-1]
    if (new | (items[1:] == items[:-1])).all():  # in order already, as they often are
        names = [*items[:1].tolist(), *items[1:][new].tolist()]
        return names, np.concatenate([np.zeros(min(1, items.size), np.int64), np.cumsum(new)])
    unique, index = np.unique(items, return_inverse=True)
    return unique.tolist(), index


def _numbered(names: Iterable[Hashable]) -> dict[Hashable, int]:
    return {name: i for i, name in enumerate(dict.fromkeys(names))}


def _pick(names: Names, index: Codes) -> list[Any]:
    """Some of the names, as Python objects."""
    if isinstance(names, np.ndarray):
        return list(names[index].tolist())
    return [names[i] for i in index.tolist()]


def _listed(names: Names) -> list[Any]:
    return _pick(names, np.arange(len(names)))
