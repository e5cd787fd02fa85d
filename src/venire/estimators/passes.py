"""The compiled loops of EM: one fused pass over the items.

**Layout.** A pass reads `code`, one narrow integer per label: labeler * K + said. The items of a
block are arranged by their number of labels, so that inner loops have the same length for long
(the processor then predicts their ends): `lengths[n]` is how many items have n labels, and
`order` says which item of the block each one is.

**Logarithms.** Scores are sums of logarithms, as products of many probabilities would vanish.
But no probability is below 1e-10, so the products of up to `SHORT` labels are safe: such items,
most of them as a rule, are multiplied out, which saves the exponentials. The log-likelihood is a
sum of logarithms of norms: norms are multiplied, and the logarithm is taken now and then.

The compiled loop of Gibbs sampling: draw the class of each item, count the labels. Exponentials of
many scores at once, and the logarithm of what they add up to.

The compiled loops of aggregation: votes, soft counts, and what errors have in common.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from venire.labels import Codes
from venire.tools import arrays
from venire.tools.arrays import GOLDEN, Floats, Ints
from venire.tools.compiling import inlined, threaded

#: Items whose sigmoids are taken together.
CHUNK: Final = 512

_LOG2E: Final = 1.4426950408889634
_LN2_HIGH: Final = 6.93147180369123816490e-01
_LN2_LOW: Final = 1.90821492927058770002e-10
_LN2: Final = 0.6931471805599453
#: Adding 1.5 * 2**52 rounds to a whole number, which then stands in the lowest bits.
_ROUND: Final = 6755399441055744.0


@threaded(fastmath={"contract"})
def sigmoids(x: Floats, grown: Floats, bits: Ints, power: Floats, size: int) -> float:
    """Replace x by 1 / (1 + exp(-x)); returns the sum of log(1 + exp(x)).

    exp(-abs(x)) = 2**k exp(r) by the power series of exp(r) to order 12, good to the last bits;
    `power` is a view of `bits`. Written so that the compiler can do several at a time.
    """
    for j in range(size):
        a = max(-abs(x[j]), -700.0)
        k = a * _LOG2E + _ROUND
        power[j] = k
        k -= _ROUND
        r = (a - k * _LN2_HIGH) - k * _LN2_LOW
        p = 1 / 479001600
        p = p * r + 1 / 39916800
        p = p * r + 1 / 3628800
        p = p * r + 1 / 362880
        p = p * r + 1 / 40320
        p = p * r + 1 / 5040
        p = p * r + 1 / 720
        p = p * r + 1 / 120
        p = p * r + 1 / 24
        p = p * r + 1 / 6
        p = p * r + 0.5
        p = p * r + 1.0
        grown[j] = p * r + 1.0
    for j in range(size):
        bits[j] = (bits[j] + 1023) << 52
    for j in range(size):
        small = grown[j] * power[j]
        grown[j] = 1.0 + small
        power[j] = max(x[j], 0.0)
        x[j] = (1.0 if x[j] >= 0.0 else small) / (1.0 + small)
    p0 = p1 = p2 = p3 = 1.0
    s0 = s1 = s2 = s3 = 0.0
    for j in range(0, size - 3, 4):
        p0 *= grown[j]
        p1 *= grown[j + 1]
        p2 *= grown[j + 2]
        p3 *= grown[j + 3]
        s0 += power[j]
        s1 += power[j + 1]
        s2 += power[j + 2]
        s3 += power[j + 3]
    for j in range(size - size % 4, size):
        p0 *= grown[j]
        s0 += power[j]
    return (s0 + s1) + (s2 + s3) + (math.log(p0) + math.log(p1)) + (math.log(p2) + math.log(p3))


@threaded()
def odds_shares(x: Floats, bits: Ints, grown: Floats, size: int) -> float:
    """Replace x by x / (1 + x); returns the sum of log(1 + x).

    The exponents of 1 + x are added up, their mantissas multiplied; `grown` is a view of `bits`.
    """
    for j in range(size):
        grown[j] = 1.0 + x[j]
        x[j] /= grown[j]
    exponents = 0
    for j in range(size):
        exponents += (bits[j] >> 52) - 1023
        bits[j] = (bits[j] & 0x000FFFFFFFFFFFFF) | 0x3FF0000000000000
    p0 = p1 = p2 = p3 = 1.0
    for j in range(0, size - 3, 4):
        p0 *= grown[j]
        p1 *= grown[j + 1]
        p2 *= grown[j + 2]
        p3 *= grown[j + 3]
    for j in range(size - size % 4, size):
        p0 *= grown[j]
    return exponents * _LN2 + (math.log(p0) + math.log(p1)) + (math.log(p2) + math.log(p3))


#: Items with at most this many labels use products instead of logarithms.
SHORT: Final = 16


@threaded()
def arrange(
    start: Ints, labeler: Codes, said: Codes, classes: int, code: Codes, order: Codes
) -> Ints:
    """Fill `code` and `order` for a block, and return `lengths`: see the layout above."""
    items = start.size - 1
    longest = 0
    for i in range(items):
        longest = max(longest, start[i + 1] - start[i])
    lengths = np.zeros(longest + 1, dtype=np.int64)
    for i in range(items):
        lengths[start[i + 1] - start[i]] += 1
    place, entry = np.zeros_like(lengths), np.zeros_like(lengths)
    for n in range(longest):
        place[n + 1] = place[n] + lengths[n]
        entry[n + 1] = entry[n] + n * lengths[n]
    for i in range(items):
        n = start[i + 1] - start[i]
        order[place[n]] = i
        place[n] += 1
        to = entry[n]
        for e in range(start[i], start[i + 1]):
            code[to] = labeler[e] * classes + said[e]
            to += 1
        entry[n] = to
    return lengths


@threaded()
def pair_pass(
    lengths: Ints,
    code: Codes,
    order: Codes,
    weight: Floats,
    ratio: Floats,
    log_odds: float,
    sums: Floats,
    posteriors: Floats,
) -> float:
    """One fused pass with two classes: E step, soft counts for the M step, log-likelihood.

    `weight[code]` is log P(said | second class) - log P(said | first class) of a labeler,
    `ratio` its exponential, and `log_odds` is that of the class prior. `sums[code]` receives
    the expected number of such labels on items of the second class, the last of `sums` the
    expected number of such items; `posteriors` the posteriors, unless it is empty. Returns the
    sum over the items of log(1 + odds); what is missing to the log-likelihood does not depend
    on the items.
    """
    x, grown, bits = np.empty(CHUNK), np.empty(CHUNK), np.empty(CHUNK, dtype=np.int64)
    power = bits.view(np.float64)
    odds = math.exp(log_odds)
    total = second = 0.0
    e = np.uint64(0)
    place = lengths[0]
    for n in range(1, lengths.size):
        step = np.uint64(n)
        for first in range(0, lengths[n], CHUNK):
            size = min(CHUNK, lengths[n] - first)
            begin = e
            if n <= SHORT:
                for j in range(size):
                    product = odds
                    for f in range(e, e + step):
                        product *= ratio[np.uint64(code[f])]
                    x[j] = product
                    e += step
                total += odds_shares(x, bits, power, size)
            else:
                for j in range(size):
                    score = log_odds
                    for f in range(e, e + step):
                        score += weight[np.uint64(code[f])]
                    x[j] = score
                    e += step
                total += sigmoids(x, grown, bits, power, size)
            e = begin
            for j in range(size):
                q = x[j]
                second += q
                for f in range(e, e + step):
                    sums[np.uint64(code[f])] += q
                e += step
            if posteriors.shape[0]:
                for j in range(size):
                    i = order[place + j]
                    posteriors[i, 0], posteriors[i, 1] = 1.0 - x[j], x[j]
            place += size
    sums[sums.size - 1] += second
    return total


@threaded()
def one_coin_pass(
    lengths: Ints,
    code: Codes,
    order: Codes,
    weight: Floats,
    ratio: Floats,
    said_of: Codes,
    priors: Floats,
    sums: Floats,
    posteriors: Floats,
) -> float:
    """One fused pass with one competence per labeler, any number of classes.

    `weight[code]` is log((K - 1) p / (1 - p)) of the labeler, `ratio` its exponential,
    `said_of[code]` the class it said. Only the classes that were said of an item are touched:
    the others share what is left. `sums[code]` receives the expected number of right labels,
    the last K of `sums` the expected number of items of each class. Returns the log-likelihood
    less the sum over the labels of log((1 - p) / (K - 1)).
    """
    K = priors.size
    score, said, seen = np.zeros(K), np.zeros(K, dtype=np.int64), np.zeros(K, dtype=np.bool_)
    total, product, unsaid = 0.0, 1.0, 0.0
    items = sums[sums.size - K :]
    e = np.uint64(0)
    place = lengths[0]
    for n in range(1, lengths.size):
        step = np.uint64(n)
        for _ in range(lengths[n]):
            many = 0
            for f in range(e, e + step):
                c = np.uint64(code[f])
                k = np.uint64(said_of[c])
                if not seen[k]:
                    seen[k] = True
                    score[k] = priors[k] if n <= SHORT else 0.0
                    said[many] = k
                    many += 1
                if n <= SHORT:
                    score[k] *= ratio[c]
                else:
                    score[k] += weight[c]
            rest = 1.0
            if n > SHORT:
                top = 0.0 if many < K else score[said[0]]
                for j in range(many):
                    top = max(top, score[said[j]])
                for j in range(many):
                    score[said[j]] = priors[said[j]] * math.exp(score[said[j]] - top)
                rest = math.exp(-top)
                total += top
            left, norm = 1.0, 0.0
            for j in range(many):
                seen[said[j]] = False
                left -= priors[said[j]]
                norm += score[said[j]]
            if many < K:
                norm += max(left, 0.0) * rest
            product *= norm
            if product < 1e-100 or product > 1e100:
                total += math.log(product)
                product = 1.0
            rest = rest / norm if many < K else 0.0
            unsaid += rest
            for j in range(many):
                score[said[j]] /= norm
                items[said[j]] += score[said[j]] - priors[said[j]] * rest
            for f in range(e, e + step):
                c = np.uint64(code[f])
                sums[c] += score[np.uint64(said_of[c])]
            e += step
            if posteriors.shape[0]:
                row = posteriors[order[place]]
                for j in range(K):
                    row[j] = priors[j] * rest
                for j in range(many):
                    row[said[j]] = score[said[j]]
            place += 1
    for j in range(K):
        items[j] += priors[j] * unsaid
    return total + math.log(product)


@threaded()
def full_pass(
    lengths: Ints,
    code: Codes,
    order: Codes,
    log_said: Floats,
    said: Floats,
    log_prior: Floats,
    sums: Floats,
    posteriors: Floats,
) -> float:
    """One fused pass with full confusion matrices, any number of classes.

    `said[code, truth]` are the confusion matrices, `log_said` their logarithms, `log_prior`
    that of the class prior. `sums` receives the soft counts: first those of the items of the K
    classes, then those of the labels, [code, truth]. Returns the log-likelihood.
    """
    K = log_prior.size
    counts = sums[K:].reshape((-1, K))
    odds, prior = np.empty(K), np.exp(log_prior)
    total, product = 0.0, 1.0
    e = np.uint64(0)
    place = lengths[0]
    for n in range(1, lengths.size):
        step = np.uint64(n)
        for _ in range(lengths[n]):
            if n <= SHORT:
                for k in range(K):
                    odds[k] = prior[k]
                for f in range(e, e + step):
                    c = np.uint64(code[f])
                    for k in range(K):
                        odds[k] *= said[c, k]
            else:
                for k in range(K):
                    odds[k] = log_prior[k]
                for f in range(e, e + step):
                    c = np.uint64(code[f])
                    for k in range(K):
                        odds[k] += log_said[c, k]
                top = odds[0]
                for k in range(1, K):
                    top = max(top, odds[k])
                for k in range(K):
                    odds[k] = math.exp(odds[k] - top)
                total += top
            norm = 0.0
            for k in range(K):
                norm += odds[k]
            product *= norm
            if product < 1e-100 or product > 1e100:
                total += math.log(product)
                product = 1.0
            for k in range(K):
                odds[k] /= norm
                sums[k] += odds[k]
            for f in range(e, e + step):
                c = np.uint64(code[f])
                for k in range(K):
                    counts[c, k] += odds[k]
            e += step
            if posteriors.shape[0]:
                row = posteriors[order[place]]
                for k in range(K):
                    row[k] = odds[k]
            place += 1
    return total + math.log(product)


@threaded()
def share_pass(
    lengths: Ints,
    code: Codes,
    order: Codes,
    said_of: Codes,
    classes: int,
    sums: Floats,
    posteriors: Floats,
) -> float:
    """Soft counts with the votes' shares for posteriors, laid out as in `full_pass`.

    `said_of[code]` is the class that was said.
    """
    counts = sums[classes:].reshape((-1, classes))
    votes = np.empty(classes)
    e = np.uint64(0)
    place = lengths[0]
    for n in range(1, lengths.size):
        step = np.uint64(n)
        for _ in range(lengths[n]):
            for k in range(classes):
                votes[k] = 0.0
            for f in range(e, e + step):
                votes[said_of[np.uint64(code[f])]] += 1.0
            for k in range(classes):
                votes[k] /= n
                sums[k] += votes[k]
            for f in range(e, e + step):
                c = np.uint64(code[f])
                for k in range(classes):
                    counts[c, k] += votes[k]
            e += step
            if posteriors.shape[0]:
                row = posteriors[order[place]]
                for k in range(classes):
                    row[k] = votes[k]
            place += 1
    return 0.0


@threaded()
def weigh_pass(
    lengths: Ints, code: Codes, order: Codes, classes: int, sums: Floats, posteriors: Floats
) -> float:
    """Soft counts with given posteriors, laid out as in `full_pass`."""
    counts = sums[classes:].reshape((-1, classes))
    e = 0
    place = lengths[0]
    for n in range(1, lengths.size):
        for _ in range(lengths[n]):
            row = posteriors[order[place]]
            for k in range(classes):
                sums[k] += row[k]
            for f in range(e, e + n):
                for k in range(classes):
                    counts[code[f], k] += row[k]
            e += n
            place += 1
    return 0.0


@threaded()
def count_pass(lengths: Ints, code: Codes, order: Codes, sums: Floats, posteriors: Floats) -> float:
    """How many labels have each code; returns the number of items that have labels."""
    for e in range(code.size):
        sums[code[e]] += 1.0
    return float(order.size - lengths[0])


mix = inlined(arrays.mix)


@threaded()
def draw_pass(
    lengths: Ints,
    code: Codes,
    order: Codes,
    log_said: Floats,
    said: Floats,
    log_prior: Floats,
    seed: np.uint64,
    block: int,
    sums: Floats,
    posteriors: Floats,
) -> float:
    """As `full_pass`, but the class of each item is drawn from its posterior, and counted whole.

    The random numbers belong to the seed and the block, so threads do not matter.
    """
    K = log_prior.size
    counts = sums[K:].reshape((-1, K))
    odds, prior = np.empty(K), np.exp(log_prior)
    state = mix(seed + np.uint64(block) * GOLDEN)
    e = np.uint64(0)
    for n in range(1, lengths.size):
        step = np.uint64(n)
        for _ in range(lengths[n]):
            if n <= SHORT:
                for k in range(K):
                    odds[k] = prior[k]
                for f in range(e, e + step):
                    for k in range(K):
                        odds[k] *= said[np.uint64(code[f]), k]
            else:
                for k in range(K):
                    odds[k] = log_prior[k]
                for f in range(e, e + step):
                    for k in range(K):
                        odds[k] += log_said[np.uint64(code[f]), k]
                top = odds[0]
                for k in range(1, K):
                    top = max(top, odds[k])
                for k in range(K):
                    odds[k] = math.exp(odds[k] - top)
            for k in range(1, K):
                odds[k] += odds[k - 1]
            state += GOLDEN
            u = float(mix(state) >> np.uint64(11)) * 2.0**-53 * odds[K - 1]
            drawn = 0
            while drawn < K - 1 and odds[drawn] <= u:
                drawn += 1
            sums[drawn] += 1.0
            for f in range(e, e + step):
                counts[np.uint64(code[f]), drawn] += 1.0
            e += step
    return 0.0


@threaded()
def vote_pass(start: Ints, labeler: Codes, said: Codes, weight: Floats, shares: Floats) -> None:
    """The share of the weighted votes of each class, items x K.

    Where no labeler with a weight has voted, the votes count the same; without any label every
    class has the same share.
    """
    classes = shares.shape[1]
    for i in range(start.size - 1):
        total = 0.0
        shares[i, :] = 0.0
        for e in range(start[i], start[i + 1]):
            shares[i, said[e]] += weight[labeler[e]]
            total += weight[labeler[e]]
        if total <= 0.0:
            shares[i, :] = 0.0
            for e in range(start[i], start[i + 1]):
                shares[i, said[e]] += 1.0
            total = float(start[i + 1] - start[i])
        for k in range(classes):
            shares[i, k] = shares[i, k] / total if total > 0.0 else 1.0 / classes


@threaded()
def agreement_pass(
    start: Ints, labeler: Codes, said: Codes, shares: Floats, tie: float, agreed: Floats
) -> None:
    """How often each labeler said what has the largest share; 1/t where t classes have it."""
    classes = shares.shape[1]
    agreed[:] = 0.0
    for i in range(start.size - 1):
        top = shares[i, 0]
        for k in range(1, classes):
            top = max(top, shares[i, k])
        tied = 0
        for k in range(classes):
            if shares[i, k] >= top - tie:
                tied += 1
        for e in range(start[i], start[i + 1]):
            if shares[i, said[e]] >= top - tie:
                agreed[labeler[e]] += 1.0 / tied


@threaded()
def count_labels(
    start: Ints, labeler: Codes, said: Codes, posteriors: Floats, counts: Floats
) -> None:
    """Soft counts, labelers x K (truth) x K (said): labels weighted by the posteriors."""
    counts[:] = 0.0
    for i in range(start.size - 1):
        for e in range(start[i], start[i + 1]):
            for k in range(posteriors.shape[1]):
                counts[labeler[e], k, said[e]] += posteriors[i, k]


@threaded()
def dependence_pass(
    start: Ints, labeler: Codes, said: Codes, posteriors: Floats, confusions: Floats
) -> tuple[float, float]:
    """Products of the residuals of all pairs of labels of an item, and their largest values.

    The residual of a label, given class k, is the indicator of what was said less row k of the
    labeler's confusion matrix; a pair's product is the inner product of two of them.
    """
    classes = posteriors.shape[1]
    total = np.zeros(classes)
    products = 0.0
    scale = 0.0
    for i in range(start.size - 1):
        if start[i + 1] - start[i] < 2:
            continue
        for k in range(classes):
            q = posteriors[i, k]
            if q < 1e-9:
                continue
            total[:] = 0.0
            own = 0.0
            spread = 0.0
            spread_own = 0.0
            for e in range(start[i], start[i + 1]):
                row = confusions[labeler[e], k]
                square = 0.0
                for s in range(classes):
                    r = (1.0 if said[e] == s else 0.0) - row[s]
                    total[s] += r
                    own += r * r
                    square += row[s] * row[s]
                v = max(1.0 - square, 0.0)
                spread += math.sqrt(v)
                spread_own += v
            both = 0.0
            for s in range(classes):
                both += total[s] * total[s]
            products += q * (both - own)
            scale += q * (spread * spread - spread_own)
    return products, scale
