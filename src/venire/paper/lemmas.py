r"""What the paper proves about learning competences, as functions (sections 3.2, 6.2 and 6.3).

Lemma 13: after T_L slots in which everybody labels one item, and with probability at
least 1 - delta, no competence is further off than `error_bound`, provided T_L is as long and
the panel as large as the lemma wants. Lemma 14 turns that into a bound on the evidence,
Lemma 11 says how small an error leaves every decision of Algorithm 1 as it was. It is false for the
paper's Delta (`delta_gap`) and true for `decision_gap`; and together with Lemma 13 it does not give
the learning phase of order log T that the main theorem wants (docs/errata.md, 10 and 11).

The lemma's conditions are orders of magnitude (Omega); `constant` stands for the number that
the proof does not give, and is 1 unless told otherwise. They read the panel's true
competences, so they answer "how long, if my panel were like this one?".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from venire.errors import InputError
from venire.paper.accuracy import evidence
from venire.tools.arrays import Floats

#: The largest panel for `delta_gap`, which enumerates all subsets.
MAX_LABELERS: Final = 14

#: Values closer than this share of the largest are one value up to rounding.
_TIE: Final = 1e-13


def kappa(competences: ArrayLike, classes: int = 2) -> Floats:
    """How far each labeler is from chance, abs(p - 1/K), largest first: kappa_1, kappa_2, ...

    >>> kappa([0.6, 0.9, 0.2]).round(3).tolist()
    [0.4, 0.3, 0.1]
    """
    return np.sort(np.abs(_panel(competences, classes) - 1 / classes))[::-1]


def kappa_bar(competences: ArrayLike, classes: int = 2) -> float:
    """How far the panel is above chance on average: the mean of p - 1/K.

    >>> round(kappa_bar([0.6, 0.9, 0.3]), 3)
    0.1
    """
    return float((_panel(competences, classes) - 1 / classes).mean())


def d_bar(competences: ArrayLike, classes: int = 2) -> float:
    r"""How well the panel tells two classes apart: D-bar, the smallest mean KL divergence.

    D-bar is the minimum over pairs of classes of the mean over labelers of KL(P_m,k, P_m,k').
    In the one-coin model it is the same for all pairs, with q = (1 - p) / (K - 1):

        D-bar = mean of (p - q) log(p / q),

    twice the mean evidence of a labeler.

    >>> round(d_bar([0.8, 0.6, 0.7]), 4)
    0.4173
    """
    p = _panel(competences, classes)
    q = (1 - p) / (classes - 1)
    return float(((p - q) * np.log(p / q)).mean())


def error_bound(slots: int, labelers: int, classes: int = 2, delta: float = 0.05) -> float:
    r"""How far off a competence may be after `slots` learning slots (Lemma 13).

        2 sqrt( log(M K / delta) / T_L ),  with probability at least 1 - delta

    >>> round(error_bound(1250, labelers=30), 4)
    0.1506
    """
    _check(delta=delta)
    if slots < 1 or labelers < 1:
        raise InputError(f"got {slots} slots and {labelers} labelers, expected at least 1 of each")
    return 2 * math.sqrt(math.log(labelers * classes / delta) / slots)


def slots_for_bound(labelers: int, epsilon: float, delta: float = 0.05, classes: int = 2) -> int:
    """The T_L at which `error_bound` is at most epsilon: 4 log(M K / delta) / epsilon**2.

    >>> slots_for_bound(30, epsilon=0.1)
    2837
    """
    _check(epsilon=epsilon, delta=delta)
    return _whole_slots(4 * math.log(labelers * classes / delta), epsilon**2)


def slots_for_lemma(
    competences: ArrayLike,
    delta: float = 0.05,
    classes: int = 2,
    alpha: float | None = None,
    constant: float = 1.0,
) -> int:
    r"""The T_L from which on Lemma 13 holds at all.

        constant * log(M K / delta) / ( kappa_3**6 min(kappa_bar**2 alpha**2, (alpha D-bar)**2) )

    `alpha` is a number below all competences, by default the smallest of them, which is what
    the paper's lemma says. (The lemma of Zhang, Chen, Zhou and Jordan that it quotes wants
    alpha below *all entries* of the confusion matrices, so also below (1 - p) / (K - 1):
    give that alpha for the stricter reading.)

    >>> slots_for_lemma([0.9, 0.85, 0.8, 0.75])
    117175
    """
    p = _learnable(competences, classes)
    alpha = _alpha(p, alpha)
    k3 = float(kappa(p, classes)[2])
    size = k3**6 * alpha**2 * min(kappa_bar(p, classes), d_bar(p, classes)) ** 2
    _check(delta=delta)
    return _whole_slots(constant * math.log(p.size * classes / delta), size)


def learning_slots(
    competences: ArrayLike,
    epsilon: float,
    delta: float = 0.05,
    classes: int = 2,
    alpha: float | None = None,
    constant: float = 1.0,
) -> int:
    """The T_L that the theory requires: f(epsilon, delta) after Lemma 13.

    The longer of `slots_for_bound` (so that the bound is epsilon) and `slots_for_lemma` (so
    that the lemma holds).

    >>> learning_slots([0.9, 0.85, 0.8, 0.75], epsilon=0.1)
    117175
    >>> learning_slots([0.9, 0.85, 0.8, 0.75], epsilon=0.01)
    203007
    """
    p = _learnable(competences, classes)
    return max(
        slots_for_bound(p.size, epsilon, delta, classes),
        slots_for_lemma(p, delta, classes, alpha, constant),
    )


def labelers_needed(
    slots: int,
    competences: ArrayLike,
    delta: float = 0.05,
    classes: int = 2,
    alpha: float | None = None,
    constant: float = 1.0,
) -> int:
    r"""How many labelers like these Lemma 13 wants for a learning phase of `slots`.

        constant * log(1 / alpha) log( T_L K / delta + log(T_L K) ) / D-bar

    as printed (in the source the inner logarithm stands outside: it hardly matters).

    >>> labelers_needed(1000, [0.9, 0.85, 0.8, 0.75])
    3
    """
    p = _learnable(competences, classes)
    _check(delta=delta)
    if slots < 1:
        raise InputError(f"got {slots} slots, expected at least 1")
    inner = slots * classes / delta + math.log(slots * classes)
    return math.ceil(constant * -math.log(_alpha(p, alpha)) * math.log(inner) / d_bar(p, classes))


def lipschitz(rho: float, classes: int = 2) -> float:
    r"""How fast evidence grows with competence, at most, up to 1 - rho (Lemma 14).

        log((1 - rho) / rho) + (1/rho - 1/(1 - rho)) / 2                (K = 2)

    It is the derivative of the evidence at 1 - rho: evidence is convex in p, also for any K.
    An error of epsilon in a competence is at most `lipschitz(rho) * epsilon` in evidence, as
    long as the learned competence too is kept within [1/K, 1 - rho].

    >>> round(lipschitz(0.1), 4)
    6.6417
    """
    if not 0 < rho <= 1 - 1 / classes:
        raise InputError(f"got rho={rho!r}, expected a number above 0 and at most 1 - 1/K")
    p, q = 1 - rho, rho / (classes - 1)
    return classes / (classes - 1) / 2 * math.log(p / q) + (p - q) / (2 * p * rho)


def learning_slots_for_evidence(
    competences: ArrayLike,
    epsilon: float,
    delta: float = 0.05,
    classes: int = 2,
    rho: float | None = None,
    alpha: float | None = None,
    constant: float = 1.0,
) -> int:
    """The T_L after which no labeler's *evidence* is off by more than epsilon (Lemma 14).

    `learning_slots` for epsilon divided by the Lipschitz factor; `rho` is by default as small
    as the best labeler makes it, 1 - max p.

    >>> learning_slots_for_evidence([0.9, 0.85, 0.8, 0.75], epsilon=0.1)
    117175
    """
    p = _learnable(competences, classes)
    factor = lipschitz(1 - float(p.max()) if rho is None else rho, classes)
    return learning_slots(p, epsilon / factor, delta, classes, alpha, constant)


def delta_gap(
    weights: ArrayLike, competences: ArrayLike, max_delay: int, classes: int = 2
) -> float:
    r"""Delta: the smallest gap between the gains of two items that contend for a labeler.

    By enumeration, for a small instance. An item that labeler m may still label is worth

        v = w exp(-E_V) (1 - exp(-evidence_m)) - d

    for a weight w, a set V of labelers without m and a delay d of 0, 1, ..., `max_delay`.
    Delta is the smallest *positive* difference between two such values of the same labeler.
    Exact ties do not count: interchangeable items (equal in w, E_V and d, as after labels of
    equally good labelers) may swap places without a change in utility, and with them the
    paper's Delta would always be 0. Infinite if no two items can differ. It says nothing of
    whether a gain is positive, nor of who goes first: for that see `decision_gap`.

    >>> round(delta_gap([3, 4], [0.8, 0.7], max_delay=2), 6)
    0.05627
    """
    w, e = _enumerable(weights, competences, max_delay, classes)
    return min(_gap(worth, max_delay) for worth in _worths(w, e))


def decision_gap(
    weights: ArrayLike, competences: ArrayLike, max_delay: int, classes: int = 2
) -> float:
    r"""The Delta with which Lemma 11 holds: how near Algorithm 1 is to deciding otherwise.

    The smallest of three numbers (docs/errata.md, 10):

    - `delta_gap`, which keeps the order of two items that contend for a labeler;
    - the smallest distance from zero of a gain after a delay of a slot or more: whether a label
      is worth it, and when an item leaves;
    - the largest weight times the smallest difference between two labelers' evidences, or of
      one from none: who goes first, and who goes at all.

    An evidence that is off by x moves a gain by at most w x for every labeler of the panel, so
    an error of `required_evidence_error` of this gap moves no gain by more than a twelfth of it.
    Exact ties of items or of labelers do not count, as in `delta_gap`; a gain of exactly zero
    does, and then the gap is 0: no error is small enough.

    >>> round(decision_gap([3, 4], [0.8, 0.7], max_delay=2), 6)
    0.020738
    >>> close = [2.1975, 12], [0.85, 0.7], 2  # the better labeler, a slot late, gains 0.00003
    >>> round(delta_gap(*close), 6), round(decision_gap(*close), 6)
    (0.148756, 3.1e-05)
    """
    w, e = _enumerable(weights, competences, max_delay, classes)
    worths = _worths(w, e)
    items = min(_gap(worth, max_delay) for worth in worths)
    gains = min(float(np.abs(worth - np.rint(worth).clip(1.0)).min()) for worth in worths)
    apart = np.diff(np.sort(np.append(e, 0.0)))
    order = float(w[-1] * apart[apart > _TIE].min(initial=math.inf))
    return min(items, gains, order)


def _enumerable(
    weights: ArrayLike, competences: ArrayLike, max_delay: int, classes: int
) -> tuple[Floats, Floats]:
    """The distinct weights, and the evidence of each labeler, of a small instance."""
    p = _panel(competences, classes)
    if p.size > MAX_LABELERS:
        raise InputError(
            f"got {p.size} labelers, expected at most {MAX_LABELERS}: Delta looks at every "
            "subset of the panel"
        )
    w = np.unique(np.asarray(weights, dtype=np.float64))
    if not w.size or not (np.isfinite(w) & (w > 0)).all():
        raise InputError("got weights that are not all finite and above 0")
    if max_delay < 0:
        raise InputError(f"got max_delay={max_delay!r}, expected 0 or more")
    return w, evidence(p, classes)


def _worths(w: Floats, e: Floats) -> list[Floats]:
    """For each labeler, what its label may add to an item's accuracy, times the weight."""
    found = []
    for m, mine in enumerate(e.tolist()):
        totals = np.zeros(1)
        for other in np.delete(e, m):
            totals = np.unique(np.concatenate([totals, totals + other]))
        found.append(np.unique(np.outer(w, np.exp(-totals)) * -math.expm1(-mine)))
    return found


def _gap(worth: Floats, max_delay: int) -> float:
    """The smallest positive difference of two values of one labeler."""
    values = np.sort(np.subtract.outer(worth, np.arange(max_delay + 1)), axis=None)
    steps = np.diff(values)
    steps = steps[steps > _TIE * (worth[-1] + max_delay)]
    return float(steps.min(initial=math.inf))


def required_evidence_error(delta_gap: float, w_max: float, labelers: int) -> float:
    """The error in evidence that Lemma 11 allows: Delta / (6 w_max 2**M).

    Of `decision_gap` it changes no decision of Algorithm 1; of the paper's Delta, `delta_gap`,
    it may (docs/errata.md, 10).

    >>> required_evidence_error(0.06, w_max=10, labelers=2)
    0.00025
    """
    return delta_gap / (6 * w_max * 2.0**labelers)


def _panel(competences: ArrayLike, classes: int) -> Floats:
    p = np.asarray(competences, dtype=np.float64)
    if classes < 2:
        raise InputError(f"got {classes} classes, expected at least 2")
    if p.ndim != 1 or not p.size or not ((p > 0) & (p < 1)).all():
        raise InputError("expected a list of competences, each strictly between 0 and 1")
    return p


def _learnable(competences: ArrayLike, classes: int) -> Floats:
    """Validate a panel to which the lemma applies."""
    p = _panel(competences, classes)
    if p.size < 3:
        raise InputError(
            f"got {p.size} labelers, expected at least 3: without truth, two labelers cannot "
            "be told apart"
        )
    if kappa_bar(p, classes) <= 0 or kappa(p, classes)[2] == 0:
        raise InputError(
            f"the panel has mean competence {p.mean():.3f}, expected it above chance "
            f"({1 / classes:.3f}) with at least three labelers away from chance"
        )
    return p


def _whole_slots(work: float, speed: float) -> int:
    """How many slots it takes."""
    slots = work / speed if speed > 0 else math.inf
    if not math.isfinite(slots):
        raise InputError(
            "the theory wants more slots than can be counted: ask for a larger epsilon, or leave "
            "out labelers whose competence is next to 0 or to chance"
        )
    return math.ceil(slots)


def _alpha(p: Floats, alpha: float | None) -> float:
    if alpha is None:
        return float(p.min())
    if not 0 < alpha <= p.min():
        raise InputError(
            f"got alpha={alpha!r}, expected it above 0 and at most the smallest competence"
        )
    return alpha


def _check(**shares: float) -> None:
    for name, value in shares.items():
        if not (math.isfinite(value) and value > 0) or (name == "delta" and value >= 1):
            limit = "strictly between 0 and 1" if name == "delta" else "above 0"
            raise InputError(f"got {name}={value!r}, expected a number {limit}")


@dataclass(frozen=True, slots=True)
class Plan:
    """What Lemmas 13, 14 and 11 say of one panel; made by `plan`."""

    labelers: int
    classes: int
    epsilon: float
    delta: float
    alpha: float
    rho: float
    constant: float
    kappa: tuple[float, ...]
    kappa_bar: float
    d_bar: float
    slots_for_bound: int
    slots_for_lemma: int
    learning_slots: int
    error_bound: float
    labelers_needed: int
    lipschitz: float
    evidence_slots: int
    delta_gap: float | None = None
    decision_gap: float | None = None
    evidence_error: float | None = None
    same_decisions_slots: int | None = None

    @property
    def kappa_3(self) -> float:
        """How far the third best labeler is from chance."""
        return self.kappa[2]

    @property
    def large_enough(self) -> bool:
        """Whether the panel is as large as the lemma requires."""
        return self.labelers >= self.labelers_needed

    def describe(self) -> list[str]:
        """Say it in words, one sentence a line."""
        return [
            *self._panel_lines(),
            *self._length_lines(),
            *self._evidence_lines(),
            "The lemmas give orders of magnitude and worst cases (their unnamed constant is "
            f"taken as {self.constant:g}): in practice far shorter phases serve well. Compare "
            "several with `venire simulate --learning algorithm-2:N`.",
        ]

    def _panel_lines(self) -> list[str]:
        return [
            f"{self.labelers} labelers, {self.classes} classes. Wanted: every competence within "
            f"{self.epsilon:g} of the truth, with probability at least {1 - self.delta:g}.",
            f"kappa_3 = {self.kappa_3:.4g}: so far from chance is the third most informative "
            "labeler. Learning without truth rests on three who inform; it enters to the 6th "
            "power, so a panel with two good labelers is slow to learn.",
            f"kappa-bar = {self.kappa_bar:.4g}: so far above chance is the panel on average; it "
            "tells right from upside down.",
            f"D-bar = {self.d_bar:.4g}: how well an average labeler tells two classes apart "
            "(in nats; twice the mean evidence).",
        ]

    def _length_lines(self) -> list[str]:
        enough = "is large enough" if self.large_enough else "is too small for the lemma"
        return [
            f"Learning phase: {self.learning_slots:,} slots. The error bound alone wants "
            f"{self.slots_for_bound:,}; the lemma holds from {self.slots_for_lemma:,} on "
            f"(alpha = {self.alpha:.4g}).",
            f"After {self.learning_slots:,} slots no competence is off by more than "
            f"{self.error_bound:.4g}, with probability at least {1 - self.delta:g}.",
            f"For a phase of that length the lemma wants {self.labelers_needed:,} labelers like "
            f"these: a panel of {self.labelers} {enough}.",
        ]

    def _evidence_lines(self) -> list[str]:
        lines = [
            f"Evidence changes at most {self.lipschitz:.4g} times as fast as competence (rho = "
            f"{self.rho:.4g}): to know every labeler's evidence within {self.epsilon:g} takes "
            f"{self.evidence_slots:,} slots."
        ]
        if self.delta_gap is None or self.decision_gap is None or self.evidence_error is None:
            return lines
        lines += [
            f"Delta = {self.delta_gap:.4g} is the smallest gap between two contending items, and "
            f"{self.decision_gap:.4g} what is left of it with the gains nearest to zero and the "
            "order of the labelers, which Lemma 11 forgets.",
            f"If every evidence is within {self.evidence_error:.4g}, Algorithm 1 decides as if it "
            "knew the truth.",
        ]
        if self.same_decisions_slots is not None:
            lines.append(f"That takes {self.same_decisions_slots:,} slots.")
        return lines


def plan(
    competences: ArrayLike,
    epsilon: float,
    delta: float,
    classes: int = 2,
    *,
    rho: float | None = None,
    alpha: float | None = None,
    constant: float = 1.0,
    weights: ArrayLike | None = None,
    max_delay: int = 0,
) -> Plan:
    """Collect what the theory says of a panel (paper, Lemmas 13, 14 and 11).

    Parameters
    ----------
    competences : list of float
        The panel, each strictly between 0 and 1; three labelers or more.
    epsilon, delta : float
        Every competence shall be within epsilon, with probability at least 1 - delta.
    classes : int
        K.
    rho, alpha : float, optional
        Every competence is at most 1 - rho and at least alpha; by default as the panel is.
    constant : float
        Stands for the constant that Omega hides.
    weights, max_delay : optional
        For a panel small enough to enumerate (see `delta_gap`): the weights that items
        have and the longest delay. Then the plan also says what Delta is, and how small an
        error changes no decision: by `decision_gap`, for with Delta alone it would.

    Examples
    --------
    >>> p = plan([0.9, 0.85, 0.8, 0.75], epsilon=0.1, delta=0.05)
    >>> p.learning_slots, p.labelers_needed, p.large_enough
    (117175, 5, False)
    >>> print(p.describe()[5])
    After 117,175 slots no competence is off by more than 0.01316, with probability at least 0.95.
    """
    p = np.asarray(competences, dtype=np.float64)
    lemma = slots_for_lemma(p, delta, classes, alpha, constant)
    bound = slots_for_bound(p.size, epsilon, delta, classes)
    slots = max(lemma, bound)
    alpha = float(p.min()) if alpha is None else alpha
    rho = 1 - float(p.max()) if rho is None else rho
    args = (delta, classes, rho, alpha, constant)
    gap, whole, error, same = None, None, None, None
    if weights is not None:
        gap = delta_gap(weights, p, max_delay, classes)
        whole = decision_gap(weights, p, max_delay, classes)
        error = required_evidence_error(whole, float(np.max(weights)), p.size)
        if error > 0:
            same = learning_slots_for_evidence(p, error, *args)
    return Plan(
        labelers=p.size,
        classes=classes,
        epsilon=epsilon,
        delta=delta,
        alpha=alpha,
        rho=rho,
        constant=constant,
        kappa=tuple(kappa(p, classes).tolist()),
        kappa_bar=kappa_bar(p, classes),
        d_bar=d_bar(p, classes),
        slots_for_bound=bound,
        slots_for_lemma=lemma,
        learning_slots=slots,
        error_bound=error_bound(slots, p.size, classes, delta),
        labelers_needed=labelers_needed(slots, p, delta, classes, alpha, constant),
        lipschitz=lipschitz(rho, classes),
        evidence_slots=learning_slots_for_evidence(p, epsilon, *args),
        delta_gap=gap,
        decision_gap=whole,
        evidence_error=error,
        same_decisions_slots=same,
    )
