"""The default method: the mean of three learners that stay near the vote."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Self

import numpy as np

from venire.errors import InputError
from venire.estimators.calibration import discounted
from venire.estimators.dawid_skene.subtypes import Subtypes
from venire.estimators.given import Gold, settled
from venire.estimators.gold_votes import GoldVotes, gold_votes
from venire.estimators.screening.clones import Clones, find_clones
from venire.estimators.screening.merging import merge_clones
from venire.estimators.screening.screen import screen
from venire.estimators.votes.anchored import OVERRULED, fill, mean_of, near_the_vote
from venire.estimators.votes.majority import VoteEstimator, one_iteration, vote_shares
from venire.labels.partitions import Partitions, Table, each
from venire.labels.sources import as_labels

__all__ = ["Auto"]

#: Labelers whose errors correlate at least this much are merged; weaker similarity is only
#: reported.
COPIES: Final = 0.95


@dataclass(eq=False)
class Auto(VoteEstimator):
    r"""The mean of three learners, each of which stays near the vote.

    No single model is safe. On 21 real label sets (docs/real-data.md) Dawid-Skene's EM is up to
    16 points below a plain majority, one-coin's up to 15, and how well they predict labels does not
    show which of them fails. What is safe is to stay near the vote, and to average learners that
    err in different ways. The truth is never used. In turn:

    1. *Who counts.* Labelers who always say one class (`find_constant`), or who contradict the
       vote, count for nothing; labelers with the same errors (`find_clones`, correlation 0.95 or
       more) count as one.
    2. *Is there anything to learn?* With fewer than three labelers, without items that share
       labelers, or with labels that do not agree beyond chance, it returns the vote.
    3. *Three learners*: weighted majority, one step of EM from the vote shares (both as in
       `Anchored`), and a model with hidden types of item, `Subtypes`, which represents
       specialists, hard items and labels that stay correlated.
    4. `posteriors_` are their mean, each discounted to the number of independent labels that the
       labels of an item are worth (`calibrated`).

    Parameters
    ----------
    discount_clones : bool
        Whether to look for copies and count them as one.
    calibrate : bool
        Whether to discount the posteriors for dependent labels.
    seed : int
        For the starts of `Subtypes`.
    threads : int, optional
        For the models that use them.

    Attributes
    ----------
    why_ : str
        What was done and why, in words.
    learned_ : bool
        Whether labelers were weighted; False where it returns the vote.
    parts_ : dict of name to posteriors
        The posteriors of each learner, before they are discounted; not kept for labels in
        partitions.
    clones_ : Clones
    constant_, contrary_ : arrays of bool
        Who always says one class, and who contradicts the vote, in the order of `table.labelers`.

    Notes
    -----
    Which learners, and their constants, were chosen on the 21 sets; docs/real-data.md evaluates
    each set with the choice made without it. Competences and confusion matrices are those that the
    posteriors imply; a blend has no likelihood.

    Examples
    --------
    >>> from venire import LabelTable
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(2, size=(300, 1))
    >>> careful, eager = [[0.9, 0.1], [0.2, 0.8]], [[0.4, 0.6], [0.05, 0.95]]
    >>> panel = np.array([careful, careful, eager, eager, eager])
    >>> said = (rng.random((300, 5)) < panel[np.arange(5), truth, 1]).astype(int)
    >>> auto = Auto().fit(LabelTable.from_matrix(said))
    >>> right = [auto.labels_[s] == truth[s, 0] for s in range(300)]
    >>> round(float(np.mean(right)), 3)
    0.913
    >>> auto.why_
    'Mean of three learners that stay near the vote: weighted majority, one step of EM, and ...'
    """

    name: ClassVar[str] = "auto"

    discount_clones: bool = True
    calibrate: bool = True
    threads: int | None = None

    def fit(self, labels: Any, gold: Gold | None = None) -> Self:
        """Fit the learners, and average them.

        With `gold`, a mapping of item to class, the vote near which they stay is the one that
        gold gives (`gold_votes`), and the class of these items is known.
        """
        if not isinstance(self.seed, int | np.integer) or self.seed < 0:
            raise InputError(f"got seed={self.seed!r}, expected a whole number from 0 on")
        table = as_labels(labels)
        found = screen(table, gold)
        self.constant_, self.contrary_ = found.constant, found.contrary
        self.learned_ = found.obstacle is None
        copies = self.discount_clones
        self.clones_ = (
            find_clones(found.heard, strength=COPIES, seed=self.seed) if copies else _NOBODY
        )
        heard = merge_clones(found.heard, self.clones_.groups)
        self.why_ = " ".join([found.why(BLENDED), *self._copies()])
        told = gold_votes(heard, gold)
        parts = self._learn(heard, told)
        self.parts_ = {} if isinstance(table, Partitions) else parts
        posteriors = fill(self._mean(heard, parts), heard)
        if told is not None:
            posteriors = settled(heard, posteriors, told.known)
        self._judge(table, posteriors, one_iteration())
        told = gold_votes(table, gold) if told is not None else None
        if told is not None and told.overrule(table, self.confusions_, self.priors_):
            self.why_ = OVERRULED
            self._judge(table, told.record(table)[1], one_iteration())
        return self

    def _learn(self, table: Table, told: GoldVotes | None) -> dict[str, Any]:
        if not self.learned_:
            return {"majority": each(table, vote_shares) if told is None else told.shares}
        known = None if told is None else told.gold
        types = Subtypes(seed=self.seed, threads=self.threads).fit(table, known).posterior_rows()
        weighted, step = near_the_vote(table, self.threads, told)
        return {"weighted-majority": weighted, "one-step": step, "subtypes": types}

    def _mean(self, table: Table, parts: dict[str, Any]) -> Any:
        calibrated = ("one-step", "subtypes") if self.calibrate else ()
        held = [discounted(table, q) if name in calibrated else q for name, q in parts.items()]
        return each(table, mean_of, *held)

    def _copies(self) -> list[str]:
        return [
            f"{_listed(g.members)} are treated as copies (correlation of errors "
            f"{g.correlation:.2f}) and count as one."
            for g in self.clones_.groups
        ]


BLENDED: Final = (
    "Mean of three learners that stay near the vote: weighted majority, one step of EM, and a "
    "model with hidden types of item."
)

_NOBODY: Final = Clones((), (), 0)


def _listed(names: tuple[Hashable, ...]) -> str:
    shown = [str(n) for n in names[:5]] + ([f"{len(names) - 5} more"] if len(names) > 5 else [])
    return ", ".join(shown[:-1]) + " and " + shown[-1]
