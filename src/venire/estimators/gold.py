r"""What is known in advance: gold labels, counts from earlier work, the vote that gold gives.

**The vote that gold gives: each labeler counts by how often it was right where the truth is
known.**

Methods that stay near the vote start from it. Where most labelers share their errors the vote is
theirs, and whoever is right contradicts it; nothing in the labels can show that. Gold can: if what
was learned from all labels is wrong on gold significantly more often than the labelers' record on
gold is, then the verdicts follow that record alone.

**How sure to be, by gold: a temperature, a hazard, and a ceiling** (`Calibration`). With q the
posterior of an item, t a temperature and h the share of items on which everybody may be wrong,
(1 - h) q^t + h / K. Some tens of gold labels do not say much about t and h, so the prediction is
the mean over what they may be, by how well each predicts the posteriors that gold items have
without their own gold: not knowing how sure to be makes less sure.

Then no verdict is surer than gold has shown such verdicts to be. Of the n gold items that are at
least so sure, w are wrong; with PRIOR_VERDICTS, which are some labels of which some are wrong,

    the ceiling is 1 - (w + wrong) / (n + all),

and that of less sure verdicts if it is higher. So 50 gold labels, all of them right, can show
1 - 1/55 = 98 %, and 20 can show 96 %. With fewer there is no ceiling: they could not contradict.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike

from venire.errors import InputError, UnknownName
from venire.estimators.base import TINY, right_shares
from venire.estimators.passes import vote_pass
from venire.labels import LabelTable
from venire.labels.partitions import Table, each, kept, total
from venire.labels.table import keep_items
from venire.paper.accuracy import one_coin
from venire.tools.arrays import Floats, Ints, softmax

Gold = Mapping[Any, Hashable]
History = Mapping[Any, ArrayLike]
ClassPrior = Literal["learned", "uniform"]


class Soft(NamedTuple):
    """Expected counts: of the items of each class, and of the labels [labeler, said, truth]."""

    items: Floats
    labels: Floats

    def plus(self, other: Soft) -> Soft:
        return Soft(self.items + other.items, self.labels + other.labels)


def known_classes(table: Table, gold: Gold | None) -> Any:
    """The class of each item by its index, -1 where it is not known; None without gold.

    Items that are not in the table are ignored.

    >>> table = LabelTable.from_rows([("a", "ann", "x"), ("b", "ann", "y")])
    >>> known_classes(table, {"b": "x", "z": "y"}).tolist()
    [-1, 0]
    """
    _check_gold(gold, table)
    return each(table, _codes, gold) if gold else None


def _codes(table: LabelTable, gold: Gold) -> Ints:
    code = {name: k for k, name in enumerate(table.classes)}
    known = ((code[gold[item]] if item in gold else -1) for item in table.items)
    found = np.fromiter(known, dtype=np.int64, count=len(table.items))
    if (found < 0).all():
        _check_types(gold, table)
    return found


def without_gold(table: Table, known: Any) -> Any:
    """The table without the labels of items whose class is known."""
    return table if known is None else kept(table, _unknown, known)


def settled(table: Table, posteriors: Any, known: Any) -> Any:
    """Posteriors with the known classes written into them."""
    return posteriors if known is None else each(table, _written, posteriors, known)


def _unknown(table: LabelTable, known: Ints) -> LabelTable:
    return keep_items(table, known < 0)


def _written(table: LabelTable, posteriors: Floats, known: Ints) -> Floats:
    written, gold = posteriors.copy(), known >= 0
    written[gold] = np.eye(posteriors.shape[1])[known[gold]]
    return written


def _check_types(gold: Gold, table: LabelTable) -> None:
    """Gold of none of the items may be of others, but not of the same in another type."""
    text = {str(item): item for item in table.items}
    item = next((item for item in gold if str(item) in text), None)
    if item is not None:
        raise InputError(
            f"gold has the item {item!r}, and the labels have {text[str(item)]!r}: "
            "expected items of one type: convert one of them"
        )


def _check_gold(gold: Gold | None, table: Table) -> None:
    if gold is not None and not isinstance(gold, Mapping):
        raise InputError(
            f"got gold as {type(gold).__name__}, expected a mapping of item to class, such as "
            "{'post-1': 'spam'}: of a dataframe dict(zip(gold.task, gold.label)); with a column "
            "`drawn`, give its items that were asked as asked=[...]; `venire aggregate --gold` "
            "reads files"
        )
    classes = set(table.classes)
    for item, name in (gold or {}).items():
        if name not in classes:
            raise InputError(
                f"item {item!r} has the gold label {name!r}, "
                f"expected one of the classes {list(table.classes)}"
            )


def history_counts(table: Table, history: History | None) -> Floats | None:
    """Counts [labeler, said, truth] from K x K tables of truth x said; None without history.

    Labelers who are not in the table are ignored.

    >>> table = LabelTable.from_rows([("a", "ann", "x"), ("b", "bob", "y")])
    >>> history_counts(table, {"bob": [[9, 1], [0, 5]]})[1].tolist()
    [[9.0, 0.0], [1.0, 5.0]]
    """
    if not history:
        return None
    K = len(table.classes)
    counts = np.zeros((len(table.labelers), K, K))
    place = {name: m for m, name in enumerate(table.labelers)}
    for name, given in history.items():
        known = check_counts(given, K, f"a history of labeler {name!r}")
        if name in place:
            counts[place[name]] = known.T
    return counts


def check_counts(given: ArrayLike, classes: int, what: str) -> Floats:
    """A K x K table of counts, truth by said; `what` is its name in the error.

    >>> check_counts([[9, 1], [0, 5]], 2, "a history").tolist()
    [[9.0, 1.0], [0.0, 5.0]]
    """
    counts = np.asarray(given, dtype=np.float64)
    if counts.shape != (classes, classes) or not (np.isfinite(counts) & (counts >= 0)).all():
        raise InputError(
            f"got {what} of shape {counts.shape}, expected a {classes} x {classes} table of "
            "counts, truth by said, none of them below 0"
        )
    return counts


def check_class_prior(given: ClassPrior | ArrayLike, classes: int) -> Floats | None:
    """The class prior that is given, or None if it is to be learned.

    >>> check_class_prior("uniform", 4).tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    if isinstance(given, str):
        if given not in get_args(ClassPrior):
            raise UnknownName("class prior", given, get_args(ClassPrior))
        return None if given == "learned" else np.full(classes, 1 / classes)
    priors = np.asarray(given, dtype=np.float64)
    if priors.shape != (classes,) or not (priors > 0).all() or abs(priors.sum() - 1) > 1e-6:
        raise InputError(f"got the class prior {given!r}, expected {classes} probabilities")
    return priors


def class_shares(items: Floats, pseudo: float, given: Floats | None) -> Floats:
    """The class shares of an M step: as given, or learned from how many items each class has."""
    if given is not None:
        return given
    counts = items + pseudo
    return np.asarray((counts / counts.sum()).clip(TINY, 1.0))


def fixed_counts(table: Table, known: Any = None, history: History | None = None) -> Soft:
    """The counts of gold items and of history.

    >>> table = LabelTable.from_rows([("a", "ann", "x"), ("b", "ann", "y")])
    >>> fixed_counts(table, np.array([0, -1])).labels.tolist()
    [[[1.0, 0.0], [0.0, 0.0]]]
    """
    K = len(table.classes)
    items, labels = np.zeros(K), np.zeros((len(table.labelers), K, K))
    past = history_counts(table, history)
    if past is not None:
        labels += past
    if known is not None:
        counted = total(table, _gold_counts, known)
        items, labels = items + counted[0], labels + counted[1]
    return Soft(items, labels)


def _gold_counts(table: LabelTable, known: Ints) -> tuple[Floats, Floats]:
    K = len(table.classes)
    labels = np.zeros((len(table.labelers), K, K))
    truth = np.repeat(known, np.diff(table.start))
    gold = truth >= 0
    np.add.at(labels, (table.labeler[gold], table.said[gold], truth[gold]), 1.0)
    return np.bincount(known[known >= 0], minlength=K).astype(np.float64), labels


#: Pseudo-labels of each labeler on gold items, as often right as the panel is on them.
RECORD_LABELS: Final = 8.0

#: Fewer gold items than this are known truth, and say nothing of who is better than others.
RECORD_GOLD: Final = 10

#: Right and wrong pseudo-items of the panel.
PANEL_ITEMS: Final = (7.0, 3.0)

#: Standard errors by which the record on gold must be better than what was learned.
RECORD_ERRORS: Final = 2.0


class GoldVotes(NamedTuple):
    """The class of each item (-1: not known), the labelers' weights, and the weighted votes.

    `rates` are how often each labeler is right by gold, shrunk towards the panel's `mean`; `given`
    and `right` count its labels on gold items. `known` and `shares` are arrays of the items, or
    spread over the partitions of the table.
    """

    gold: Gold
    known: Any
    mean: float
    rates: Floats
    weights: Floats
    shares: Any
    given: Ints
    right: Ints

    def on(self, part: Table) -> GoldVotes:
        """The same votes on some of the items."""
        known = known_classes(part, self.gold)
        return self._replace(known=known, shares=each(part, shares_by, self.weights, known))

    def overrule(self, table: Table, confusions: Floats, priors: Floats) -> bool:
        """Whether the record on gold is better than these matrices, on the gold items themselves.

        The matrices may have seen the gold; the record of a labeler is taken without the item that
        it is tested on. So gold overrules only what is clearly wrong.
        """
        record = self.mean, self.given, self.right
        better, squares = total(table, _better, self.known, record, confusions, priors)
        spread = float(np.sqrt(squares))
        return spread > 0 and float(better) > RECORD_ERRORS * spread

    def record(self, table: Table) -> tuple[Floats, Any]:
        """Confusion matrices by the record on gold alone, and the posteriors that follow."""
        K = len(table.classes)
        coins = one_coin(self.rates, K)
        counts = fixed_counts(table, self.known).labels.transpose(0, 2, 1) + RECORD_LABELS * coins
        rows = (counts / counts.sum(axis=2, keepdims=True)).clip(TINY)
        return rows, each(table, _by_record, rows, self.known)


def gold_votes(table: Table, gold: Gold | None) -> GoldVotes | None:
    r"""The votes on a table, labelers weighted by gold; None without gold for any of its items.

        a_m = ( shrink * panel's share + times m was right ) / ( shrink + labels of m on gold )
        w_m = max( 0, (K a_m - 1) / (K - 1) )

    These are the weights of `WeightedMajority`, with the truth in the place of the vote: 0 at
    chance, 1 for one who is always right. Who has labelled no gold counts like the panel, and with
    fewer than ten gold items everybody does.

    >>> rows = [(i, m, "yes") for i in range(20) for m in ("ann", "bob")]
    >>> table = LabelTable.from_rows([*rows, (20, "ann", "no")])
    >>> gold_votes(table, dict.fromkeys(range(12, 21), "yes")).weights.tolist()
    [1.0, 1.0]
    >>> gold_votes(table, dict.fromkeys(range(10, 21), "yes")).weights.round(2).tolist()
    [0.73, 0.83]
    """
    known = known_classes(table, gold)
    if known is None or gold is None:
        return None
    given, right, (found, tested, hits) = total(table, _counts, known)
    if not found:
        return None
    M, K = len(table.labelers), len(table.classes)
    mean = float((hits + PANEL_ITEMS[0]) / (tested + sum(PANEL_ITEMS)))
    rates = (right + RECORD_LABELS * mean) / (given + RECORD_LABELS)
    weights = np.maximum(K * rates - 1, 0.0) / (K - 1)
    if not weights.any() or found < RECORD_GOLD:
        weights = np.ones(M)
    shares = each(table, shares_by, weights, known)
    return GoldVotes(gold, known, mean, rates, weights, shares, given, right)


def shares_by(table: LabelTable, weights: Floats, known: Ints | None) -> Floats:
    """The shares of the weighted votes, items x K; 1 for the class of an item that is known.

    >>> table = LabelTable.from_matrix([[0, 1], [1, 1]])
    >>> shares_by(table, np.array([3.0, 1.0]), np.array([-1, 0])).tolist()
    [[0.75, 0.25], [1.0, 0.0]]
    """
    shares = np.empty((len(table.items), len(table.classes)))
    vote_pass(table.start, table.labeler, table.said, weights, shares)
    return shares if known is None else _written(table, shares, known)


def _counts(table: LabelTable, known: Ints) -> tuple[Ints, Ints, Floats]:
    """Labels on gold of each labeler, the right ones, and of the panel.

    The panel: gold items, those with labels, and the sum of their shares of right labels.
    """
    M, items = len(table.labelers), len(table.items)
    item = table.item
    truth = known[item]
    told, hit = truth >= 0, table.said == truth
    given, right = (np.bincount(item[which], minlength=items) for which in (told, hit))
    shares = right[given > 0] / given[given > 0]
    return (
        np.bincount(table.labeler[told], minlength=M),
        np.bincount(table.labeler[hit], minlength=M),
        np.array([np.count_nonzero(known >= 0), len(shares), shares.sum()]),
    )


def _better(
    table: LabelTable,
    known: Ints,
    record: tuple[float, Ints, Ints],
    confusions: Floats,
    priors: Floats,
) -> tuple[float, float]:
    """How much more often the record is right than what was learned, and the sum of squares."""
    mean, given, right = record
    told = (known >= 0)[table.item]
    item, labeler, said = (
        a[told].astype(np.int64) for a in (table.item, table.labeler, table.said)
    )
    tested, place = np.unique(item, return_inverse=True)
    truth, K = known[item], len(table.classes)
    learned = np.tile(np.log(priors.clip(TINY)), (len(tested), 1))
    np.add.at(learned, place, np.log(confusions.clip(TINY))[labeler, :, said])
    hits = right[labeler] - (said == truth) + RECORD_LABELS * mean
    rate = (hits / (given[labeler] - 1 + RECORD_LABELS)).clip(1 / K, 1 - TINY)
    recorded = np.zeros(learned.shape)
    np.add.at(recorded, (place, said), np.log(rate * (K - 1) / (1 - rate)))
    truth = known[tested]
    better = right_shares(recorded, truth) - right_shares(learned, truth)
    return float(better.sum()), float((better**2).sum())


def _by_record(table: LabelTable, rows: Floats, known: Ints) -> Floats:
    logs = np.zeros((len(table.items), len(table.classes)))
    np.add.at(logs, table.item, np.log(rows)[table.labeler, :, table.said])
    return _written(table, softmax(logs), known)


#: Log-temperatures tried, and the spread of their prior; shares of items on which everybody may be
#: wrong, and the mean of their prior.
LOG_TEMPERATURES: Final = np.linspace(np.log(0.25), np.log(5.0), 15)
TEMPERATURE_SPREAD: Final = 0.4
HAZARDS: Final = np.array([0.005, 0.01, 0.02, 0.03, 0.045, 0.065, 0.09, 0.12, 0.16])
MEAN_HAZARD: Final = 0.08

#: Temperatures of less weight than this are left out.
WEIGHT_FLOOR: Final = 1e-3

#: The prior before any gold: a number of verdicts, and how many of them are wrong however sure
#: they seem.
PRIOR_VERDICTS: Final = (5.0, 1.0)

#: The number of gold items from which on there is a ceiling.
CEILING_GOLD: Final = 20

#: Of a confidence above the ceiling this much is kept, so that the order is.
EXCESS_KEPT: Final = 1e-6


class Calibration(NamedTuple):
    """What gold says about confidences.

    `temperatures` are what the log-posteriors may have to be multiplied by, `hazards` go with
    them, and `weights` are how probable each is. Verdicts at least as sure as one of `confidences`
    have its ceiling; both rise.
    """

    temperatures: Floats
    hazards: Floats
    weights: Floats
    confidences: Floats
    ceilings: Floats

    @property
    def temperature(self) -> float:
        return float(np.exp(self.weights @ np.log(self.temperatures)))

    def applied(self, posteriors: Floats) -> Floats:
        return self._below_ceiling(self._mean(posteriors))

    def _mean(self, posteriors: Floats) -> Floats:
        logs, K = np.log(np.maximum(posteriors, 1e-12)), posteriors.shape[-1]
        found = np.zeros(posteriors.shape)
        for heat, hazard, weight in zip(self.temperatures, self.hazards, self.weights, strict=True):
            found += weight * ((1 - hazard) * softmax(heat * logs) + hazard / K)
        return found

    def _below_ceiling(self, posteriors: Floats) -> Floats:
        if not self.ceilings.size:
            return posteriors
        sure = posteriors.max(axis=1)
        place = np.searchsorted(self.confidences, sure, side="right") - 1
        most = self.ceilings[np.maximum(place, 0)]
        new = np.where(sure > most, most + EXCESS_KEPT * (sure - most), sure)
        scale = (1 - new) / np.maximum(1 - sure, 1e-12)
        best = np.arange(len(posteriors)), posteriors.argmax(axis=1)
        found = np.where((new < sure)[:, None], posteriors * scale[:, None], posteriors)
        found[best] = new
        return np.asarray(found)


def fitted_calibration(posteriors: Floats, truth: Ints) -> Calibration:
    """The calibration by gold items: their posteriors without their own gold, and their truth.

    The temperature is near 1 a priori; the hazard is for items on which all err alike, or the
    truth itself is in doubt.

    >>> sure, wrong = np.tile([0.99, 0.01], (40, 1)), (np.arange(40) % 5 == 0).astype(int)
    >>> fitted_calibration(sure, wrong).applied(sure[:1]).round(2).tolist()
    [[0.8, 0.2]]
    >>> fitted_calibration(sure, np.zeros(40, int)).applied(sure[:1]).round(2).tolist()
    [[0.98, 0.02]]
    """
    K = posteriors.shape[1]
    hot = softmax(np.exp(LOG_TEMPERATURES)[:, None, None] * np.log(np.maximum(posteriors, 1e-12)))
    told = hot[:, np.arange(len(truth)), truth]  # temperatures x items
    mixed = (1 - HAZARDS[:, None, None]) * told + HAZARDS[:, None, None] / K
    prior = -((LOG_TEMPERATURES / TEMPERATURE_SPREAD) ** 2) / 2 - HAZARDS[:, None] / MEAN_HAZARD
    prior = prior + np.log(np.gradient(HAZARDS))[:, None]
    height = np.log(mixed).sum(axis=2) + prior  # hazards x temperatures
    weight = softmax(height.ravel()).reshape(height.shape)
    each = weight.sum(axis=0)
    kept = each > WEIGHT_FLOOR
    hazards = (HAZARDS @ weight)[kept] / each[kept]
    found = np.exp(LOG_TEMPERATURES)[kept], hazards, each[kept] / each[kept].sum()
    none = np.empty(0)
    plain = Calibration(*found, none, none)
    if len(truth) < CEILING_GOLD:
        return plain
    return plain._replace(**_ceilings(plain.applied(posteriors), truth))


def most_shown(gold: int) -> float:
    """How sure a verdict can be, given the number of gold items, if all of them are right.

    >>> [round(most_shown(gold), 3) for gold in (0, 19, 20, 50, 100)]
    [1.0, 1.0, 0.96, 0.982, 0.99]
    """
    return 1.0 if gold < CEILING_GOLD else 1 - PRIOR_VERDICTS[1] / (gold + PRIOR_VERDICTS[0])


def _ceilings(posteriors: Floats, truth: Ints) -> dict[str, Floats]:
    """The ceiling of verdicts that are at least as sure as each gold item, which rises."""
    sure = posteriors.max(axis=1)
    order = np.argsort(-sure, kind="stable")
    wrong = np.cumsum(posteriors.argmax(axis=1)[order] != truth[order])
    ceilings = 1 - (wrong + PRIOR_VERDICTS[1]) / (np.arange(1, len(order) + 1) + PRIOR_VERDICTS[0])
    confidences, last = np.unique(sure[order][::-1], return_index=True)
    # at equal confidences all of them count
    ceilings = np.maximum.accumulate(ceilings[::-1][last])
    return {"confidences": confidences, "ceilings": np.maximum(ceilings, 0.5)}


#: Factors on the log-odds that gold may show, and how far they may be from the one before: both as
#: logarithms.
LOG_FACTORS: Final = np.linspace(np.log(0.03), np.log(4.0), 50)
FACTOR_SPREAD: Final = 1.0


def certainty_by_gold(logs: Floats, truth: Ints, before: float) -> float:
    """What to multiply the log-odds of all verdicts of a stream by, by the gold in it.

    The one number that a schedule can use, as `venire.estimators.dependence.certainty` is, which
    by labels alone says `before`. Labels alone see how far errors depend on each other, and where
    gold has taught the labelers' matrices that may be far from how often verdicts are wrong. `logs`
    are the log-posteriors of gold items, up to a constant each. The factor is the one under which
    they are on average as sure as over all that it may be.

    >>> logs = np.log(np.tile([0.9, 0.1], (40, 1)))
    >>> all_right, some_wrong = np.zeros(40, int), (np.arange(40) % 5 == 0).astype(int)
    >>> [round(certainty_by_gold(logs, truth, 0.1), 1) for truth in (all_right, some_wrong)]
    [1.7, 0.5]
    """
    centre = np.clip(np.log(before), LOG_FACTORS[0], LOG_FACTORS[-1])
    hot = softmax(np.exp(LOG_FACTORS)[:, None, None] * logs)
    told = np.log(np.maximum(hot[:, np.arange(len(truth)), truth], 1e-300)).sum(axis=1)
    weight = softmax(told - ((LOG_FACTORS - centre) / FACTOR_SPREAD) ** 2 / 2)
    sure = hot.max(axis=2).mean(axis=1)  # does not fall as the factor rises
    return float(np.exp(np.interp(weight @ sure, sure, LOG_FACTORS)))


#: A row of a confusion matrix was learned from as many labels more than were seen, and has no
#: smaller entry than this.
ROW_LABELS: Final = 2.0
ENTRY_FLOOR: Final = 0.01


def without_own_gold(
    items: Ints,
    labelers: Ints,
    said: Ints,
    logs: Floats,
    confusions: Floats,
    rows: Sequence[int],
    truth: Ints,
) -> Floats:
    """The log-posteriors of gold items as they would be had their own gold taught nothing.

    A label of a gold item is one of those from which the row of its true class was learned, so the
    item looks surer than others like it. With n labels of the labeler on items of that class, it is
    taken out of n + 2: the probability of what it said was p, and is (p (n + 2) - 1) / (n + 1).

    `items`, `labelers` and `said` are the labels by numbers, `logs` the log-posteriors of all items
    up to a constant, `confusions` [labeler, truth, said]; `rows` are the gold items.

    >>> matrix = np.array([[[0.75, 0.25], [0.25, 0.75]]])
    >>> logs = np.log([[0.75, 0.25], [0.75, 0.25]])
    >>> labels = np.array([0, 1]), np.array([0, 0]), np.array([0, 0])
    >>> alone = without_own_gold(*labels, logs, matrix, [0], np.array([0]))
    >>> round(float(np.exp(alone[0, 0])), 2)  # of 1.75 labels, and two: one less
    0.66
    """
    shares = softmax(logs)
    shares[rows] = np.eye(logs.shape[1])[truth]
    seen = np.zeros(confusions.shape[:2])
    np.add.at(seen, labelers, shares[items])
    found = logs[rows].copy()
    place = np.full(len(logs), -1)
    place[rows] = np.arange(len(rows))
    own = np.flatnonzero(place[items] >= 0)
    where, who, what = place[items[own]], labelers[own], said[own]
    told = confusions[who, truth[where], what]
    number = seen[who, truth[where]] + ROW_LABELS
    alone = np.maximum(ENTRY_FLOOR, (told * number - 1) / (number - 1))
    np.add.at(found, (where, truth[where]), np.log(np.minimum(alone, told)) - np.log(told))
    return found
