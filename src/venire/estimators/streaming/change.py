r"""Has the world changed? What was learned is compared with the latest items of the window.

Labels of a stream are learned from as long as they are in the window, which is best while nothing
changes. Two things show that something has:

- **Labelers.** The latest half, quarter or eighth of the items is looked at by itself: given what
  explained the labels before, pairs of labelers err independently there (`Pairs.misfit`, as in
  `independence`), or that was another time. Then older labels are forgotten. The sequential test
  of each labeler (`drift`) finds one who changes; this finds many who change together, who are each
  other's witnesses.
- **Classes.** The class shares of the latest items are those of the items before them up to
  chance, both under the same confusion matrices, or they count instead. Nothing is forgotten: how
  labelers label does not depend on how frequent the classes are.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from venire.estimators.base import Floats
from venire.estimators.families import weighted_posteriors
from venire.estimators.screening.independence import USUAL, Pairs
from venire.estimators.streaming.remembered_labels import opinions, posteriors
from venire.labels import LabelTable
from venire.labels.subset import slice_items

__all__ = ["changed_since", "latest_shares"]

Ints = NDArray[np.int64]

#: Parts of the window that are looked at by themselves.
PARTS: Final = (2, 4, 8, 16)

#: Pairs must share this many of the latest items in the mean, and there must be this many items.
SHARED: Final = 8.0
FEWEST_ITEMS: Final = 30

#: Labelers, and class shares, that differ by this many standard errors have changed.
CLEAR: Final = 4.0
SHIFTED: Final = 3.0

#: The excess of a misfit over what is usual is at least this if labelers have changed: scores of
#: many pairs are not independent of each other, and vary by more than their number says.
MORE: Final = 0.5

#: Steps of EM for the class shares alone.
_STEPS: Final = 10


def changed_since(table: LabelTable, confusions: Floats, priors: Floats) -> int | None:
    """The first of the latest items that do not fit the belief; None if all of them do.

    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(2, size=(800, 1))
    >>> right = np.where(np.arange(800)[:, None] < 600, 0.9, [0.9, 0.9, 0.9, 0.2, 0.2])
    >>> said = np.where(rng.random((800, 5)) < right, truth, 1 - truth)
    >>> rows = np.array([[[0.9, 0.1], [0.1, 0.9]]] * 5)
    >>> changed_since(LabelTable.from_matrix(said[:600]), rows, np.array([0.5, 0.5]))
    >>> changed_since(LabelTable.from_matrix(said), rows, np.array([0.5, 0.5]))
    750
    """
    items = len(table.items)
    found = None
    for part in PARTS:
        first = items - items // part
        if items - first < FEWEST_ITEMS:
            break
        latest = slice_items(table, first, items)
        pairs = Pairs.of(latest)
        if pairs.shared < SHARED:
            continue
        misfit = pairs.misfit(
            latest.said, weighted_posteriors(latest, confusions, priors, []), confusions
        )
        if misfit > USUAL + max(MORE, CLEAR * np.sqrt(2 / pairs.compared.size)):
            found = first
    return found


def latest_shares(labels: Ints, confusions: Floats, priors: Floats) -> Floats:
    """The class shares of the latest items where they clearly differ from those before.

    Shares of two parts of the window explain its labels better than the same for both, by the
    likelihood ratio. Both are fitted here, under the same matrices: an estimator may learn shares
    in another way, and items with few labels say little about them.

    >>> rng = np.random.default_rng(0)
    >>> truth = np.repeat([0, 1], [900, 100])
    >>> said = np.where(rng.random((1000, 3)) < 0.9, truth[:, None], 1 - truth[:, None])
    >>> labels = np.array([(i, m, said[i, m], 0) for i in range(1000) for m in range(3)])
    >>> rows = np.array([[[0.9, 0.1], [0.1, 0.9]]] * 3)
    >>> latest_shares(labels, rows, np.array([0.9, 0.1])).round(1).tolist()
    [0.0, 1.0]
    >>> latest_shares(labels[:2700], rows, np.array([0.7, 0.3])).tolist()
    [0.7, 0.3]
    """
    _, logs = opinions(labels, confusions, np.ones(len(priors)))
    items, begin, found, together = len(logs), 0, priors, _shares(logs)[1]
    usual = np.sqrt(2 * len(priors) - 3)  # of the root of a chi-square, doubled (Fisher)
    for part in PARTS:
        first = items - items // part
        if items - first < FEWEST_ITEMS:
            break
        shares, apart = _shares(logs[first:])
        gain = apart + _shares(logs[begin:first])[1] - together
        if 2 * np.sqrt(max(gain, 0.0)) > usual + SHIFTED:
            begin, found, together = first, shares, apart
    return found


def _shares(logs: Floats) -> tuple[Floats, float]:
    """The class shares of items, given how probable their labels are in each class; how likely."""
    shares = np.full(logs.shape[1], 1 / logs.shape[1])
    for _ in range(_STEPS):
        mass = posteriors(logs + np.log(shares)).sum(axis=0) + 1.0
        shares = mass / mass.sum()
    return np.asarray(shares), float(np.logaddexp.reduce(logs + np.log(shares), axis=1).sum())
