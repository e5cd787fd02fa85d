r"""Do the labelers of a table err independently of each other? A goodness-of-fit test of EM.

In Dawid and Skene's model labels of an item have nothing in common but its class. Where labelers
share errors (judges on one model), where some know one kind of item and some another, or where
labelers change, EM takes what a group has in common for the truth. Then other pairs of labelers
agree more, or less, than it predicts. With q_ik the posterior of item i and C_akl how
often a says l of class k, the score of a pair,

    s_ab = sum_i sum_k q_ik sum_l (1[a says l] - C_akl) (1[b says l] - C_bkl),

is the derivative of the log-likelihood by a dependence between a and b that does not change how
often each says what. If errors are independent its mean is 0, whoever was asked for labels: also
where somebody was asked because of what others had said of the item, as in streams and batches, as
a likelihood does not depend on that. The *misfit* is the mean over pairs of
s_ab^2 / sum_i s_iab^2, about 1.

It is below 1 even if labelers err independently, because EM was fitted to these labels. So EM is
also fitted to tables that are drawn from its own model, with the same items and labelers (a
parametric bootstrap). The misfit less theirs is the *excess*: about 0 for independent errors,
whatever the number of labelers, classes and labels.

Where the excess is small, EM may be used. Where it is large, no method that works from labels alone
is safe, and the plain vote is the one that a group of labelers distorts least.

Labels that are pure noise are independent too, and EM finds experts among them. So where labels
hardly agree beyond chance, EM must also fit them better than it fits noise (`beyond_noise`).
"""

from __future__ import annotations

import warnings
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from venire.estimators.dawid_skene import DawidSkene
from venire.estimators.screening.clones import manageable
from venire.labels import LabelTable
from venire.labels.partitions import Table, item_draws, label_draws, said_counts
from venire.tools.arrays import Floats, Ints

#: Errors are shown to be independent up to the first excess, and not to be above the second.
SHOWN_EXCESS: Final = 0.3
REFUTED_EXCESS: Final = 1.0

#: A pair of labelers is compared if it has as many items in common; independence is tested if
#: compared pairs have as many on average.
PAIR_ITEMS: Final = 3
MEAN_ITEMS: Final = 12.0

#: The same average where labels hardly agree beyond chance: the vote knows nothing there either,
#: and EM must be `beyond_noise` as well.
FAINT_MEAN_ITEMS: Final = 6.0

#: In a panel of up to this size, a few who share errors may be the majority. There independence is
#: shown only with this average number of common items, and refuted by an excess of two standard
#: errors.
SMALL_PANEL, SMALL_PANEL_ITEMS = 9, 100.0

#: How many tables are drawn from the model; more of them if there are fewer pairs than this.
DRAWS, DRAWS_OF_FEW, FEW_PAIRS = 2, 4, 200

#: The tolerance of EM on drawn tables, where it starts from the parameters that they have.
_REFIT_TOL: Final = 1e-4

#: By how many standard errors EM must be more likely on the labels than on noise.
NOISE_ERRORS: Final = 3.0

#: Independent errors seldom have a larger misfit.
USUAL_MISFIT: Final = 1.1


class Independence(NamedTuple):
    """What the labels of pairs say about the independence of errors.

    `excess` is how much larger the misfit is than under independence; `pairs` of `labelers` were
    compared, which have `shared` items in common on average; `least` are needed.
    """

    excess: float
    pairs: int
    shared: float
    labelers: int
    least: float = MEAN_ITEMS

    @property
    def enough(self) -> bool:
        """Whether labelers have enough items in common to tell."""
        return self.shared >= MEAN_ITEMS

    @property
    def shown(self) -> bool:
        """Whether the labels show that labelers err independently."""
        least = SMALL_PANEL_ITEMS if self.small else self.least
        return self.shared >= least and self.excess <= SHOWN_EXCESS

    @property
    def refuted(self) -> bool:
        """Whether the labels show that they do not.

        Of two standard errors in a small panel: that of a mean of squares is sqrt(2 / pairs).
        """
        chance = 2 * float(np.sqrt(2 / max(self.pairs, 1)))
        return self.enough and self.excess > (chance if self.small else REFUTED_EXCESS)

    @property
    def small(self) -> bool:
        """Whether a few labelers who share errors could be the majority of the panel."""
        return self.labelers <= SMALL_PANEL


#: What is known before any two labelers have been compared.
UNKNOWN: Final = Independence(np.nan, 0, 0.0, 0)


def independence(
    labels: Table, seed: int = 0, threads: int | None = None, least: float = MEAN_ITEMS
) -> Independence:
    """Test whether the labelers of a table err independently, with `least` items in common.

    A table of more than five million pairs of labels is sampled by items.

    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(2, size=(500, 1))
    >>> said = np.where(rng.random((500, 6)) < [0.9, 0.85, 0.8, 0.7, 0.7, 0.7], truth, 1 - truth)
    >>> independence(LabelTable.from_matrix(said)).shown
    True
    >>> said[:, 5] = np.where(rng.random(500) < 0.8, said[:, 4], said[:, 5])
    >>> independence(LabelTable.from_matrix(said)).refuted
    True
    """
    table = manageable(labels, PAIR_ITEMS, seed)[0]
    pairs = Pairs.of(table)
    seen = pairs.compared.size, pairs.shared, pairs.labelers, least
    if pairs.shared < least:
        return Independence(np.nan, *seen)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a panel that EM cannot explain shows in the misfit
        fitted = DawidSkene(threads=threads).fit(table)
        found = pairs.misfit(table.said, fitted.posteriors_, fitted.confusions_)
        few = pairs.compared.size < FEW_PAIRS
        refuted = found > 2 * USUAL_MISFIT + REFUTED_EXCESS
        if refuted or (found <= USUAL_MISFIT and not few):  # drawn tables would not change it
            return Independence(found - 1, *seen)
        refit = DawidSkene(
            threads=threads, start=fitted.confusions_, prior=fitted.pseudo_labels_, tol=_REFIT_TOL
        )
        drawn = []
        for draw in range(DRAWS_OF_FEW if few else DRAWS):
            again = _drawn(table, fitted, seed + 2 * draw)
            refit.fit(again)
            drawn.append(pairs.misfit(again.said, refit.posteriors_, refit.confusions_))
    return Independence(found - float(np.mean(drawn)), *seen)


def beyond_noise(labels: Table, seed: int = 0, threads: int | None = None) -> bool:
    """Whether EM explains the labels better than it explains noise.

    In noise, labels have nothing in common: those of each labeler are dealt out anew to the items
    that it labelled. What EM gains in likelihood there over labels that tell nothing is about half
    a chi-square, whose variance is its mean.

    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(2, size=(200, 1))
    >>> said = np.where(rng.random((200, 6)) < [0.9, 0.9, 0.9, 0.1, 0.1, 0.1], truth, 1 - truth)
    >>> beyond_noise(LabelTable.from_matrix(said))
    True
    >>> beyond_noise(LabelTable.from_matrix(rng.integers(2, size=(200, 6))))
    False
    """
    table = manageable(labels, PAIR_ITEMS, seed)[0]
    counts = said_counts(table).astype(np.float64)
    habits = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    nothing = float((counts * np.log(np.where(counts > 0, habits, 1.0))).sum())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # noise has many explanations
        gains = [
            float(DawidSkene(threads=threads, tol=_REFIT_TOL).fit(t).log_likelihood_ or 0.0)
            - nothing
            for t in (table, *(_dealt(table, seed + 4 * draw) for draw in range(DRAWS)))
        ]
    usual = max(float(np.mean(gains[1:])), 1.0)
    return gains[0] > usual + NOISE_ERRORS * float(np.sqrt(usual))


def _dealt(table: LabelTable, seed: int) -> LabelTable:
    """The table in which what each labeler said is dealt out anew to the items it labelled.

    Draws depend on the names of items and labelers, not on the order of the labels.
    """
    given, taken = (np.lexsort((label_draws(table, s), table.labeler)) for s in (seed, seed + 2))
    said = table.said.copy()
    said[taken] = table.said[given]
    names = table.items, table.labelers, table.classes
    return LabelTable.from_codes(table.item, table.labeler, said, *names)


class Pairs(NamedTuple):
    """Two labels of one item each, by their places in the table; and who gave them.

    `compared` are the pairs of labelers with enough items in common, as `first` * M + `second`.
    """

    item: Ints
    places: tuple[Ints, Ints]
    who: tuple[Ints, Ints]
    compared: Ints
    shared: float
    labelers: int

    @classmethod
    def of(cls, table: LabelTable) -> Pairs:
        """All pairs of labels of the table.

        >>> pairs = Pairs.of(LabelTable.from_matrix([[0, 1, 1]] * 3 + [[0, 1, -1]] * 2))
        >>> pairs.item.size, pairs.compared.tolist(), round(pairs.shared, 2)
        (11, [1, 2, 5], 3.67)
        """
        length, M = np.diff(table.start), len(table.labelers)
        one, two = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for size in np.unique(length[length > 1]).tolist():
            start = table.start[:-1][length == size]
            a, b = np.triu_indices(size, 1)
            one.append((start[:, None] + a).ravel())
            two.append((start[:, None] + b).ravel())
        places = np.concatenate(one), np.concatenate(two)
        who = table.labeler[places[0]].astype(np.int64), table.labeler[places[1]].astype(np.int64)
        counts = np.bincount(who[0] * M + who[1], minlength=M * M)
        compared = np.flatnonzero(counts >= PAIR_ITEMS)
        shared = float(counts[compared].mean()) if compared.size else 0.0
        labelers = np.unique([compared // M, compared % M]).size
        return cls(table.item[places[0]], places, who, compared, shared, labelers)

    def misfit(self, said: NDArray[Any], posteriors: Floats, confusions: Floats) -> float:
        """The mean over pairs of labelers of their squared score, in units of its variance."""
        M, K = confusions.shape[:2]
        (a, b), x, y = self.who, said[self.places[0]], said[self.places[1]]
        score, same = np.zeros(a.size), (x == y).astype(np.float64)
        for k in range(K):
            rows = confusions[:, k]
            centred = same - rows[b, x] - rows[a, y] + (rows @ rows.T)[a, b]
            score += posteriors[self.item, k] * centred
        pair = a * M + b
        total = np.bincount(pair, score, minlength=M * M)[self.compared]
        square = np.bincount(pair, score**2, minlength=M * M)[self.compared]
        return float(np.mean(total**2 / (square + 1e-9)))


def _drawn(table: LabelTable, fitted: DawidSkene, seed: int) -> LabelTable:
    """A table of the same items and labelers, with labels drawn from the model.

    Draws depend on the names of items and labelers, not on the order of the labels.
    """
    shares = np.cumsum(fitted.priors_)[:-1]
    truth = (item_draws(table, seed)[:, None] > shares).sum(axis=1)
    rows = fitted.confusions_.cumsum(axis=2)[table.labeler, truth[table.item]]
    said = (label_draws(table, seed)[:, None] > rows[:, :-1]).sum(axis=1)
    names = table.items, table.labelers, table.classes
    return LabelTable.from_codes(table.item, table.labeler, said, *names)
