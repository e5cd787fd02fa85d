"""How long a learning phase the theory requires for a panel, in words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from venire.paper import lemmas

__all__ = ["Plan", "plan"]


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
        For a panel small enough to enumerate (see `lemmas.delta_gap`): the weights that items
        have and the longest delay. Then the plan also says what Delta is, and how small an
        error changes no decision: by `lemmas.decision_gap`, for with Delta alone it would.

    Examples
    --------
    >>> p = plan([0.9, 0.85, 0.8, 0.75], epsilon=0.1, delta=0.05)
    >>> p.learning_slots, p.labelers_needed, p.large_enough
    (117175, 5, False)
    >>> print(p.describe()[5])
    After 117,175 slots no competence is off by more than 0.01316, with probability at least 0.95.
    """
    p = np.asarray(competences, dtype=np.float64)
    lemma = lemmas.slots_for_lemma(p, delta, classes, alpha, constant)
    bound = lemmas.slots_for_bound(p.size, epsilon, delta, classes)
    slots = max(lemma, bound)
    alpha = float(p.min()) if alpha is None else alpha
    rho = 1 - float(p.max()) if rho is None else rho
    args = (delta, classes, rho, alpha, constant)
    gap, whole, error, same = None, None, None, None
    if weights is not None:
        gap = lemmas.delta_gap(weights, p, max_delay, classes)
        whole = lemmas.decision_gap(weights, p, max_delay, classes)
        error = lemmas.required_evidence_error(whole, float(np.max(weights)), p.size)
        if error > 0:
            same = lemmas.learning_slots_for_evidence(p, error, *args)
    return Plan(
        labelers=p.size,
        classes=classes,
        epsilon=epsilon,
        delta=delta,
        alpha=alpha,
        rho=rho,
        constant=constant,
        kappa=tuple(lemmas.kappa(p, classes).tolist()),
        kappa_bar=lemmas.kappa_bar(p, classes),
        d_bar=lemmas.d_bar(p, classes),
        slots_for_bound=bound,
        slots_for_lemma=lemma,
        learning_slots=slots,
        error_bound=lemmas.error_bound(slots, p.size, classes, delta),
        labelers_needed=lemmas.labelers_needed(slots, p, delta, classes, alpha, constant),
        lipschitz=lemmas.lipschitz(rho, classes),
        evidence_slots=lemmas.learning_slots_for_evidence(p, epsilon, *args),
        delta_gap=gap,
        decision_gap=whole,
        evidence_error=error,
        same_decisions_slots=same,
    )
