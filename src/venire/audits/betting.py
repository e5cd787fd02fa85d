r"""Upper bounds on an error rate that hold at all times, by betting.

Waudby-Smith and Ramdas, "Estimating means of bounded random variables by betting" (2023). Take
every rate m in turn. A bettor who thinks that the true rate is lower starts with a capital of 1
and bets before each audit; were m the true rate, no bet would be favourable, and by Ville's
inequality the capital would ever reach 1/alpha with probability alpha at most, however long one
looks and whenever one stops. So the rates at which it stays below 1/alpha, all of them seen
together, hold the true rate at all times with probability 1 - alpha: their largest is the bound.

For errors that are 0 or 1 every bet is a ratio of likelihoods: who bets that the rate is q gets
q/m for one on an error and (1-q)/(1-m) on a right verdict. The bettor here spreads its capital
evenly over all q below m, a mixture of constant bets. After S errors and F right verdicts it has

    K(m) = 1/m \int_0^m (q/m)^S ((1-q)/(1-m))^F dq
         = m^(-S-1) (1-m)^(-F) B(m; S+1, F+1)        (the incomplete beta function).

It depends on the counts only, not on their order. With q = um every factor rises with m, so K
does, and the bound is the one root of K(m) = 1/alpha, found by bisection.

Without replacement, from N verdicts of which M are wrong, the next one is wrong with probability
(M - S)/(N - S - F), and the same bettor spreads its capital over the whole numbers below M:

    K(M) = 1/M sum_{Q<M} L(Q) / L(M),   L(M) = M!/(M-S)! (N-M)!/(N-M-F)!.

K is worked out at every M that can be, and the largest M with K(M) < 1/alpha is the bound.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc, betaln, gammaln

from venire.errors import InputError

__all__ = ["check_level", "log_capital", "log_capitals", "upper_count", "upper_rate"]

Floats = NDArray[np.float64]

#: Halvings of [0, 1]: the bound is exact to the last bits of a double.
HALVINGS: Final = 52

#: Rounding may be off by less than this in the logarithm of the capital; it goes to the bound.
SLACK: Final = 1e-6


def log_capital(rate: ArrayLike, wrong: ArrayLike, audited: ArrayLike) -> Floats:
    """The logarithm of the capital against a rate, after a number of audits and the errors in them.

    >>> float(log_capital(0.5, 0, 1))  # 1/0.5 times the integral of (1-q)/0.5 from 0 to 0.5
    0.405465...
    """
    m, S, n = (np.asarray(x, np.float64) for x in (rate, wrong, audited))
    F = n - S
    with np.errstate(divide="ignore"):  # the logarithm of a capital that is all lost
        below = betaln(S + 1, F + 1) + np.log(betainc(S + 1, F + 1, m))
    return np.asarray(below - (S + 1) * np.log(m) - F * np.log1p(-m))


def upper_rate(wrong: ArrayLike, audited: ArrayLike, level: float = 0.95) -> Floats:
    """The upper bound on the rate of errors of a process, for each pair of counts.

    >>> upper_rate([0, 0, 5], [0, 100, 100]).round(4).tolist()
    [1.0, 0.044, 0.1344]
    """
    S, n = np.broadcast_arrays(np.asarray(wrong, np.float64), np.asarray(audited, np.float64))
    low, high = S / np.maximum(n, 1), np.ones(S.shape)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        with np.errstate(invalid="ignore", divide="ignore"):  # a middle that is rounded to 1
            stays = ~(log_capital(middle, S, n) >= _threshold(level))
        low, high = np.where(stays, middle, low), np.where(stays, high, middle)
    return high


def log_capitals(wrong: int, audited: int, size: int, power: float = 0.0) -> Floats:
    """The logarithm of the capital against each M from `wrong` to the most that can be.

    The bettor's share on each Q is in proportion to 1 / (Q + 1/2) ** power.

    >>> log_capitals(1, 2, 4).round(3).tolist()  # of 4 verdicts 1, 2 or 3 are wrong
    [-inf, -0.981, -0.251]
    """
    right = audited - wrong
    M = np.arange(wrong, size - right + 1, dtype=np.float64)
    fits = gammaln(M + 1) - gammaln(M - wrong + 1)
    fits += gammaln(size - M + 1) - gammaln(size - M - right + 1)
    share = (np.arange(M[-1] + 1) + 0.5) ** -power
    whole = np.concatenate([[1.0], share.cumsum()[:-1]])[wrong:]
    own = share[wrong:] * np.exp(fits - fits.max())
    with np.errstate(divide="ignore"):  # none below the first, and M = 0
        below = np.log(np.concatenate([[0.0], own.cumsum()[:-1]]))
        return np.asarray(below + fits.max() - fits - np.log(whole))


def upper_count(
    wrong: int, audited: int, size: int, level: float = 0.95, power: float = 0.0
) -> int:
    """The upper bound on how many of `size` verdicts are wrong, by audits without replacement.

    >>> upper_count(5, 100, 1000), upper_count(5, 100, 100), upper_count(0, 0, 7)
    (129, 5, 7)
    """
    stays = log_capitals(wrong, audited, size, power) < _threshold(level)
    return wrong + int(stays.nonzero()[0][-1])


def check_level(level: float) -> None:
    """Complain about a level that is none.

    >>> check_level(95)
    Traceback (most recent call last):
    venire.errors.InputError: got the level 95, expected more than 0 and less than 1: 0.95 ...
    """
    if not 0 < level < 1:
        raise InputError(
            f"got the level {level:g}, expected more than 0 and less than 1: 0.95 for 95 %"
        )


def _threshold(level: float) -> float:
    return float(-np.log1p(-level)) + SLACK
