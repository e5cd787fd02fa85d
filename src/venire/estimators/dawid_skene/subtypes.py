r"""A model with hidden types of item within each class."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, Self

import numpy as np
from numpy.typing import NDArray

from venire.errors import InputError
from venire.estimators.base import TINY, BaseEstimator, Floats
from venire.estimators.convergence import Monitor
from venire.estimators.dawid_skene.shrinkage import pooled_prior
from venire.estimators.given import Gold, settled
from venire.estimators.gold_votes import GoldVotes, gold_votes
from venire.estimators.passes.blocks import Blocks
from venire.estimators.passes.em import full_pass, share_pass, weigh_pass
from venire.labels import LabelTable
from venire.labels.partitions import Partitions, Table, each, gathered, sizes
from venire.labels.sources import as_labels
from venire.labels.stable_draws import item_draws
from venire.labels.subset import drop_empty, keep_items, slice_items

__all__ = ["Subtypes"]

#: Types and starts are fitted to the items of at most this many labels.
MOST_LABELS: Final = 300_000

#: Posteriors of types are computed for this many items at a time.
PIECE: Final = 100_000


@dataclass(eq=False)
class Subtypes(BaseEstimator):
    r"""Classes with hidden types, so that labels may stay correlated given the class.

    Dawid and Skene's labels are independent given the class. They are not where some items
    are harder than others, where labelers know different things, or where judges of one family
    err together. Here every class k has `types` hidden types g; labeler m says l of an item of
    type (k, g) with probability P_mkgl, and labels are independent given the type. This is the
    model of Li, Rubinstein and Cohn, *Exploiting worker correlation for label aggregation in
    crowdsourcing* (2019), by variational Bayes:

        z_skg ~ exp( E log pi_kg + sum of E log P_mkgl over the labels (m, l) of s )   (E step)
        P_mkg ~ Dirichlet( strength * C_k + counts ),  pi ~ Dirichlet( ... + counts )   (M step)

    where C_k, how the whole panel labels items of class k, is taken from the votes. Each start
    divides the vote shares of an item among the types at random; starts end in different places
    where the labels do not determine the types, so the posteriors are the mean over `starts`, which
    stays at the vote where they contradict each other.

    Parameters
    ----------
    types : int
        Hidden types of each class.
    starts : int
        How many random starts are fitted.
    strength : float
        Pseudo-labels of the panel in each row.
    max_iter, tol
        The maximum number of iterations of each start; it stops when no class probability changes
        by more than `tol`.
    seed : int
        For the starts. They are drawn from the names of the items: the order of the rows is
        irrelevant.
    threads : int, optional
        By default as many as there are processors. The result does not depend on it.

    Attributes
    ----------
    evidence_ : array
        The bound on the log-probability of the labels that each start reached.

    Notes
    -----
    Tables of more than 300,000 labels are fitted on a sample of their items, and the posteriors
    of the others follow from that fit. There is no likelihood to compare with other models.

    Examples
    --------
    Six labelers who know one half of the items and guess on the other:

    >>> rng = np.random.default_rng(0)
    >>> truth, half = rng.integers(2, size=(2, 600, 1))
    >>> knows = half == np.arange(12) % 2
    >>> said = np.where(rng.random((600, 12)) < np.where(knows, 0.95, 0.5), truth, 1 - truth)
    >>> found = Subtypes(starts=2).fit(LabelTable.from_matrix(said))
    >>> right = [found.labels_[s] == truth[s, 0] for s in range(600)]
    >>> bool(np.mean(right) > 0.95)
    True
    """

    name: ClassVar[str] = "subtypes"

    types: int = 3
    starts: int = 3
    strength: float = 10.0
    max_iter: int = 60
    tol: float = 1e-3
    threads: int | None = None

    def fit(self, labels: Any, gold: Gold | None = None) -> Self:
        """Fit every start, and average the posteriors.

        With `gold`, a mapping of item to class, the starts are from the vote that gold gives
        (`gold_votes`), and the class of these items is known.
        """
        _check(self)
        table = as_labels(labels)
        told = gold_votes(table, gold)
        sample = _sample(table)
        here = told if told is None or sample is table else told.on(sample)
        learned = [_Start(self, sample, n, here) for n in range(self.starts)]
        self.evidence_ = np.array([start.evidence for start in learned])
        monitor = _slowest(learned)
        priors = np.mean([start.priors() for start in learned], axis=0)
        if isinstance(table, Partitions):  # which are worked on side by side
            for start in learned:
                start.how = replace(self, threads=1)
        posteriors = each(table, _posteriors, learned, priors)
        if told is not None:
            posteriors = settled(table, posteriors, told.known)
        confusions = np.mean([start.confusions() for start in learned], axis=0)
        skills = np.einsum("mkk,k->m", confusions, priors)
        return self._settle(table, skills, posteriors, None, monitor, confusions, priors)


class _Start:
    """One climb; arrays over types are [..., k * types + g]."""

    def __init__(
        self, how: Subtypes, table: LabelTable, number: int, told: GoldVotes | None
    ) -> None:
        self.how, self.K, self.M = how, len(table.classes), len(table.labelers)
        self.T = self.K * how.types
        self.room = self.T + self.M * self.K * self.T
        with Blocks(table, self.room, how.threads) as blocks:
            self._prior(blocks)
            self.gold = _known(table, told)
            self._climb(blocks, _memberships(table, blocks, how, number, told))

    def _prior(self, blocks: Blocks) -> None:
        """Pseudo-labels [code, type]: everyone is like the panel, by the votes."""
        K, M = self.K, self.M
        sums = blocks.run(share_pass, K + M * K * K, blocks.said_of, K)[1]
        panel = pooled_prior(sums[K:].reshape(M, K, K), self.how.strength)
        self.pseudo = np.repeat(panel.reshape(M * K, K), self.how.types, axis=1)

    def _climb(self, blocks: Blocks, z: Floats) -> None:
        self.monitor = Monitor(self.how.tol, self.how.max_iter)
        _, sums = blocks.run(weigh_pass, self.room, self.T, posteriors=z)
        classes = _by_class(z, self.K)
        while not self.monitor.done:
            self._maximise(sums)
            total, sums = blocks.run(full_pass, self.room, *self._parameters(), posteriors=z)
            self.evidence = total - self._divergence()
            if (self.gold >= 0).any():
                _, sums = blocks.run(weigh_pass, self.room, self.T, posteriors=self._given(z))
            latest = _by_class(z, self.K)
            self.monitor.report(self.evidence, float(np.abs(latest - classes).max(initial=0.0)))
            classes = latest

    def _given(self, z: Floats) -> Floats:
        """Items of a known class have no part in the types of others."""
        gold = np.flatnonzero(self.gold >= 0)
        parts = z[gold].reshape(len(gold), self.K, -1) + TINY
        parts *= np.eye(self.K)[self.gold[gold]][:, :, None]
        z[gold] = (parts / parts.sum(axis=(1, 2), keepdims=True)).reshape(len(gold), -1)
        return z

    def _maximise(self, sums: Floats) -> None:
        self.items = sums[: self.T].reshape(self.K, -1)
        self.labels = sums[self.T :].reshape(self.M * self.K, self.T) + self.pseudo

    def _parameters(self) -> tuple[Floats, Floats, Floats]:
        """Expected logarithms in the layout of the kernel: of the labels, and of the types."""
        from scipy.special import digamma

        rows = self.labels.reshape(self.M, self.K, self.T)
        log_said = (digamma(rows) - digamma(rows.sum(axis=1, keepdims=True))).reshape(-1, self.T)
        log_type = (_expected_log(self.items + _SPARSE) + _class_log(self.items)).ravel()
        return log_said, np.exp(log_said), log_type

    def _divergence(self) -> float:
        """How far the parameters are from their priors (Kullback-Leibler)."""
        shape = self.M, self.K, self.T
        labels, pseudo = (a.reshape(shape).transpose(0, 2, 1) for a in (self.labels, self.pseudo))
        of_class = self.items.sum(axis=1) + 1.0
        return (
            _kl(labels, pseudo)
            + _kl(self.items + _SPARSE, np.full(self.items.shape, _SPARSE))
            + _kl(of_class, np.ones(self.K))
        )

    def posteriors(self, table: LabelTable) -> Floats:
        """The classes of all items of the table."""
        out = np.empty((len(table.items), self.K))
        parameters = self._parameters()
        for a in range(0, len(out), PIECE):
            part = slice_items(table, a, min(a + PIECE, len(out)))
            z = np.zeros((len(part.items), self.T))
            with Blocks(part, self.room, self.how.threads) as blocks:
                blocks.run(full_pass, self.room, *parameters, posteriors=z)
            out[a : a + PIECE] = _by_class(z, self.K)
        return out

    def priors(self) -> Floats:
        """How frequent the classes are."""
        of_class = self.items.sum(axis=1) + 1.0
        return np.asarray(of_class / of_class.sum())

    def confusions(self) -> Floats:
        """Confusion matrices, labelers x K (truth) x K (said), types as frequent as they are."""
        rows = self.labels.reshape(self.M, self.K, self.K, -1)  # labeler, said, class, type
        rows = rows / rows.sum(axis=1, keepdims=True)
        share = (self.items + _SPARSE) / (self.items + _SPARSE).sum(axis=1, keepdims=True)
        return np.asarray(np.einsum("mlkg,kg->mkl", rows, share))


#: Pseudo-items of each type: small, so that types which explain nothing stay empty.
_SPARSE: Final = 1 / 30


def _known(table: LabelTable, told: GoldVotes | None) -> NDArray[np.int64]:
    """The class of each item that has labels, -1 where it is not known."""
    nothing = np.full(len(table.items), -1, np.int64)
    return nothing if told is None else np.where(np.diff(table.start) > 0, told.known, nothing)


def _memberships(
    table: LabelTable, blocks: Blocks, how: Subtypes, number: int, told: GoldVotes | None
) -> Floats:
    """The vote shares of each item, divided among the types at random: items x types."""
    K = len(table.classes)
    shares = np.zeros((len(table.items), K))
    room = K + len(table.labelers) * K * K
    blocks.run(share_pass, room, blocks.said_of, K, posteriors=shares)
    if told is not None:
        labelled = np.diff(table.start) > 0
        shares[labelled] = told.shares[labelled]
    draws = [item_draws(table, how.seed + 1_000 * number + g) for g in range(how.types)]
    parts = -np.log1p(-np.stack(draws, axis=1))
    parts /= parts.sum(axis=1, keepdims=True)
    return np.ascontiguousarray((shares[:, :, None] * parts[:, None, :]).reshape(len(shares), -1))


def _by_class(z: Floats, classes: int) -> Floats:
    return np.asarray(z.reshape(len(z), classes, -1).sum(axis=2))


def _expected_log(counts: Floats) -> Floats:
    from scipy.special import digamma

    return np.asarray(digamma(counts) - digamma(counts.sum(axis=-1, keepdims=True)))


def _class_log(items: Floats) -> Floats:
    return _expected_log(items.sum(axis=1) + 1.0)[:, None]


def _kl(a: Floats, b: Floats) -> float:
    """The divergence of Dirichlet(a) from Dirichlet(b), summed over all but the last axis."""
    from scipy.special import gammaln

    log_norm = gammaln(a.sum(axis=-1)) - gammaln(a).sum(axis=-1)
    log_norm -= gammaln(b.sum(axis=-1)) - gammaln(b).sum(axis=-1)
    return float((log_norm + ((a - b) * _expected_log(a)).sum(axis=-1)).sum())


def _posteriors(table: LabelTable, learned: list[_Start], priors: Floats) -> Floats:
    posteriors = np.mean([start.posteriors(table) for start in learned], axis=0)
    posteriors[np.diff(table.start) == 0] = priors
    return np.asarray(posteriors)


def _sample(table: Table) -> LabelTable:
    """The table, or as many of its items as `MOST_LABELS` allow, drawn by their names."""
    share = MOST_LABELS / max(1, sizes(table)[1])
    return gathered(table, _drawn, share)


def _drawn(table: LabelTable, first: int, share: float) -> LabelTable:
    if share >= 1:
        return table
    return drop_empty(keep_items(table, item_draws(table) < share))


def _slowest(starts: list[_Start]) -> Monitor:
    return max((start.monitor for start in starts), key=lambda monitor: monitor.n_iter)


def _check(how: Subtypes) -> None:
    if how.types < 1 or how.starts < 1:
        raise InputError(
            f"got {how.types!r} types and {how.starts!r} starts, expected at least 1 of each"
        )
    if not 0 < how.strength < np.inf:
        raise InputError(f"got strength={how.strength!r}, expected a finite count above 0")
