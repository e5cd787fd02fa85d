r"""Has a labeler changed? A sequential test of each labeler against its own past.

For each label that labeler m gives, the *other* labels of the item say how probable it is that
this was the right class (r, from the leave-one-out posterior), and m's own long-run skill p
says how probable the label then was,

    f_0 = r p + (1 - r) (1 - p) / (K - 1).

Two kinds of change are looked for, each in three sizes e:

    worse:   with probability e it says anything at random   f_1 = (1 - e) f_0 + e / K
    better:  with probability e it knows                     f_1 = (1 - e) f_0 + e r

The six Shiryaev-Roberts statistics R <- (1 + R) f_1 / f_0 add up the evidence for a change at
any time in the past. Without a change the mean of R after n labels is n, so by Doob's
inequality the probability that the mean of the six reaches 1000 / alpha within 1,000 labels is
at most alpha: the threshold needs no tuning. How vague the other labels are is already part of r; a
label about which they say nothing has no effect.

The reference p is learned from the same labels without forgetting, one step of on-line EM each,

    p <- p + (P(right | label, others) - p) / N,

where N counts each label by the share of its (Fisher) information that the others reveal: 1 if
they leave no doubt, and then p is the mean. One number, even where the labeler has a whole
confusion matrix: at the p that fits best, both kinds of change gain nothing on average
whatever the matrix, and a matrix could not be learned from few labels well enough.
No alarm is raised before the reference rests on `burn_in` labels; after an alarm it is
learned anew.

The other labels of an item are only as informative as the beliefs about their
labelers. Two things would look like a change of the labeler and are not, so `follow`

- learns the references again whenever beliefs change, from the remembered labels and with the
  current beliefs;
- has a reference for each pair of a labeler and its *chief witness*, the best of the others who
  labelled the item: a guesser who is believed to be good makes everyone who labels with it look
  bad, and partners change when the schedule does. A pair begins with the labeler's own reference,
  and is tested after `FEW` labels.

Measured on simulated panels (tests/unit/estimators/test_streaming_drift.py): with alpha = 5 %,
1 to 5 % of those who do not change are flagged within 1,000 labels; a drop from 0.9 to 0.6 is
flagged after 45 labels (median).

Sources: Shiryaev 1963, Roberts 1966; Pollak 1985 for the mixture over sizes.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from venire.errors import InputError
from venire.tools.arrays import Floats, Ints
from venire.tools.compiling import inlined, kernel

#: The false-alarm probability refers to this many labels of a labeler.
PER: Final = 1000

#: Sizes of change that are looked for: a fifth of the way to chance (or to perfection), ...
SIZES: Final = (0.2, 0.4, 0.8)

#: The reference begins with this skill, weighted as this many labels.
START_SKILL, START_LABELS = 0.7, 2.0

#: The reference stays this far from 0 and 1.
EDGE: Final = 1e-3

#: A pair of labeler and witness begins with the labeler's skill, weighted as at most `PAIR` labels,
#: and is tested after `FEW` labels of its own.
PAIR, FEW = 10.0, 50


class Drift(NamedTuple):
    """Whether a labeler has changed.

    `alarms` so far, the number of scored labels `at` the latest one (0: none), and `evidence`
    for a change since: 1 raises the next alarm.
    """

    alarms: int
    at: int
    evidence: float


class DriftMonitor:
    """Watches a panel for labelers that change.

    Parameters
    ----------
    classes : int
        Number of classes.
    false_alarms : float
        At most this probability of an alarm in 1,000 labels of a labeler that does not change.
    burn_in : int
        Labels of a labeler that its reference needs before an alarm.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(2, size=800)
    >>> right = rng.random(800) < np.where(np.arange(800) < 600, 0.9, 0.6)
    >>> said = np.where(right, truth, 1 - truth)
    >>> monitor = DriftMonitor(classes=2)
    >>> monitor.score(np.zeros(800, int), said, np.eye(2)[truth])
    >>> [d.alarms for d in monitor.drifts()], 600 < monitor.drifts()[0].at < 700
    ([1], True)
    """

    def __init__(
        self,
        classes: int,
        false_alarms: float = 0.05,
        burn_in: int = 100,
    ) -> None:
        if not 0 < false_alarms < 1:
            raise InputError(
                f"got a false-alarm probability of {false_alarms!r}, expected it strictly between "
                "0 and 1"
            )
        self.classes, self.false_alarms, self.burn_in = classes, false_alarms, burn_in
        self.skill, self.information = np.zeros(0), np.zeros(0)
        self.evidence = np.zeros((0, 2 * len(SIZES)))
        self.seen, self.began, self.alarms, self.at = (np.zeros(0, np.int64) for _ in range(4))

    def expand(self, labelers: int) -> None:
        """Make room for this many labelers."""
        known = len(self.seen)
        for name in self.arrays():
            old = getattr(self, name)
            new = np.zeros((max(labelers, known), *old.shape[1:]), old.dtype)
            new[:known] = old
            setattr(self, name, new)
        self.skill[known:], self.information[known:] = START_SKILL, START_LABELS

    def arrays(self) -> tuple[str, ...]:
        """The names of its state arrays."""
        return "skill", "information", "evidence", "seen", "began", "alarms", "at"

    def score(self, labeler: Ints, said: Ints, others: Floats) -> None:
        """Score labels in order of time; `others` are the posteriors from the other labels."""
        if labeler.size and labeler.max() >= len(self.seen):
            self.expand(int(labeler.max()) + 1)
        reference = self.skill, self.information, np.zeros(len(self.seen), np.int64)
        self._run(labeler, labeler, said, others, reference, few=0)

    def follow(
        self,
        labeler: Ints,
        said: Ints,
        others: Floats,
        witness: Ints,
        fresh: NDArray[np.bool_],
    ) -> None:
        """Learn the references from the labels that are not `fresh`; score those that are.

        One entry per remembered label, in order of time, with the posteriors of the current
        beliefs.
        """
        old = ~fresh
        self.skill[:], self.information[:] = START_SKILL, START_LABELS
        tried = np.zeros(len(self.seen), np.int64)
        known = labeler[old], said[old], others[old]
        self._run(known[0], *known, (self.skill, self.information, tried), test=False)
        most = int(witness.max(initial=0)) + 1
        pairs, pair = np.unique(labeler * most + witness, return_inverse=True)
        who = pairs // most
        own = self.skill[who], np.minimum(self.information[who], PAIR), np.zeros_like(pairs)
        self._run(pair[old], *known, own, test=False)
        self._run(pair[fresh], labeler[fresh], said[fresh], others[fresh], own, few=FEW)

    def _run(
        self,
        cell: Ints,
        labeler: Ints,
        said: Ints,
        others: Floats,
        reference: tuple[Floats, Floats, Ints],
        few: int = 0,
        test: bool = True,
    ) -> None:
        scored: Any = _score
        state = self.evidence, self.seen, self.began, self.alarms, self.at
        limits = self.burn_in, few, PER / self.false_alarms, test
        scored(cell, labeler, said, others, *reference, *state, *limits)

    def drifts(self) -> list[Drift]:
        share = self.evidence.mean(axis=1) * self.false_alarms / PER
        columns = self.alarms.tolist(), self.at.tolist(), share.tolist()
        return [Drift(*row) for row in zip(*columns, strict=True)]


@inlined
def _alarm(evidence: Floats, m: int, random: float, knows: float, threshold: float) -> bool:
    """Add up the evidence for each kind of change; whether it is enough for an alarm."""
    total = 0.0
    for a in range(len(SIZES)):
        evidence[m, 2 * a] = (1.0 + evidence[m, 2 * a]) * (1.0 + SIZES[a] * random)
        evidence[m, 2 * a + 1] = (1.0 + evidence[m, 2 * a + 1]) * (1.0 + SIZES[a] * knows)
        total += evidence[m, 2 * a] + evidence[m, 2 * a + 1]
    return total >= threshold * 2 * len(SIZES)


@kernel
def _score(
    cell: Ints,
    labeler: Ints,
    said: Ints,
    others: Floats,
    skill: Floats,
    information: Floats,
    tried: Ints,
    evidence: Floats,
    seen: Ints,
    began: Ints,
    alarms: Ints,
    at: Ints,
    burn_in: int,
    few: int,
    threshold: float,
    test: bool,
) -> None:
    """The test of each labeler and the reference of each cell, label by label."""
    K = others.shape[1]
    for j in range(labeler.size):
        c, m, r = cell[j], labeler[j], others[j, said[j]]
        chance = (1.0 - r) / (K - 1)
        predicted = r * skill[c] + chance * (1.0 - skill[c])
        tried[c] += 1
        if test:
            seen[m] += 1
        if test and seen[m] - began[m] > burn_in and tried[c] > few:
            random, knows = 1.0 / (K * predicted) - 1.0, r / predicted - 1.0
            if _alarm(evidence, m, random, knows, threshold):
                alarms[m] += 1
                at[m] = began[m] = seen[m]
                information[c] = START_LABELS
                for a in range(evidence.shape[1]):
                    evidence[m, a] = 0.0
        spread = skill[c] * (1.0 - skill[c])
        for k in range(K):
            wrong = (1.0 - others[j, k]) / (K - 1)
            likely = wrong + (others[j, k] - wrong) * skill[c]
            information[c] += spread * (others[j, k] - wrong) ** 2 / likely
        step = spread * (r - chance) / predicted / information[c]
        skill[c] = min(max(skill[c] + step, EDGE), 1.0 - EDGE)
