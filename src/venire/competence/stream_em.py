r"""Incremental EM (Neal and Hinton 1998) on the window of a stream: the compiled loops.

Soft counts `kept[labeler, said, truth]` are at all times the sum over the labels in the window
of the posterior with which their item was last visited; a visit replaces an item's part,

    q_old -> q_new ~ prior_k prod_m P_m[k, said],      counts += q_new - q_old,

and costs nothing for the other items. `folded` holds the part of items that have left. With a
half-life h the label that a labeler gave n labels ago counts 2**(-n / h): counts are kept in
units that shrink with the labeler's clock, so that no label has to be touched when time passes.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from venire.competence.stream_window import (
    CURSOR,
    PLACES,
    Floats,
    Ints,
    Window,
    find,
    release,
    store,
)
from venire.compiling import inlined, kernel

__all__ = [
    "Counts",
    "Rules",
    "beliefs",
    "credit",
    "fold",
    "insert",
    "learn",
    "maximise",
    "others",
    "present",
    "recount",
]

#: Parameters stay this far from 0, so that no logarithm is infinite.
TINY = 1e-10

#: After so many half-lives the units are changed, long before they overflow.
_REBASE = 64.0


class Counts(NamedTuple):
    """What is known of the labelers, in arrays by labeler [said, truth], and of the classes."""

    kept: Floats
    folded: Floats
    prior: Floats
    log_said: Floats
    clock: Ints
    base: Floats
    dirty: NDArray[np.bool_]
    class_kept: Floats
    class_folded: Floats
    log_class: Floats


class Rules(NamedTuple):
    """What does not change: the model, the half-life (0: none) and the prior of the classes."""

    one_coin: bool
    half_life: float
    learned_class: bool
    class_prior: Floats


@inlined
def _weight(counts: Counts, rules: Rules, labeler: int, clock: int) -> float:
    """What a label given at that time counts, in the labeler's present units."""
    if rules.half_life == 0.0:
        return 1.0
    return float(2.0 ** ((clock - counts.base[labeler]) / rules.half_life))


@inlined
def _rebase(counts: Counts, rules: Rules, m: int) -> None:
    """Change the units of a labeler whose clock has run far ahead of them."""
    if rules.half_life == 0.0:
        return
    steps = math.floor((counts.clock[m] - counts.base[m]) / rules.half_life)
    if steps > _REBASE:
        counts.base[m] += steps * rules.half_life
        for x in range(counts.log_class.size):
            for k in range(counts.log_class.size):
                counts.kept[m, x, k] *= 2.0**-steps
                counts.folded[m, x, k] *= 2.0**-steps


@kernel
def insert(
    window: Window,
    counts: Counts,
    rules: Rules,
    places: Ints,
    index: Ints,
    labeler: Ints,
    said: Ints,
    now: int,
) -> None:
    """Take labels in; one that is there already is replaced. All of one batch are equally old."""
    K = counts.log_class.size
    for i in range(places.size):
        window.touched[places[i]] = now
        window.meta[PLACES] = max(window.meta[PLACES], places[i] + 1)
    for j in range(index.size):
        if find(window, places[index[j]], labeler[j]) < 0:
            counts.clock[labeler[j]] += 1
    for j in range(index.size):
        _rebase(counts, rules, labeler[j])
    for j in range(index.size):
        i, m, x = places[index[j]], labeler[j], said[j]
        e = find(window, i, m)
        if e >= 0:
            w = _weight(counts, rules, m, window.clock[e])
            for k in range(K):
                counts.kept[m, window.said[e], k] -= w * window.posterior[i, k]
            window.said[e] = x
        else:
            w = _weight(counts, rules, m, counts.clock[m])
            store(window, i, m, x, counts.clock[m])
        for k in range(K):
            counts.kept[m, x, k] += w * window.posterior[i, k]
        counts.dirty[m] = True


@inlined
def _odds(window: Window, counts: Counts, place: int, odds: Floats, row: int) -> None:
    """Log-odds of the classes of one item, into a row of `odds`."""
    K = counts.log_class.size
    for k in range(K):
        odds[row, k] = counts.log_class[k]
    for e in range(window.first[place], window.first[place] + window.length[place]):
        m, x = window.labeler[e], window.said[e]
        for k in range(K):
            odds[row, k] += counts.log_said[m, x, k]


@inlined
def _normalise(odds: Floats, row: int) -> float:
    """Log-odds to probabilities; returns the logarithm of their sum."""
    K = odds.shape[1]
    top = odds[row, 0]
    for k in range(1, K):
        top = max(top, odds[row, k])
    norm = 0.0
    for k in range(K):
        odds[row, k] = math.exp(odds[row, k] - top)
        norm += odds[row, k]
    for k in range(K):
        odds[row, k] /= norm
    return float(top + math.log(norm))


@inlined
def _visit(window: Window, counts: Counts, rules: Rules, place: int, odds: Floats) -> None:
    """E step of one item: its old soft counts go, its new ones come."""
    K = counts.log_class.size
    _odds(window, counts, place, odds, 0)
    _normalise(odds, 0)
    for k in range(K):
        change = odds[0, k] - window.posterior[place, k]
        window.posterior[place, k] = odds[0, k]
        odds[0, k] = change
        counts.class_kept[k] += change
    for e in range(window.first[place], window.first[place] + window.length[place]):
        m, x = window.labeler[e], window.said[e]
        w = _weight(counts, rules, m, window.clock[e])
        for k in range(K):
            counts.kept[m, x, k] += w * odds[0, k]
        counts.dirty[m] = True


@inlined
def _present(counts: Counts, rules: Rules, m: int) -> float:
    """What the units of a labeler's counts are worth now."""
    if rules.half_life == 0.0:
        return 1.0
    return float(2.0 ** ((counts.base[m] - counts.clock[m]) / rules.half_life))


@kernel
def present(counts: Counts, rules: Rules, out: Floats) -> None:
    """The counts of all labelers as they are worth now, into `out`."""
    K = counts.log_class.size
    for m in range(counts.dirty.size):
        now = _present(counts, rules, m)
        for x in range(K):
            for k in range(K):
                out[m, x, k] = max(0.0, now * (counts.kept[m, x, k] + counts.folded[m, x, k]))


@inlined
def _confusion(counts: Counts, rules: Rules, m: int) -> None:
    """The M step of one labeler: logarithms of its probabilities [said, truth]."""
    K = counts.log_class.size
    now = _present(counts, rules, m)
    total, right = 0.0, 0.0
    for k in range(K):
        column = 0.0
        for x in range(K):
            n = max(0.0, now * (counts.kept[m, x, k] + counts.folded[m, x, k]))
            counts.log_said[m, x, k] = n + counts.prior[m, x, k]
            column += counts.log_said[m, x, k]
        total += column
        right += counts.log_said[m, k, k]
        if not rules.one_coin:
            for x in range(K):
                counts.log_said[m, x, k] = math.log(max(TINY, counts.log_said[m, x, k] / column))
    if rules.one_coin:
        p = min(max(right / total, TINY), 1.0 - TINY)
        log_right, log_wrong = math.log(p), math.log((1.0 - p) / (K - 1))
        for k in range(K):
            for x in range(K):
                counts.log_said[m, x, k] = log_right if x == k else log_wrong


@inlined
def _maximise(counts: Counts, rules: Rules) -> None:
    """M step of the classes, and of the labelers whose counts have changed."""
    K = counts.log_class.size
    if rules.learned_class:
        total = 0.0
        for k in range(K):
            n = counts.class_kept[k] + counts.class_folded[k] + rules.class_prior[k]
            counts.log_class[k] = max(0.0, n)
            total += counts.log_class[k]
        for k in range(K):
            counts.log_class[k] = math.log(max(TINY, counts.log_class[k] / total))
    for m in range(counts.dirty.size):
        if counts.dirty[m]:
            counts.dirty[m] = False
            _confusion(counts, rules, m)


@kernel
def maximise(counts: Counts, rules: Rules) -> None:
    """The M step."""
    _maximise(counts, rules)


@kernel
def learn(
    window: Window,
    counts: Counts,
    rules: Rules,
    places: Ints,
    sweeps: int,
    labels: int,
    scratch: Floats,
) -> None:
    """Visit the given items, then `sweeps` times as many `labels` of the window, in turn.

    The parameters are renewed after each of these rounds and not within one, so that the order
    of the items in a round is irrelevant.
    """
    for j in range(places.size):
        _visit(window, counts, rules, places[j], scratch)
    _maximise(counts, rules)
    used = window.meta[PLACES]
    for _ in range(sweeps):
        left, looked = labels, 0
        while left > 0 and looked < used:
            i = window.meta[CURSOR] % used
            window.meta[CURSOR] = i + 1
            looked += 1
            if window.length[i] > 0:
                _visit(window, counts, rules, i, scratch)
                left -= window.length[i]
        _maximise(counts, rules)


@kernel
def recount(window: Window, counts: Counts, rules: Rules) -> None:
    """Sum the counts of the window afresh, without the rounding of many small changes."""
    K = counts.log_class.size
    for k in range(K):
        counts.class_kept[k] = 0.0
    for m in range(counts.dirty.size):
        counts.dirty[m] = True
        for x in range(K):
            for k in range(K):
                counts.kept[m, x, k] = 0.0
    for i in range(window.meta[PLACES]):
        for k in range(K):
            counts.class_kept[k] += window.posterior[i, k]
        for e in range(window.first[i], window.first[i] + window.length[i]):
            m, x = window.labeler[e], window.said[e]
            w = _weight(counts, rules, m, window.clock[e])
            for k in range(K):
                counts.kept[m, x, k] += w * window.posterior[i, k]


@kernel
def fold(
    window: Window, counts: Counts, rules: Rules, places: Ints, final: Floats, scratch: Floats
) -> None:
    """Let items go for good: their last posteriors into `final`; their soft counts stay."""
    K = counts.log_class.size
    for j in range(places.size):
        i = places[j]
        _visit(window, counts, rules, i, scratch)
        for k in range(K):
            final[j, k] = window.posterior[i, k]
            counts.class_kept[k] -= final[j, k]
            counts.class_folded[k] += final[j, k]
        for e in range(window.first[i], window.first[i] + window.length[i]):
            m, x = window.labeler[e], window.said[e]
            w = _weight(counts, rules, m, window.clock[e])
            for k in range(K):
                counts.kept[m, x, k] -= w * final[j, k]
                counts.folded[m, x, k] += w * final[j, k]
        release(window, i)


@kernel
def credit(counts: Counts, rules: Rules, labeler: Ints, said: Ints, final: Floats) -> None:
    """Labels for items that have left: they say something of the labeler only."""
    for j in range(labeler.size):
        counts.clock[labeler[j]] += 1
    for j in range(labeler.size):
        _rebase(counts, rules, labeler[j])
    for j in range(labeler.size):
        m, x = labeler[j], said[j]
        w = _weight(counts, rules, m, counts.clock[m])
        for k in range(counts.log_class.size):
            counts.folded[m, x, k] += w * final[j, k]
        counts.dirty[m] = True


@kernel
def beliefs(window: Window, counts: Counts, places: Ints, out: Floats) -> float:
    """Posteriors of items by the present parameters into `out`; returns their log-likelihood."""
    total = 0.0
    for j in range(places.size):
        _odds(window, counts, places[j], out, j)
        total += _normalise(out, j)
    return total


@kernel
def others(
    window: Window,
    counts: Counts,
    places: Ints,
    labeler: Ints,
    said: Ints,
    rest: Floats,
    scratch: Floats,
) -> int:
    """What the other labels of an item say, for each label that was not asked about before.

    Writes labeler, said and the leave-one-out posterior of those labels, and marks them; a
    label that is alone waits for company. Returns how many there are.
    """
    n = 0
    for j in range(places.size):
        i = places[j]
        if window.length[i] < 2:
            continue
        _odds(window, counts, i, scratch, 0)
        for e in range(window.first[i], window.first[i] + window.length[i]):
            if not window.scored[e]:
                window.scored[e] = True
                m, x = window.labeler[e], window.said[e]
                labeler[n], said[n] = m, x
                for k in range(counts.log_class.size):
                    rest[n, k] = scratch[0, k] - counts.log_said[m, x, k]
                _normalise(rest, n)
                n += 1
    return n
