r"""A vote that learns: weighted votes and one step of EM, with safeguards.

**How sure a vote may be: what the overlap of labels has shown about a label.**

The vote counts a lone label as certain, and a model that has learned from few items is nearly as
bold. What is known of a label without others beside it is how often labels like it, saying the
same class, agree with another label of their item. `agreements` finds the lower 5 % bound of that
share for each class (Wilson's, one item counting as one trial), and `capped` keeps items with a
single label below it.

The share of the votes is as sure of two labels that agree as of twenty. `prior_votes` says how many
votes, shared out evenly, to add to those of an item.

**A rare class near the vote: how rare it is, and what its labels look like.**

Where one item in fifty is toxic and labelers are right nine times in ten, most labels that say
"toxic" are errors. The vote counts an ok item with one such label of three as a third toxic, so a
learner that stays near the vote makes the rare class too frequent and fills its rows of the
confusion matrices with what labelers say of the other class. How often two labels of an item agree
does not depend on how frequent the classes are: if all labelers were right with probability p on
every class, and wrong in all ways alike,

    A   = p^2 + (1 - p)^2 / (K - 1)           the share of pairs of labels that agree
    f_k = s_k p + (1 - s_k) (1 - p) / (K - 1)  the share of labels that say k

and both together say how frequent each class is. Real labelers are not like that, so `Anchored`
takes this only as another place to start from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from venire.estimators.blocks import model_of
from venire.estimators.dawid_skene import DawidSkene, FullModel, fitted_prior
from venire.estimators.gold import (
    Gold,
    GoldVotes,
    Soft,
    check_counts,
    fixed_counts,
    gold_votes,
    settled,
    without_gold,
)
from venire.estimators.screening import screen
from venire.estimators.votes import (
    VoteEstimator,
    WeightedMajority,
    posterior_mass,
    soft_counts,
    vote_shares,
)
from venire.labels import LabelTable
from venire.labels.partitions import (
    Spread,
    Table,
    each,
    kept,
    labels_given,
    said_counts,
    total,
    vote_counts,
)
from venire.labels.sources import as_labels
from venire.labels.table import has_several, several_labels
from venire.paper.accuracy import one_coin
from venire.tools.arrays import Floats

#: A class is clearly rarer if its share is lower by this many standard errors.
RARER_ERRORS: Final = 3.0

#: Labels better than chance by less than this say nothing about the class shares.
LEAST_LEAD: Final = 1e-3


def agreed_shares(table: Table) -> Floats:
    """The class shares that follow from how often labels agree, with one more item of each class.

    An item with n labels counts n - 1 times, so one with a single label does not count.

    >>> rng = np.random.default_rng(0)
    >>> truth = rng.random((3000, 1)) < 0.05
    >>> said = np.where(rng.random((3000, 3)) < 0.9, truth, ~truth).astype(int)
    >>> said.mean().round(2), agreed_shares(LabelTable.from_matrix(said)).round(2).tolist()
    (np.float64(0.14), [0.95, 0.05])
    """
    K = len(table.classes)
    (items, weight, agree), said = total(table, _agreeing)
    weight = max(float(weight), 1.0)
    agree, said = float(agree) / weight, said / weight
    p = _right_share(agree, K)
    wrong = (1 - p) / (K - 1)
    shares = np.maximum(said - wrong, 0.0) / max(p - wrong, LEAST_LEAD) * items + 1.0
    return np.asarray(shares / shares.sum())


def _right_share(agree: float, K: int) -> float:
    """How often labels are right that agree so often, if all are wrong in all ways alike."""
    return float((1 + np.sqrt(max((K - 1) * (K * agree - 1), 0.0))) / K)


def _least_right(K: int) -> float:
    """What keeps a verdict: a little above 1 / K."""
    return (1 / K + 0.1) / 1.1


def _agreeing(table: LabelTable) -> tuple[Floats, Floats]:
    """Items with several labels, their weight, their agreement; and how often each is said."""
    votes = vote_counts(table).astype(np.float64)
    n = votes.sum(axis=1, keepdims=True)
    several = n[:, 0] >= 2
    votes, n = votes[several], n[several]
    agree = (votes * (votes - 1) / n).sum()
    return np.array([len(n), (n - 1).sum(), agree]), (votes * (n - 1) / n).sum(axis=0)


def clearly_rarer(shares: Floats, than: Floats, items: int) -> bool:
    """Whether some class has a share that is clearly lower, for this many items.

    >>> clearly_rarer(np.array([0.9, 0.1]), np.array([0.8, 0.2]), items=100)
    False
    >>> clearly_rarer(np.array([0.9, 0.1]), np.array([0.8, 0.2]), items=200)
    True
    """
    error = np.sqrt(than * (1 - than) / max(items, 1))
    return bool((than - shares > RARER_ERRORS * error).any())


def purity(table: Table, posteriors: Floats | Spread) -> Floats:
    """How pure each class is: the mean posterior of an item of this class, sum q^2 / sum q.

    >>> table = LabelTable.from_matrix([[0], [0], [0]])
    >>> purity(table, np.array([[1.0, 0.0], [0.75, 0.25], [0.75, 0.25]])).round(2).tolist()
    [0.85, 0.25]
    """
    squares, sums = total(table, _powers, posteriors)
    return np.asarray(squares / np.maximum(sums, 1e-9))


def _powers(table: LabelTable, posteriors: Floats) -> tuple[Floats, Floats]:
    return (posteriors**2).sum(axis=0), posteriors.sum(axis=0)


def unmixed(rows: Floats, counts: Floats, pure: Floats) -> Floats:
    """The rows, [labeler, truth, said], of a class drawn to one rate as far as it is mixed.

    `pure` is the `purity` of each class. The rest of its row is what the labeler would say if it
    were right as often as on all classes together, by the soft `counts`.

    >>> rows = np.array([[[0.9, 0.1], [0.6, 0.4]]])
    >>> counts = np.array([[[86.0, 10.0], [1.0, 0.0]]])
    >>> unmixed(rows, counts, np.array([0.85, 0.25])).round(2).tolist()
    [[[0.9, 0.1], [0.24, 0.76]]]
    """
    K = len(pure)
    right, given = np.einsum("mkk->m", counts) + 2.0, counts.sum(axis=(1, 2)) + 3.0
    coins = one_coin(np.clip(right / given, 1 / K, 0.99), K)
    pure = pure[None, :, None]
    return np.asarray(pure * rows + (1 - pure) * coins)


#: The normal quantile of the lower bound.
_Z: Final = 1.645

#: How far a verdict that is capped stays ahead of the next class.
_LEAD: Final = 1.01

#: No panel is taken to be right more often than this.
_MOST_RIGHT: Final = 0.99


def agreements(table: Table) -> Floats:
    """The lower bound of how often a label of each class agrees with another label of its item.

    A bound is never below what keeps the verdict: a little above 1 / K.

    >>> said = np.array([[0, 0], [0, 0], [1, 1], [0, 1], [1, 1]] * 40)
    >>> agreements(LabelTable.from_matrix(said)).round(2).tolist()
    [0.73, 0.73]
    """
    K = len(table.classes)
    agree, pairs, items = total(table, _pairs)
    share = np.divide(agree, pairs, out=np.zeros(K), where=pairs > 0)
    n = np.maximum(items, 1e-9)
    middle = share + _Z**2 / (2 * n)
    reach = _Z * np.sqrt(share * (1 - share) / n + _Z**2 / (4 * n**2))
    least = np.where(items > 0, (middle - reach) / (1 + _Z**2 / n), 0.0)
    return np.maximum(least, _least_right(K))


def prior_votes(table: Table) -> float:
    """Even votes that make the share of a single label how often labels are right.

    Labels that are right with probability p, and wrong evenly, agree with probability
    p^2 + (1 - p)^2 / (K - 1); so p follows from how often they do. With a prior votes the share of
    a single label is (1 + a / K) / (1 + a) = p.

    >>> said = np.array([[0, 0], [0, 0], [1, 1], [0, 1], [1, 1]] * 40)  # 80 % agree: p = 0.89
    >>> round(prior_votes(LabelTable.from_matrix(said)), 2)
    0.29
    """
    K = len(table.classes)
    agree, pairs, _ = total(table, _pairs)
    same = float(agree.sum() / max(pairs.sum(), 1e-9))
    p = min(max(_right_share(same, K), _least_right(K)), _MOST_RIGHT)
    return (1 - p) / (p - 1 / K)


def _pairs(table: LabelTable) -> tuple[Floats, Floats, Floats]:
    """Agreeing pairs, all pairs, and items, by the class that was said; an item counts n - 1."""
    votes = vote_counts(table).astype(np.float64)
    n = votes.sum(axis=1)
    votes, n = votes[n >= 2], n[n >= 2]
    others = (n - 1)[:, None]
    agree = (votes * (votes - 1) / others).sum(axis=0)
    return agree, votes.sum(axis=0), (votes / n[:, None]).sum(axis=0)


def capped(table: LabelTable, posteriors: Floats, least: Floats) -> Floats:
    """Posteriors in which no item with one label is surer of it than `least` of its class.

    No verdict changes: it stays a little ahead of the next class.

    >>> table = LabelTable.from_matrix([[0, -1], [1, 1]])
    >>> capped(table, np.array([[0.9, 0.1], [0.1, 0.9]]), np.array([0.8, 0.8])).round(2).tolist()
    [[0.8, 0.2], [0.1, 0.9]]
    """
    here, best = np.arange(len(posteriors)), posteriors.argmax(axis=1)
    over = (np.diff(table.start) == 1) & (posteriors[here, best] > least[best])
    if not over.any():
        return posteriors
    best, here = best[over], np.arange(int(over.sum()))
    rest = posteriors[over]
    rest[here, best] = 0.0
    left = rest.sum(axis=1, keepdims=True)
    even = np.full_like(rest, 1 / (rest.shape[1] - 1))
    even[here, best] = 0.0
    rest = np.where(left > 1e-12, rest / np.maximum(left, 1e-12), even)
    next_best = rest.max(axis=1)
    limit = np.maximum(least[best], _LEAD * next_best / (1 + _LEAD * next_best))
    limit = np.minimum(limit, posteriors[over].max(axis=1))
    rest *= (1 - limit)[:, None]
    rest[here, best] = limit
    out = posteriors.copy()
    out[over] = rest
    return out


#: Labels of a labeler, on items with others, after which half of a second step of EM is taken.
LOOSE_LABELS: Final = 200.0

#: Steps of EM from a start with a rarer class.
RARE_STEPS: Final = 2

#: Confusion matrices, [labeler, truth, said], and class shares.
Learned = tuple[Floats, Floats]

NEAR_GROUNDS: Final = (
    "Labelers are weighted by their agreement and by one step of EM from the vote."
)

GOLD_GROUNDS: Final = (
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
        self.why_ = found.why(NEAR_GROUNDS)
        heard = found.heard
        told = gold_votes(heard, gold)
        posteriors = fill(each(heard, mean_of, *self._parts(heard, told)), heard)
        if told is not None:
            posteriors = settled(heard, posteriors, told.known)
        confusions, priors, skills = self._imply(table, heard, posteriors, told)
        if told is not None:
            told = gold_votes(table, gold)
        if told is not None and told.overrule(table, confusions, priors):
            self.why_ = GOLD_GROUNDS
            confusions, posteriors = told.record(table)
            items = total(table, _sums, posteriors) + 1.0
            priors = items / items.sum()
            skills = np.einsum("mkk,k->m", confusions, priors)
        return self._settle(table, skills, posteriors, confusions, priors)

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
        soft = self._expected(table, rows, shares, told)[1]
        given = labels_given(table)
        anchor = LOOSE_LABELS / (LOOSE_LABELS + given)[:, None, None]
        better = self._rows(soft.labels.transpose(0, 2, 1))
        mean = float(LOOSE_LABELS / (LOOSE_LABELS + given[given > 0].mean()))
        items = (soft.items + 1.0) / (soft.items + 1.0).sum()
        return anchor * rows + (1 - anchor) * better, mean * shares + (1 - mean) * items

    def _likelier(
        self, table: Table, found: Learned, start: Learned, told: GoldVotes | None
    ) -> Learned:
        """What was found, or what steps of EM from this start find, by the likelihood."""
        other = start
        for _ in range(RARE_STEPS):
            other = self._loosened(table, *other, told)
        here, there = (self._expected(table, *x, told)[0] for x in (found, other))
        return other if there > here else found

    def _expected(
        self, table: Table, rows: Floats, shares: Floats, told: GoldVotes | None
    ) -> tuple[float, Soft]:
        """The log-likelihood and the soft counts, with those of gold."""
        square = np.ascontiguousarray(rows.transpose(0, 2, 1))
        known = None if told is None else told.known
        with model_of(FullModel, without_gold(table, known), self.threads) as model:
            height, soft = model.expect(square, shares)
        if told is None:
            return height, soft
        fixed = fixed_counts(table, known)
        height += float((fixed.items * np.log(shares)).sum())
        height += float((fixed.labels * np.log(square)).sum())
        return height, soft.plus(fixed)


def equal_votes(
    table: Table, posteriors: Floats | Spread, stranger: ArrayLike | None = None
) -> Floats:
    """One competence for every labeler and class, as a matrix: all votes count the same.

    It is learned from items with at least two labels: a lone label would be its own witness.
    """
    K, several = len(table.classes), kept(table, several_labels)
    counts = total(several, soft_counts, posteriors).sum(axis=0) + _stranger(stranger, K)
    pooled = counts + np.eye(K)
    p = min(max(float(np.trace(pooled) / pooled.sum()), _least_right(K)), 0.9)
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
