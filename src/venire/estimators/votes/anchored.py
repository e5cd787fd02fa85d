"""A vote that learns: weighted votes and one step of EM, with safeguards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from venire.estimators.base import Floats
from venire.estimators.dawid_skene.e_step import full_model
from venire.estimators.dawid_skene.estimator import DawidSkene
from venire.estimators.dawid_skene.shrinkage import fitted_prior
from venire.estimators.given import Gold, Soft, check_counts, fixed_counts, settled, without_gold
from venire.estimators.gold_votes import GoldVotes, gold_votes
from venire.estimators.screening.screen import screen
from venire.estimators.votes.implied import soft_counts
from venire.estimators.votes.majority import (
    VoteEstimator,
    one_iteration,
    posterior_mass,
    vote_shares,
)
from venire.estimators.votes.rare import agreed_shares, clearly_rarer, purity, unmixed
from venire.estimators.votes.weighted import WeightedMajority
from venire.labels import LabelTable
from venire.labels.counts import labels_given, said_counts
from venire.labels.partitions import Spread, Table, each, kept, total
from venire.labels.sources import as_labels
from venire.labels.subset import has_several, several_labels
from venire.paper.accuracy import one_coin

__all__ = [
    "OVERRULED",
    "WEIGHED",
    "Anchored",
    "equal_votes",
    "fill",
    "mean_of",
    "near_the_vote",
    "silenced",
]

#: Labels of a labeler, on items with others, after which half of a second step of EM is taken.
LOOSE: Final = 200.0

#: Steps of EM from a start with a rarer class.
RARE_STEPS: Final = 2

#: Confusion matrices, [labeler, truth, said], and class shares.
Learned = tuple[Floats, Floats]

WEIGHED: Final = "Labelers are weighted by their agreement and by one step of EM from the vote."

OVERRULED: Final = (
    "Labelers are weighted by how often they were right on gold, alone: what was learned from all "
    "labels is wrong on gold too often."
)


@dataclass(eq=False)
class Anchored(VoteEstimator):
    r"""The mean of two learners that stay near the vote, each in its own way.

    The risk of EM is how far it goes from the vote: on 21 real sets one M step from the vote
    shares is at most 2.2 points below the majority, 40 steps up to 16 (docs/real-data.md). So

    1. labelers who always say one class (`find_constant`) count for nothing; so do those who
       are right less often than chance;
    2. *weighted majority* weights labelers by how often they agree with the vote;
    3. *one step of EM* (`DawidSkene(max_iter=0)`) learns confusion matrices from the vote
       shares, and computes the posteriors with them;
    4. `posteriors_` are the mean of the two. Confusion matrices and class shares are those that
       they imply, learned from items with at least two labels only: an item with one label
       would be its labeler's own witness. One more step of EM makes them sharper; of it a
       labeler gets the share n / (n + 200), where n is how many labels it gave on such items.
    5. Near the vote a *rare class* looks more frequent than it is. Where the agreement of the
       labels says that a class is clearly rarer (`agreed_shares`, by three standard errors), two
       such steps are taken from there too, and of the two results the one counts under which the
       labels are more likely. Elsewhere nothing changes.

    It returns the plain vote, and says so in `why_`, if the labels cannot tell labelers
    apart: fewer than three labelers, no item with two labels, or labels that do not agree
    beyond chance.

    Parameters
    ----------
    stranger : K x K pseudo-labels, truth by said, optional
        How a newcomer labels; the panel's own labels soon outweigh it.

    Attributes
    ----------
    why_ : str
        What was done and why, in words.
    learned_ : bool
        Whether labelers were weighted; False where the result is the vote.
    constant_, contrary_ : arrays of bool
        Who always says one class, and who contradicts the vote, in the order of `table.labelers`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(2, size=(200, 1))
    >>> said = np.where(rng.random((200, 5)) < [0.9, 0.8, 0.7, 0.6, 0.6], truth, 1 - truth)
    >>> spam = np.ones((200, 6), int)
    >>> learned = Anchored().fit(LabelTable.from_matrix(np.hstack([said, spam])))
    >>> learned.constant_.nonzero()[0].tolist()
    [5, 6, 7, 8, 9, 10]
    >>> right = [learned.labels_[s] == truth[s, 0] for s in range(200)]
    >>> round(float(np.mean(right)), 2)
    0.91
    """

    name: ClassVar[str] = "anchored"

    stranger: ArrayLike | None = None
    threads: int | None = None

    def fit(self, labels: Any, gold: Gold | None = None) -> Self:
        """Screen the labelers, weight them, and compute the posteriors.

        With `gold`, a mapping of item to class, the vote is the one that gold gives
        (`gold_votes`), and labels of these items count as known to be right or wrong.
        """
        table = as_labels(labels)
        found = screen(table, gold)
        self.constant_, self.contrary_ = found.constant, found.contrary
        self.learned_ = found.obstacle is None
        self.why_ = found.why(WEIGHED)
        heard = found.heard
        told = gold_votes(heard, gold)
        posteriors = fill(each(heard, mean_of, *self._parts(heard, told)), heard)
        if told is not None:
            posteriors = settled(heard, posteriors, told.known)
        confusions, priors, skills = self._imply(table, heard, posteriors, told)
        if told is not None:
            told = gold_votes(table, gold)
        if told is not None and told.overrule(table, confusions, priors):
            self.why_ = OVERRULED
            confusions, posteriors = told.record(table)
            items = total(table, _sums, posteriors) + 1.0
            priors = items / items.sum()
            skills = np.einsum("mkk,k->m", confusions, priors)
        return self._settle(table, skills, posteriors, None, one_iteration(), confusions, priors)

    def _parts(self, heard: Table, told: GoldVotes | None) -> list[Any]:
        if self.learned_:
            return near_the_vote(heard, self.threads, told)
        return [each(heard, vote_shares) if told is None else told.shares]

    def _imply(
        self, table: Table, heard: Table, posteriors: Floats | Spread, told: GoldVotes | None
    ) -> tuple[Floats, Floats, Floats]:
        """Confusion matrices, class shares and skills, from items with two labels or gold.

        A labeler whose labels say nothing about the class is at chance, for any class shares.
        """
        K, M = len(table.classes), len(table.labelers)
        if not self.learned_:
            rows = np.tile(equal_votes(heard, posteriors, self.stranger), (M, 1, 1))
            shares = np.full(K, 1 / K)
        else:
            known = None if told is None else told.known
            taught = kept(heard, several_labels, known)
            counts = total(taught, soft_counts, posteriors)
            near = self._rows(counts)
            several, mass = total(heard, _several_mass, posteriors, known)
            items = mass + 1.0
            rows, shares = self._loosened(taught, near, items / items.sum(), told)
            agreed = agreed_shares(taught)
            if clearly_rarer(agreed, shares, int(several)):
                start = unmixed(near, counts, purity(heard, posteriors)), agreed
                rows, shares = self._likelier(taught, (rows, shares), start, told)
        silent = self.constant_ | self.contrary_ | (np.einsum("mkk->m", rows) <= 1.0)
        rows = silenced(table, rows, silent)
        skills = np.where(silent, 1 / K, np.einsum("mkk,k->m", rows, shares))
        return rows, shares, skills

    def _rows(self, counts: Floats) -> Floats:
        """Each labeler's matrix, shrunk towards the panel's as far as labelers are similar."""
        known = np.concatenate([counts, [_stranger(self.stranger, counts.shape[1])]])
        prior = fitted_prior(np.ascontiguousarray(known.transpose(0, 2, 1))).transpose(0, 2, 1)
        rows = (known + prior)[:-1]
        return np.asarray(rows / rows.sum(axis=2, keepdims=True))

    def _loosened(
        self, table: Table, rows: Floats, shares: Floats, told: GoldVotes | None
    ) -> tuple[Floats, Floats]:
        """One more step of EM, weighted by the number of labels."""
        unknown = table if told is None else without_gold(table, told.known)
        with full_model(unknown, self.threads) as model:
            _, soft = model.expect(np.ascontiguousarray(rows.transpose(0, 2, 1)), shares)
        if told is not None:
            fixed = fixed_counts(table, told.known)
            soft = Soft(soft.items + fixed.items, soft.labels + fixed.labels)
        given = labels_given(table)
        anchor = LOOSE / (LOOSE + given)[:, None, None]
        better = self._rows(soft.labels.transpose(0, 2, 1))
        mean = float(LOOSE / (LOOSE + given[given > 0].mean()))
        items = (soft.items + 1.0) / (soft.items + 1.0).sum()
        return anchor * rows + (1 - anchor) * better, mean * shares + (1 - mean) * items

    def _likelier(
        self, table: Table, found: Learned, start: Learned, told: GoldVotes | None
    ) -> Learned:
        """What was found, or what steps of EM from this start find, by the likelihood."""
        other = start
        for _ in range(RARE_STEPS):
            other = self._loosened(table, *other, told)
        here, there = (self._likelihood(table, *x, told) for x in (found, other))
        return other if there > here else found

    def _likelihood(
        self, table: Table, rows: Floats, shares: Floats, told: GoldVotes | None
    ) -> float:
        """The log-likelihood of the labels, and of the gold."""
        square = np.ascontiguousarray(rows.transpose(0, 2, 1))
        unknown = table if told is None else without_gold(table, told.known)
        with full_model(unknown, self.threads) as model:
            height = model.expect(square, shares)[0]
        if told is not None:
            fixed = fixed_counts(table, told.known)
            height += float((fixed.items * np.log(shares)).sum())
            height += float((fixed.labels * np.log(square)).sum())
        return height


def equal_votes(
    table: Table, posteriors: Floats | Spread, stranger: ArrayLike | None = None
) -> Floats:
    """One competence for every labeler and class, as a matrix: all votes count the same."""
    K = len(table.classes)
    counts = total(table, soft_counts, posteriors).sum(axis=0) + _stranger(stranger, K)
    pooled = counts + np.eye(K)
    least = (1 / K + 0.1) / 1.1
    p = min(max(float(np.trace(pooled) / pooled.sum()), least), 0.9)
    return np.asarray(one_coin([p], K)[0])


def near_the_vote(
    table: Table, threads: int | None = None, told: GoldVotes | None = None
) -> list[Any]:
    """The posteriors of weighted majority, and of one step of EM from the vote, or that of gold."""
    gold = None if told is None else told.gold
    weighted = WeightedMajority(tol=1e-4).fit(table, gold).posterior_rows()
    start = "majority" if told is None else told.shares
    one_step = DawidSkene(max_iter=0, start=start, threads=threads).fit(table, gold)
    return [weighted, one_step.posterior_rows()]


def fill(posteriors: Any, heard: Table) -> Any:
    """Posteriors where items without a label that counts have the mean one."""
    labelled, items, mass = total(heard, posterior_mass, posteriors)
    if 0 < labelled < items:
        return each(heard, _filled, posteriors, mass / labelled)
    return posteriors


def mean_of(table: LabelTable, *parts: Floats) -> Floats:
    """The mean of posteriors.

    >>> mean_of(LabelTable.from_matrix([[0]]), np.array([[0.9, 0.1]]), np.array([[0.7, 0.3]]))
    array([[0.8, 0.2]])
    """
    return np.asarray(np.mean(parts, axis=0))


def _several_mass(
    table: LabelTable, posteriors: Floats, known: NDArray[np.int64] | None
) -> tuple[int, Floats]:
    several = has_several(table, known)
    return int(several.sum()), posteriors[several].sum(axis=0)


def _sums(table: LabelTable, posteriors: Floats) -> Floats:
    return np.asarray(posteriors.sum(axis=0))


def _filled(table: LabelTable, posteriors: Floats, mean: Floats) -> Floats:
    return np.where((np.diff(table.start) == 0)[:, None], mean, posteriors)


def _stranger(given: ArrayLike | None, classes: int) -> Floats:
    if given is None:
        return np.zeros((classes, classes))
    return check_counts(given, classes, "a stranger")


def silenced(table: Table, rows: Floats, silent: NDArray[np.bool_]) -> Floats:
    """The matrices, in which the silent labelers say what they say whatever the class.

    >>> table = LabelTable.from_matrix([[0, 1], [0, 1]])
    >>> silenced(table, np.tile(np.eye(2), (2, 1, 1)), np.array([False, True]))[1].round(2).tolist()
    [[0.17, 0.83], [0.17, 0.83]]
    """
    counts = said_counts(table) + 0.5
    habits = counts / counts.sum(axis=1, keepdims=True)
    return np.where(silent[:, None, None], habits[:, None, :], rows)
