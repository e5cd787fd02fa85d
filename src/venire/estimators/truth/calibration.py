r"""How sure to be, by gold: a temperature, a hazard, and a ceiling.

With q the posterior of an item, t a temperature and h the share of items on which everybody may be
wrong, (1 - h) q^t + h / K. Some tens of gold labels do not say much about t and h, so the
prediction is the mean over what they may be, by how well each predicts the posteriors that gold
items have without their own gold: not knowing how sure to be makes less sure.

Then no verdict is surer than gold has shown such verdicts to be. Of the n gold items that are at
least so sure, w are wrong; with PRIOR_VERDICTS, which are some labels of which some are wrong,

    the ceiling is 1 - (w + wrong) / (n + all),

and that of less sure verdicts if it is higher. So 50 gold labels, all of them right, can show
1 - 1/55 = 98 %, and 20 can show 96 %. With fewer there is no ceiling: they could not contradict.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from venire.tools.arrays import Floats, Ints, softmax

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

    Attributes
    ----------
    temperatures, hazards, weights
        What the log-posteriors may have to be multiplied by, the hazard with each, and how
        probable each is.
    confidences, ceilings
        Where the ceiling is: that of verdicts which are at least so sure. Both rise.
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

    Parameters
    ----------
    items, labelers, said
        The labels, by numbers.
    logs
        The log-posterior of each item, up to a constant.
    confusions
        The probability of each label, by labeler and true class.
    rows, truth
        The gold items, and the class of each.

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
