r"""Do the labelers of a table err independently of each other? A goodness-of-fit test of EM.

Dawid-Skene's model says that, given the class of an item, nothing makes labels alike. Where
labelers share errors (judges on one model), where some know another kind of item than others, or
where labelers change, EM takes what a group has in common for the truth, and then other pairs of
labelers are alike in ways that it does not predict. With q_ik the posterior of item i and C_akl how
often a says l of class k, the score of a pair,

    s_ab = sum_i sum_k q_ik sum_l (1[a says l] - C_akl) (1[b says l] - C_bkl),

is the derivative of the log-likelihood in a dependence of a and b that leaves the labels of each as
they are. If errors are independent its mean is 0 whoever was asked: also where labels were asked
for because of what others had said of the item, as in streams and batches, since a likelihood does
not depend on that. The *misfit* is the mean over pairs of s_ab^2 / sum_i s_iab^2, about 1.

What it would be if labelers did err independently is found by fitting tables that are drawn from
the model itself, with the same items and labelers (a parametric bootstrap), because the fit takes
up part of every score. The difference is the *excess*: about 0 for independent errors, whatever the
number of labelers, classes and labels.

Where the excess is small, EM is right to trust its labelers; where it is not, no method that works
from labels alone is safe, and the plain vote is the one that nobody's agreement can bend.

Noise errs independently too, and EM finds experts in it. Where labels hardly agree beyond chance
the fit must be one that noise does not have (`beyond_noise`).
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

#: Up to this excess the errors pass for independent, from the other on they do not.
INDEPENDENT: Final = 0.3
DEPENDENT: Final = 1.0

#: Pairs with fewer items in common are not compared; with fewer in the mean nothing is shown.
FEWEST_SHARED: Final = 3
ENOUGH_SHARED: Final = 12.0

#: Where labels hardly agree beyond chance the vote knows nothing either, and fewer in the mean are
#: enough for an EM that is `beyond_noise`.
FAINT_SHARED: Final = 6.0

#: In a panel of up to this size, a few who share errors may be the majority. There independence is
#: not shown with fewer items in common, and an excess of two standard errors refutes it.
SMALL_PANEL, MANY_SHARED = 9, 100.0

#: Tables that are drawn from the model: more where few pairs leave more to chance.
DRAWS, DRAWS_OF_FEW, FEW_PAIRS = 2, 4, 200

#: How closely EM is followed on tables that were drawn; it starts from what they were drawn from.
_ROUGHLY: Final = 1e-4

#: How many standard errors the likelihood of EM is above that of noise where it knows something.
CLEAR: Final = 3.0

#: The misfit of independent errors is seldom above this.
USUAL: Final = 1.1


class Independence(NamedTuple):
    """What the labels of pairs say about the independence of errors.

    `excess` is how much larger the misfit is than under independence; `pairs` of `labelers` were
    compared, on `shared` items each in the mean, of which `least` were asked for.
    """

    excess: float
    pairs: int
    shared: float
    labelers: int
    least: float = ENOUGH_SHARED

    @property
    def enough(self) -> bool:
        """Whether labelers have enough items in common to tell."""
        return self.shared >= ENOUGH_SHARED

    @property
    def shown(self) -> bool:
        """Whether labelers were seen to err independently."""
        least = MANY_SHARED if self.small else self.least
        return self.shared >= least and self.excess <= INDEPENDENT

    @property
    def refuted(self) -> bool:
        """Whether labelers were seen not to; a mean of squares varies by the root of 2 / pairs."""
        chance = 2 * float(np.sqrt(2 / max(self.pairs, 1)))
        return self.enough and self.excess > (chance if self.small else DEPENDENT)

    @property
    def small(self) -> bool:
        """Whether a few who share errors could be the panel's majority."""
        return self.labelers <= SMALL_PANEL


#: What is known before any two labelers have been compared.
UNKNOWN: Final = Independence(np.nan, 0, 0.0, 0)


def independence(
    labels: Table, seed: int = 0, threads: int | None = None, least: float = ENOUGH_SHARED
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
    table = manageable(labels, FEWEST_SHARED, seed)[0]
    pairs = Pairs.of(table)
    seen = pairs.compared.size, pairs.shared, pairs.labelers, least
    if pairs.shared < least:
        return Independence(np.nan, *seen)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a panel that EM cannot explain shows in the misfit
        fitted = DawidSkene(threads=threads).fit(table)
        found = pairs.misfit(table.said, fitted.posteriors_, fitted.confusions_)
        few = pairs.compared.size < FEW_PAIRS
        if found > 2 * USUAL + DEPENDENT or (found <= USUAL and not few):  # whatever chance makes
            return Independence(found - 1, *seen)
        refit = DawidSkene(
            threads=threads, start=fitted.confusions_, prior=fitted.pseudo_labels_, tol=_ROUGHLY
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
    table = manageable(labels, FEWEST_SHARED, seed)[0]
    counts = said_counts(table).astype(np.float64)
    habits = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    nothing = float((counts * np.log(np.where(counts > 0, habits, 1.0))).sum())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # noise has many explanations
        gains = [
            float(DawidSkene(threads=threads, tol=_ROUGHLY).fit(t).log_likelihood_ or 0.0) - nothing
            for t in (table, *(_dealt(table, seed + 4 * draw) for draw in range(DRAWS)))
        ]
    usual = max(float(np.mean(gains[1:])), 1.0)
    return gains[0] > usual + CLEAR * float(np.sqrt(usual))


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
        compared = np.flatnonzero(counts >= FEWEST_SHARED)
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
