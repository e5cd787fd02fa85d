r"""A Bayesian mixture of explanations, weighted by how well each predicts gold.

Labels alone cannot tell which is right where explanations differ: the vote, EM, or one judge who
knows better than all. Gold can. The candidates are

- each *aggregate*: softmax of u x, with x its log-posteriors scaled to size 1, and u on a grid with
  a log-normal prior, so that it counts which items it is surer of, and not how sure it says it is;
- each *labeler* alone: the probability of each class given what it said, with a Dirichlet prior
  that is half what labels alone say of this labeler and half a labeler who is right with
  probability 0.85. Where it gave no label, the default decides;
- *votes taught by gold*: logistic regressions on the aggregates, the labels and the class shares
  (`fit_logit`), one with a narrow prior of the labelers' weights and one with a wide prior. A label
  counts by how it differs from the item's other votes. So gold can raise some labelers above the
  others, but a few gold items on which all labelers err cannot make all weights negative.

Each candidate has a prior mass. That of the labelers is divided by their number, so that hundreds
of them do not outweigh the aggregates. The weight of a candidate is its prior mass times its
evidence: the probability it gives to gold, averaged over its own parameters. So a candidate with
more parameters has no advantage.

Posteriors are the weighted mean; how sure to be is learned from the posteriors that gold items have
without their own gold (`venire.estimators.gold`).

Gold items that were *asked* (`venire ask`) are those on which explanations differ, and not a random
sample. They count for the weights of the candidates, with their evidence to the power of
ASKED_POWER; the class shares of the taught votes, and the calibration, are learned without them. A
taught vote that learned from asked items knows contested items only. So the default decides where
all aggregates agree and it is surer than on CONTESTED_SHARE of the asked items, until ENOUGH_GOLD
items were drawn at random.

**The regression** (`fit_logit`) has a prior of each weight. Class k of item i has the score
z_ik = o_ik + sum_f x_ikf w_f, and the probability exp z_ik / sum_l exp z_il (McFadden's conditional
logit: one weight for each feature, whatever the number of classes). Weights are normal a priori, so
some tens of items can teach hundreds of them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from venire.estimators.gold import Calibration, fitted_calibration
from venire.estimators.votes import soft_counts
from venire.labels import LabelTable, Names
from venire.labels.partitions import Table, each, pieces, total
from venire.tools.arrays import Floats, Ints, softmax

#: Newton steps; a handful is enough, since the penalised likelihood is concave.
STEPS: Final = 50
CLOSE: Final = 1e-9


class Logit(NamedTuple):
    """The most probable weights, the log-evidence of the model, and predictions for its own items.

    `left_out` has, for each item, the probabilities by the weights that the other items give, to
    one Newton step.
    """

    weights: Floats
    evidence: float
    left_out: Floats


def fit_logit(features: Floats, offset: Floats, truth: Ints, mean: Floats, spread: Floats) -> Logit:
    """Fit items x classes x features to the truth; weights are normal around `mean` a priori.

    The evidence is Laplace's approximation.

    >>> x = np.array([[[1.0], [0.0]], [[0.0], [1.0]], [[1.0], [0.0]]])
    >>> found = fit_logit(x, np.zeros((3, 2)), np.array([0, 1, 0]), np.zeros(1), np.ones(1))
    >>> found.weights.round(2).tolist(), round(found.evidence, 2)
    ([0.88], -1.67)
    >>> found.left_out[0].round(2).tolist()
    [0.66, 0.34]
    """
    weights, precision = mean.astype(np.float64), spread**-2.0
    height, z = _height(weights, features, offset, truth, mean, precision)
    for _ in range(STEPS):
        slope, curvature = _derivatives(z, features, truth, precision * (weights - mean), precision)
        step = np.linalg.solve(curvature, slope)
        for scale in 0.5 ** np.arange(20):
            there = weights + scale * step
            higher, scores = _height(there, features, offset, truth, mean, precision)
            if higher >= height:
                break
        else:
            break
        gained, weights, height, z = higher - height, there, higher, scores
        if gained < CLOSE:
            break
    _, curvature = _derivatives(z, features, truth, precision * (weights - mean), precision)
    determinant = float(np.linalg.slogdet(curvature)[1])
    evidence = height + (float(np.log(precision).sum()) - determinant) / 2
    covariance = np.asarray(np.linalg.inv(curvature), np.float64)
    return Logit(weights, evidence, _left_out(z, features, truth, covariance))


def log_sums(values: Floats, axis: int) -> Floats:
    """The logarithm of the sum of the exponentials along an axis.

    >>> float(np.exp(log_sums(np.log([1.0, 3.0]), 0)).round(6))
    4.0
    """
    top = values.max(axis=axis, keepdims=True)
    found = np.log(np.exp(values - top).sum(axis=axis, keepdims=True)) + top
    return np.asarray(found.squeeze(axis))


def _height(
    weights: Floats, features: Floats, offset: Floats, truth: Ints, mean: Floats, precision: Floats
) -> tuple[float, Floats]:
    """The log-likelihood with the prior, less its constant, and the scores."""
    z = features @ weights + offset
    likelihood = float((z[np.arange(len(truth)), truth] - log_sums(z, 1)).sum())
    return likelihood - float((precision * (weights - mean) ** 2).sum()) / 2, z


def _derivatives(
    z: Floats, features: Floats, truth: Ints, pull: Floats, precision: Floats
) -> tuple[Floats, Floats]:
    """The gradient, and the negative of the second derivative."""
    p = softmax(z)
    centre = np.einsum("gk,gkf->gf", p, features)
    slope = (features[np.arange(len(truth)), truth] - centre).sum(axis=0) - pull
    rows = np.sqrt(p)[:, :, None] * (features - centre[:, None, :])
    rows = rows.reshape(-1, features.shape[2])
    return slope, rows.T @ rows + np.diag(precision)


def _left_out(z: Floats, features: Floats, truth: Ints, covariance: Floats) -> Floats:
    """Each item's probabilities without it: one Newton step from the weights of all.

    Without item i the second derivative loses X_i' S_i X_i. With A = X_i C X_i' and the gradient
    g_i of the item, Woodbury's identity turns the step into (I - A S_i)^-1 A g_i.
    """
    K = z.shape[1]
    p, one = softmax(z), np.eye(K)
    spread = np.einsum("gkf,fh,glh->gkl", features, covariance, features, optimize=True)
    inner = one - spread @ (p[:, :, None] * (one - p[:, None, :]))
    pull = spread @ (one[truth] - p)[:, :, None]
    return softmax(z - np.linalg.solve(inner, pull)[:, :, 0])


#: At most this number of gold items, evenly spread, is learned from: by then every weight is known,
#: and a stream learns anew again and again.
MOST_GOLD: Final = 1000

#: Posteriors of aggregates are raised to at least this: with a 0 for the true class, no other
#: candidate and no slope could make up for it.
POSTERIOR_FLOOR: Final = 1e-4

#: Prior masses: of aggregates, of labelers alone, of votes taught by gold; among the aggregates
#: the default has DEFAULT_FACTOR times the mass of another.
AGGREGATE_MASS: Final = 0.6
LABELER_MASS: Final = 0.15
TAUGHT_MASS: Final = 0.25
DEFAULT_FACTOR: Final = 9.0

#: With fewer gold items than the first, or fewer gold labels of a labeler on average than the
#: second, a part of the mass of the taught votes goes to the default.
ENOUGH_GOLD: Final = 20
ENOUGH_EACH: Final = 3.0

#: Slopes of the scaled log-posteriors, and their log-normal prior: median and spread.
SLOPES: Final = np.exp(np.linspace(np.log(0.12), np.log(12.0), 14))
SLOPE_PRIOR: Final = (1.5, 0.8)

#: The prior of a labeler's table: pseudo-labels in each row; the share of them that a good labeler
#: gave, and with which probability that one is right.
TABLE_LABELS: Final = 6.0
GOOD_LABELER: Final = (0.5, 0.85)

#: Prior spreads of the weights of a taught vote: of aggregates and of classes; and of labelers, for
#: each of the two taught votes, with USUAL_LABELS labels an item (with more labels it is less).
SPREADS: Final = (0.3, 0.7)
LABELER_SPREADS: Final = (0.5, 1.5)
USUAL_LABELS: Final = 9.0

#: Labelers whose weight a taught vote learns: those with most gold labels.
MOST_TAUGHT: Final = 200

#: The power of the evidence of asked items: explanations differ on these by more than elsewhere.
ASKED_POWER: Final = 0.7

#: An item is contested unless the default is surer of it than of this share of the asked items.
CONTESTED_SHARE: Final = 0.75

#: The share of every candidate's probability that is spread over all classes.
DOUBT: Final = 0.01


@dataclass(frozen=True, eq=False)
class Mixture:
    """What gold teaches: the candidates, their weights, and how sure to be.

    `names` and `slopes` (for log-posteriors as they are) are those of the aggregates, the default
    first; `weights` those of the aggregates, then of the two taught votes; `single` those of each
    labeler alone. `taught` has of each taught vote the weights of aggregates, classes and labelers;
    `tables` the probability of each class where a labeler said one, labelers x said x truth.

    Of the `gold` items that were learned from `asked` were not drawn, and the verdicts on `right`
    are right without their own gold. `contested` is how sure the default is at most where taught
    votes know better than all aggregates; None if they may speak everywhere.
    """

    names: tuple[str, ...]
    weights: Floats
    single: Floats
    slopes: Floats
    taught: tuple[tuple[Floats, Floats, Floats], ...]
    tables: Floats
    calibration: Calibration
    gold: int
    right: float
    asked: int = 0
    contested: float | None = None

    def posteriors(self, table: Table, aggregates: Sequence[Any]) -> Any:
        """The posteriors of all items, or of each partition."""
        return each(table, _posteriors, self, *aggregates)

    def shares(self, labelers: Names) -> dict[str, float]:
        """The weight of each explanation, the largest first: aggregates, taught votes, labelers."""
        named = dict(zip(self.names, self.weights.tolist(), strict=False))
        named["taught by gold"] = float(self.weights[len(self.names) :].sum())
        for m in np.argsort(-self.single)[:20].tolist():
            named[f"{labelers[m]} alone"] = float(self.single[m])
        return dict(sorted(named.items(), key=lambda pair: -pair[1]))


def mixture_by_gold(
    table: Table,
    known: Any,
    names: Sequence[str],
    aggregates: Sequence[Any],
    asked: Collection[Any] = (),
) -> Mixture | None:
    """Weigh the explanations by gold; None if nobody labelled a gold item.

    `known` has the class of each item or -1; `aggregates` are posteriors that no gold has touched,
    the default first; `asked` are gold items that were chosen, and not drawn at random.

    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(2, size=(300, 1))
    >>> said = np.where(rng.random((300, 3)) < [0.95, 0.6, 0.6], truth, 1 - truth)
    >>> said = np.hstack([said, said[:, 1:2], said[:, 1:2]])  # two copies of the second
    >>> table = LabelTable.from_matrix(said)
    >>> vote = np.eye(2)[(said.sum(axis=1) > 2).astype(int)] * 0.6 + 0.2
    >>> known = np.where(np.arange(300) < 30, truth[:, 0], -1)
    >>> found = mixture_by_gold(table, known, ["majority"], [vote])
    >>> q = found.posteriors(table, [vote])
    >>> [round(float((p.argmax(axis=1) == truth[:, 0]).mean()), 2) for p in (vote, q)]
    [0.6, 0.96]
    """
    sample = gold_sample(table, known, list(aggregates), asked)
    return weighed(table, sample, names, aggregates) if len(sample.truth) else None


def weighed(
    table: Table, sample: Sample, names: Sequence[str], aggregates: Sequence[Any]
) -> Mixture:
    """The mixture of a sample of gold items; of an empty one, what is believed before any gold."""
    M = len(table.labelers)
    sizes = total(table, _label_count)
    plain = _Aggregates(sample)
    votes = _taught(sample, plain.slopes, float(sizes[0] / max(sizes[1], 1)))
    tables = _Tables(sample, total(table, soft_counts, aggregates[0]), plain)
    heard = max(np.unique(sample.labeler).size, 1)
    enough = min(1.0, len(sample.truth) / ENOUGH_GOLD, len(sample.labeler) / heard / ENOUGH_EACH)
    each_taught = enough * TAUGHT_MASS / len(votes)
    masses = np.concatenate([_masses(len(names)), np.full(len(votes), each_taught)])
    masses[0] += (1 - enough) * TAUGHT_MASS
    evidence = np.concatenate([plain.evidence, [vote.evidence for vote in votes]])
    power = 1 - (1 - ASKED_POWER) * float(sample.asked.mean()) if len(sample.truth) else 1.0
    evidence = power * evidence + np.log(np.maximum(masses, 1e-300))
    alone = power * tables.evidence + np.log(LABELER_MASS / M)
    weights = softmax(np.concatenate([evidence, alone]))
    some, single = weights[: len(evidence)], weights[len(evidence) :]
    left_out = np.concatenate([plain.left_out, [_doubted(vote.left_out) for vote in votes]])
    q = _without_own(sample, some, left_out, single, tables, plain.left_out[0])
    drawn = ~sample.asked
    A, K = len(names), sample.scores.shape[2]
    split = [(w[:A] * plain.slopes, w[A : A + K], w[A + K :]) for w in _widened(sample, votes, M)]
    return Mixture(
        names=tuple(names),
        weights=some,
        single=single,
        slopes=plain.slopes / sample.scales,
        taught=tuple((own / sample.scales, classes, who) for own, classes, who in split),
        tables=tables.rows,
        calibration=fitted_calibration(q[drawn], sample.truth[drawn]),
        gold=len(sample.truth),
        right=float((q.argmax(axis=1) == sample.truth).sum()),
        asked=int(sample.asked.sum()),
        contested=_contested(sample),
    )


def _contested(sample: Sample) -> float | None:
    """How sure the default is on the asked items, most of them; None if enough were drawn."""
    if not sample.asked.any() or (~sample.asked).sum() >= ENOUGH_GOLD:
        return None
    sure = softmax(sample.scores[0, sample.asked] * sample.scales[0]).max(axis=1)
    return float(np.quantile(sure, CONTESTED_SHARE))


class _Aggregates:
    """Each aggregate: its slope, its evidence, and what it says of gold items without their own."""

    def __init__(self, sample: Sample) -> None:
        here = np.arange(len(sample.truth))
        prior = -(((np.log(SLOPES) - np.log(SLOPE_PRIOR[0])) / SLOPE_PRIOR[1]) ** 2) / 2
        prior = prior - log_sums(prior, 0)
        q = _doubted(softmax(SLOPES[None, :, None, None] * sample.scores[:, None]))
        told = np.log(q[:, :, here, sample.truth])  # aggregates x slopes x items
        heights = told.sum(axis=2) + prior
        self.evidence = log_sums(heights, 1)
        self.slopes = np.exp((softmax(heights) * np.log(SLOPES)).sum(axis=1))
        others = softmax((heights[:, :, None] - told).transpose(0, 2, 1))
        self.left_out = np.einsum("agu,augk->agk", others, q)


class _Tables:
    """Each labeler alone: the class by what it said, its evidence, and its counts."""

    def __init__(self, sample: Sample, soft: Floats, default: _Aggregates) -> None:
        K, truth = sample.scores.shape[2], sample.truth[sample.item]
        said_by = soft.transpose(0, 2, 1)  # labelers x said x truth
        panel = said_by.sum(axis=0) + 0.1 + 0.5 * np.eye(K)
        alone = said_by + 2.0 * panel / panel.sum(axis=1, keepdims=True)
        alone /= alone.sum(axis=2, keepdims=True)
        good = np.where(np.eye(K, dtype=np.bool_), GOOD_LABELER[1], (1 - GOOD_LABELER[1]) / (K - 1))
        self.prior = TABLE_LABELS * ((1 - GOOD_LABELER[0]) * alone + GOOD_LABELER[0] * good)
        counts = np.zeros_like(self.prior)
        np.add.at(counts, (sample.labeler, sample.said, truth), 1.0)
        self.counts = self.prior + counts
        self.rows = self.counts / self.counts.sum(axis=2, keepdims=True)
        own = (gammaln(self.counts) - gammaln(self.prior)).sum(axis=2)
        own += gammaln(self.prior.sum(axis=2)) - gammaln(self.counts.sum(axis=2))
        usual = np.log(default.left_out[0][np.arange(len(sample.truth)), sample.truth])
        # On items that the labeler did not label, the evidence is that of the default.
        share = np.bincount(sample.labeler, usual[sample.item], minlength=len(soft))
        share = share / min(usual.sum(), -1e-12)
        self.evidence = own.sum(axis=1) + default.evidence[0] * (1 - share)


def _taught(sample: Sample, slopes: Floats, per_item: float) -> list[Logit]:
    """The votes that gold teaches, one for each reach."""
    A, G, K = sample.scores.shape
    used, code = _heard(sample)
    features = np.zeros((G, K, A + K + len(used)))
    features[:, :, :A] = (slopes[:, None, None] * sample.scores).transpose(1, 2, 0)
    features[~sample.asked, :, A : A + K] = np.eye(K)
    own = np.eye(K)[sample.said]
    votes = np.array([np.bincount(sample.item, own[:, k], minlength=G) for k in range(K)]).T
    shares = votes / votes.sum(axis=1, keepdims=True)
    there = code >= 0
    features[sample.item[there], :, A + K + code[there]] = (own - shares[sample.item])[there]
    mean = np.zeros(features.shape[2])
    mean[:A] = _masses(A) / _masses(A).sum()
    found = []
    for reach in LABELER_SPREADS:
        spread = np.full(features.shape[2], reach * np.sqrt(USUAL_LABELS / max(per_item, 1.0)))
        spread[:A], spread[A : A + K] = SPREADS
        found.append(fit_logit(features, np.zeros((G, K)), sample.truth, mean, spread))
    return found


def _heard(sample: Sample) -> tuple[Ints, Ints]:
    """The labelers with most gold labels, and the place of each label's labeler, -1: not one."""
    names, where, given = np.unique(sample.labeler, return_inverse=True, return_counts=True)
    kept = np.sort(np.argsort(-given, kind="stable")[:MOST_TAUGHT])
    place = np.full(len(names), -1)
    place[kept] = np.arange(len(kept))
    return names[kept], place[where]


def _widened(sample: Sample, votes: list[Logit], labelers: int) -> list[Floats]:
    """The weights with one for every labeler, 0 for those who labelled no gold."""
    A, _, K = sample.scores.shape
    used, _ = _heard(sample)
    found = []
    for vote in votes:
        weights = np.zeros(A + K + labelers)
        weights[: A + K] = vote.weights[: A + K]
        weights[A + K + used] = vote.weights[A + K :]
        found.append(weights)
    return found


def _without_own(
    sample: Sample,
    weights: Floats,
    left_out: Floats,
    single: Floats,
    tables: _Tables,
    usual: Floats,
) -> Floats:
    """The posteriors of the gold items, each without its own gold: in candidates and weights.

    Without an item, a candidate's weight is divided by the probability that it gave to its truth.
    """
    truth, item = sample.truth, sample.item
    here, K = np.arange(len(truth)), usual.shape[1]
    odds = weights[:, None] / left_out[:, here, truth]
    q = np.einsum("cg,cgk->gk", odds, left_out)
    own = tables.counts[sample.labeler, sample.said].copy()
    labels = np.arange(len(item))
    own[labels, truth[item]] -= 1.0
    own /= own.sum(axis=1, keepdims=True)
    silent = single.sum() - np.bincount(item, single[sample.labeler], minlength=len(truth))
    q += (np.maximum(silent, 0.0) / usual[here, truth])[:, None] * usual
    odds_alone = single[sample.labeler] / own[labels, truth[item]]
    for k in range(K):
        q[:, k] += np.bincount(item, odds_alone * own[:, k], minlength=len(truth))
    return np.asarray(q / q.sum(axis=1, keepdims=True))


def candidate_rows(table: LabelTable, mixture: Mixture, *aggregates: Floats) -> Floats:
    """What each aggregate and each taught vote says of each item, candidates x items x K."""
    scores = [centred(q) for q in aggregates]
    rows = [softmax(slope * x) for slope, x in zip(mixture.slopes, scores, strict=True)]
    taught = [softmax(_scores(table, scores, *vote)) for vote in mixture.taught]
    if mixture.contested is not None:
        said = np.array([q.argmax(axis=1) for q in aggregates])
        plain = (said == said[0]).all(axis=0)
        plain &= softmax(scores[0]).max(axis=1) > mixture.contested
        taught = [np.where(plain[:, None], rows[0], vote) for vote in taught]
    return _doubted(np.array(rows + taught))


def _posteriors(table: LabelTable, mixture: Mixture, *aggregates: Floats) -> Floats:
    return mixture.calibration.applied(mixed(table, mixture, *aggregates))


def mixed(table: LabelTable, mixture: Mixture, *aggregates: Floats) -> Floats:
    """The mixture of one table, before it is calibrated."""
    rows, item, K = candidate_rows(table, mixture, *aggregates), table.item, len(table.classes)
    q = np.einsum("c,cik->ik", mixture.weights, rows)
    usual, own = rows[0], mixture.tables[table.labeler, table.said]
    heard = mixture.single[table.labeler]
    q += mixture.single.sum() * usual
    for k in range(K):
        q[:, k] += np.bincount(item, heard * (own[:, k] - usual[item, k]), minlength=len(q))
    return np.asarray(q)


def _scores(
    table: LabelTable, scores: Sequence[Floats], own: Floats, classes: Floats, who: Floats
) -> Floats:
    """The scores of a taught vote."""
    K, n = len(classes), len(table.items)
    z = np.einsum("a,aik->ik", own, np.array(scores)) + classes
    place, given = table.item * K + table.said, np.maximum(np.diff(table.start), 1)[:, None]
    votes, heard = (
        np.bincount(place, of, minlength=n * K).reshape(n, K)
        for of in (np.ones(len(place)), who[table.labeler])
    )
    return np.asarray(z + heard - votes / given * heard.sum(axis=1, keepdims=True))


def _masses(aggregates: int) -> Floats:
    """The prior masses of the aggregates, the default first."""
    masses = np.ones(aggregates)
    masses[0] = DEFAULT_FACTOR
    return np.asarray(AGGREGATE_MASS * masses / masses.sum())


def _doubted(q: Floats) -> Floats:
    return np.asarray((1 - DOUBT) * q + DOUBT / q.shape[-1])


def _label_count(table: LabelTable) -> Ints:
    return np.array([len(table.said), np.count_nonzero(np.diff(table.start))])


class Sample(NamedTuple):
    """Gold items with labels, in the order of the table.

    `scores` are the centred log-posteriors of each aggregate, aggregates x items x K, scaled so
    that they have the size 1 over all items of the table; `scales` are what they were divided by.
    `item`, `labeler` and `said` are the labels of these items; `item` counts from 0 here. `asked`
    are items that were chosen for what they tell, and are not a random sample.
    """

    truth: Ints
    scores: Floats
    scales: Floats
    item: Ints
    labeler: Ints
    said: Ints
    asked: NDArray[np.bool_]

    @property
    def hits(self) -> NDArray[np.bool_]:
        """Which of the labels are right."""
        return np.asarray(self.said == self.truth[self.item])


def centred(posteriors: Floats) -> Floats:
    """Log-posteriors less their mean over the classes.

    >>> centred(np.array([[0.5, 0.5], [0.9, 0.1]])).round(2).tolist()
    [[0.0, 0.0], [1.1, -1.1]]
    """
    logs = np.log(np.maximum(posteriors, POSTERIOR_FLOOR))
    return np.asarray(logs - logs.mean(axis=1, keepdims=True))


def gold_sample(
    table: Table, known: Any, aggregates: list[Any], asked: Collection[Any] = ()
) -> Sample:
    """The gold items that somebody labelled; there may be none.

    `known` has the class of each item, -1 where it is not known.

    >>> table = LabelTable.from_matrix([[0, 1], [1, 1], [0, 0]])
    >>> q = np.array([[0.5, 0.5], [0.1, 0.9], [0.9, 0.1]])
    >>> found = gold_sample(table, np.array([0, 1, -1]), [q])
    >>> found.truth.tolist(), found.hits.tolist(), found.scores[0].round(2).tolist()
    ([0, 1], [True, False, True, True], [[0.0, 0.0], [-0.87, 0.87]])
    """
    parts = list(pieces(table, _gold_rows, known, frozenset(asked), *aggregates))
    sizes = np.cumsum([0, *(len(part[0]) for part in parts)])
    truth = np.concatenate([part[0] for part in parts])
    rows = np.concatenate([part[1] for part in parts], axis=1)
    item = np.concatenate([part[2] + first for part, first in zip(parts, sizes, strict=False)])
    labeler, said = (np.concatenate([part[k] for part in parts]) for k in (3, 4))
    squares, items = total(table, _squares, *aggregates)
    scales = np.sqrt(squares / max(float(items), 1.0) / (rows.shape[2] - 1)).clip(1e-6)
    picked = np.concatenate([part[5] for part in parts])
    sample = Sample(truth, rows / scales[:, None, None], scales, item, labeler, said, picked)
    return sample if len(truth) <= MOST_GOLD else _thinned(sample)


def _gold_rows(
    table: LabelTable, known: Ints, asked: frozenset[Any], *aggregates: Floats
) -> tuple[Ints, Floats, Ints, Ints, Ints, NDArray[np.bool_]]:
    used = np.flatnonzero((known >= 0) & (np.diff(table.start) > 0))
    place = np.full(len(table.items), -1)
    place[used] = np.arange(len(used))
    item = place[table.item]
    there = item >= 0
    rows = np.array([centred(q[used]) for q in aggregates])
    own, who, said = (a[there].astype(np.int64) for a in (item, table.labeler, table.said))
    picked = np.array([table.items[i] in asked for i in used.tolist()], np.bool_)
    return known[used], rows, own, who, said, picked


def _squares(table: LabelTable, *aggregates: Floats) -> tuple[Floats, int]:
    """The sum of the squares of the scores of each aggregate, and items with labels."""
    there = np.diff(table.start) > 0
    return np.array([(centred(q[there]) ** 2).sum() for q in aggregates]), int(there.sum())


def _thinned(sample: Sample) -> Sample:
    keep = np.linspace(0, len(sample.truth) - 1, MOST_GOLD).astype(np.int64)
    place = np.full(len(sample.truth), -1)
    place[keep] = np.arange(len(keep))
    item = place[sample.item]
    there = item >= 0
    own, who, said = (a[there] for a in (item, sample.labeler, sample.said))
    scores, asked = sample.scores[:, keep], sample.asked[keep]
    return Sample(sample.truth[keep], scores, sample.scales, own, who, said, asked)
