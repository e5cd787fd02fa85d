"""The default method: as far from the vote as the labels show to be safe."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar, Final, Self

import numpy as np
from numpy.typing import ArrayLike

from venire.estimators.anchor import (
    NEAR_GROUNDS,
    Anchored,
    agreements,
    capped,
    equal_votes,
    fill,
    prior_votes,
    silenced,
)
from venire.estimators.clones import CloneGroup, find_clones
from venire.estimators.dawid_skene import DawidSkene
from venire.estimators.dependence import (
    Families,
    discounted,
    families_of,
    measured,
    merge_clones,
    relations,
    tempered,
    weighted_posteriors,
    weighted_shares,
)
from venire.estimators.gold import Gold, known_classes, settled
from venire.estimators.screening import (
    FAINT_MEAN_ITEMS,
    UNKNOWN,
    Independence,
    Screened,
    beyond_noise,
    independence,
    screen,
)
from venire.estimators.teaching import ALONE, Checked, ToldSkills, taught
from venire.estimators.votes import VoteEstimator, implied_confusions, implied_skills
from venire.labels import LabelTable
from venire.labels.partitions import Table, each, kept, total
from venire.labels.sources import as_labels
from venire.labels.table import several_labels
from venire.tools.arrays import Floats


class Basis(StrEnum):
    """What the verdicts of `Auto` rest on."""

    VOTE = "vote"
    NEAR = "near the vote"
    EM = "EM"


@dataclass(eq=False)
class Auto(VoteEstimator):
    r"""The vote, something near it, or EM: as far as the labels show that it is safe.

    EM finds out who is good from who agrees with whom, and that is right where labelers err
    independently. Where they share errors it takes the largest group that agrees for the truth: it
    is up to 13 points below the majority on 22 real label sets, and up to 16 with judges of one
    family. The labels show which it is (`independence`), so in turn:

    1. *Who counts.* Labelers who always say one class (`find_constant`) count for nothing. A family
       of k labelers, declared or evident copies, counts for k / (1 + (k - 1) rho) votes, with the
       measured correlation rho of their errors (`venire.estimators.dependence`).
    2. *Is there anything to learn?* With fewer than three labelers, without items that share
       labelers, or with labels that do not agree beyond chance, it returns the vote; in the last
       case unless EM explains the labels better than noise (`beyond_noise`): labelers who
       contradict each other agree little, too.
    3. *Do labelers err independently?* If pairs of labelers are no more alike in their errors than
       EM predicts, the verdicts are EM's (`DawidSkene`; their confidence is the mean with that of
       `Anchored`, which is lower). If they clearly are more alike, it returns the vote. If that
       cannot be told (few items in common, or an excess in between), the verdicts are those of
       `Anchored`: one step away from the vote. So they are if a minority of labelers, taken as a
       family, explains it.
    4. No verdict on a single label is surer than such labels have been found to agree with others,
       and the vote of a few labels is less sure than its share (`venire.estimators.anchor`).
       Nor does a label that nobody else checked say anything about the skill of its labeler.

    The truth is never used, unless `gold` is given.

    Parameters
    ----------
    families : mapping of labeler to the name of its family, optional
        Labelers who may share errors: judges on one model, people trained together.
    stranger : K x K pseudo-labels, truth by said, optional
        How a newcomer labels; the panel's own labels soon outweigh it.
    threads : int, optional
        For the models that use them.

    Attributes
    ----------
    basis_ : Basis
        What the verdicts rest on.
    why_ : str
        What was done and why, in words.
    learned_ : bool
        Whether labelers were weighted; False where it returns the vote.
    independence_ : Independence
        What the labels say about the independence of errors.
    families_ : tuple of CloneGroup
        Labelers who count as a family, with the correlation of their errors and their worth.
    clones_ : Clones
        Labelers whose errors look alike (`find_clones`).
    suspects_ : tuple of CloneGroup
        Those of them who are in no family. They count in full, since they may be experts, until
        gold weighs them.
    undecided_ : int
        How many verdicts hang on whether these are experts or share errors; 0 if nothing does, and
        once gold weighs it.
    relations_ : tuple of str
        Families, suspects and what hangs on them, in words.
    constant_, contrary_ : arrays of bool
        Who always says one class, and who contradicts the vote, in the order of `table.labelers`.
    checked_ : Checked or None
        With gold: how many gold items, how many of them are right without their own gold, the
        weights of the explanations, and the temperature.
    told_skills_ : ToldSkills or None
        With gold: of each labeler, how many labels on gold items are right, and how many of the
        others are expected to be; `skills_` and `skill_intervals_` are made of it.
    unsettled_ : array
        With gold: the posteriors of all items, in which the classes of gold items are not written.
    rests_on_ : str
        What the confidences rest on: "by labels alone", or "checked on 50 gold labels".
    rows_, shares_ : arrays
        The confusion matrices and class shares with which labels of further items are weighed. They
        are `confusions_` and `priors_`; where the verdicts are the vote's, equal votes, and in a
        large panel that does not err independently those of `Anchored`.

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
    >>> auto.basis_, round(float(np.mean(right)), 2)
    (<Basis.EM: 'EM'>, 0.94)
    """

    name: ClassVar[str] = "auto"

    families: Families | None = None
    stranger: ArrayLike | None = None
    threads: int | None = None

    def fit(self, labels: Any, gold: Gold | None = None, asked: Collection[Hashable] = ()) -> Self:
        """Learn the labelers, as far as their labels (`as_table`, or three arrays) show it safe.

        With `gold`, a mapping of item to class, the class of these items is known, and the verdicts
        on the others are a mixture of what labels alone can mean, and of single labelers, by how
        well each predicts gold (`venire.estimators.mixture`). `asked` are those of its items that
        were chosen, as `questions` does, and not drawn at random.
        """
        table = as_labels(labels)
        known = known_classes(table, gold)
        self.checked_: Checked | None = None
        self.told_skills_: ToldSkills | None = None
        found = screen(table)
        self.constant_, self.contrary_ = found.constant, found.contrary
        self.clones_ = find_clones(found.present, seed=self.seed)
        groups = families_of(table.labelers, self.families, self.clones_)
        merged, self.independence_ = self._merged(found, groups)
        self.basis_ = _basis(found, self.independence_)
        if self.independence_.refuted:
            more = groups + self._minorities(groups)
            fewer, explained = self._merged(found, more)
            if explained.shown and len(more) > len(groups):
                groups, merged, self.independence_ = more, fewer, explained
                self.basis_ = Basis.NEAR
        self.learned_ = self.basis_ is not Basis.VOTE
        self.rows_, self.shares_ = self._learn(table, found.present, merged, groups)
        self.undecided_ = self._hanging(found.present, merged)
        self.why_ = self._explained(found)
        self._teach(table, known, asked)
        return self

    def _teach(self, table: Table, known: Any, asked: Collection[Hashable]) -> None:
        """Let gold, if there is any, weigh what labels alone can mean."""
        if known is None:
            return
        found = taught(table, known, self, self.threads, asked)
        if found is None:
            rows = settled(table, self.posterior_rows(), known)
            learned = self.confusions_, self.priors_
            self._settle(table, self.competences_, rows, *learned)
            return
        self.checked_, self.learned_, self.undecided_ = found[0], True, 0
        self.why_ = " ".join([self.checked_.words, *self.relations_])
        self._judge(table, settled(table, found[1], known))
        self.unsettled_, self.told_skills_ = found[1], found[2]
        self.competences_ = np.where(self.constant_, self.competences_, found[2].skills)
        self.rows_, self.shares_ = self.confusions_, self.priors_

    @property
    def rests_on_(self) -> str:
        """What the confidences rest on: labels alone, or gold, and how much of it."""
        return ALONE if self.checked_ is None else self.checked_.rests_on

    def _merged(self, found: Screened, groups: list[CloneGroup]) -> tuple[Any, Independence]:
        """The labels with one label for each group and item, and whether errors are independent."""
        merged = merge_clones(found.present, groups)
        if found.obstacle is not None and not found.faint:
            return merged, UNKNOWN
        if not found.faint:
            return merged, independence(merged, self.seed, self.threads)
        errors = independence(merged, self.seed, self.threads, FAINT_MEAN_ITEMS)
        if errors.refuted or (errors.shown and beyond_noise(merged, self.seed, self.threads)):
            return merged, errors
        return merged, UNKNOWN

    def _minorities(self, groups: list[CloneGroup]) -> list[CloneGroup]:
        """Labelers whose errors look alike, if they are a minority of the panel and of no group."""
        free = _others(self.clones_.groups, groups)
        most = (self.independence_.labelers - 1) // 2
        return free if sum(len(g.members) for g in free) <= most else []

    def _learn(
        self,
        table: Table,
        present: Table,
        merged: Table,
        groups: list[CloneGroup],
    ) -> tuple[Floats, Floats]:
        """The fit, on the basis that was found; returns what to weigh further labels with."""
        if self.learned_:
            posteriors, rows, shares = self._weigh(merged)
        else:
            posteriors = votes = each(merged, weighted_shares, [])
        groups = measured(present, groups, posteriors)
        self.families_ = tuple(groups)
        if self.learned_ and groups:
            members = np.isin(np.arange(len(table.labelers)), _codes(table, groups))
            own = implied_confusions(present, posteriors)
            rows = np.where(members[:, None, None], own, rows)
            posteriors = each(present, weighted_posteriors, rows, shares, groups)
        elif not self.learned_:
            votes = each(present, weighted_shares, groups)
            posteriors = each(present, weighted_shares, groups, prior_votes(present))
        posteriors = fill(each(present, capped, posteriors, agreements(present)), present)
        if not self.learned_:
            self._judge(table, posteriors, votes, kept(table, several_labels))
            rows, shares = self._further(present, merged, votes)
        else:
            skills = np.where(self.constant_, 1 / len(shares), implied_skills(rows, shares))
            self._settle(table, skills, posteriors, rows, shares)
        return silenced(table, tempered(present, rows, groups), self.constant_), shares

    def _further(self, present: Table, merged: Table, votes: Any) -> tuple[Floats, Floats]:
        """Matrices and class shares for further labels, where verdicts on these are the vote.

        All count the same, except in a large panel that does not err independently: whom to ask
        next is then seen near the vote.
        """
        if self.independence_.refuted and not self.independence_.small:
            near = Anchored(self.stranger, self.threads, seed=self.seed).fit(merged)
            return near.confusions_, near.priors_
        K = len(present.classes)
        # Even shares, for two labelers too. Shares by agreement (`agreed_shares`) decide fewer
        # of their ties right than a draw on 14 of 21 real sets: the class said too often seems the
        # more frequent one.
        coin = equal_votes(present, votes, self.stranger)
        return np.tile(coin, (len(present.labelers), 1, 1)), np.full(K, 1 / K)

    def _weigh(self, merged: Table) -> tuple[Any, Floats, Floats]:
        """Posteriors, matrices and class shares near the vote, or of EM."""
        near = Anchored(self.stranger, self.threads, seed=self.seed).fit(merged)
        if self.basis_ is Basis.NEAR:
            return near.posterior_rows(), near.confusions_, near.priors_
        steps = self._em(merged)
        less = discounted(merged, steps.posterior_rows())
        mean = each(merged, _less_sure, less, near.posterior_rows())
        return mean, silenced(merged, steps.confusions_, self.constant_), steps.priors_

    def _em(self, merged: Table) -> DawidSkene:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # whether it fits has been tested
            return DawidSkene(threads=self.threads, seed=self.seed).fit(merged)

    def _hanging(self, present: Table, merged: Table) -> int:
        """How many verdicts would be others if EM were right, or if suspects shared errors."""
        if not self.independence_.refuted:
            return 0
        steps, posteriors = self._em(merged).posterior_rows(), self.posterior_rows()
        return int(total(present, _differing, posteriors, steps, list(self.suspects_)))

    def _explained(self, found: Screened) -> str:
        found = found._replace(obstacle=None) if self.basis_ is Basis.EM else found
        parts = [found.why(self._grounds(), contrary=self.basis_ is Basis.NEAR)]
        return " ".join([*parts, *self.relations_])

    @property
    def suspects_(self) -> tuple[CloneGroup, ...]:
        """Those of `clones_` of whom nobody is in a family: they count in full."""
        return tuple(_others(self.clones_.groups, self.families_))

    @property
    def relations_(self) -> tuple[str, ...]:
        """Who shares errors or may share them, and what hangs on it, a sentence each."""
        taught = self.checked_ is not None
        return relations(self.families_, self.suspects_, self.undecided_, taught)

    def _grounds(self) -> str:
        return _GROUNDS[self.basis_]


_GROUNDS: Final = {
    Basis.EM: (
        "Labelers err independently of each other, as far as their labels show: they are weighted "
        "by EM (Dawid-Skene)."
    ),
    Basis.NEAR: NEAR_GROUNDS,
    Basis.VOTE: (
        "It stays with the vote: labelers do not err independently of each other, and labels alone "
        "cannot tell who shares errors from who knows more."
    ),
}


def _basis(found: Screened, errors: Independence) -> Basis:
    if errors.shown:
        return Basis.EM
    return Basis.VOTE if found.obstacle is not None or errors.refuted else Basis.NEAR


def _less_sure(table: LabelTable, steps: Floats, near: Floats) -> Floats:
    """The verdicts of EM, with the mean confidence of both where both have the same."""
    agree = steps.argmax(axis=1) == near.argmax(axis=1)
    return np.where(agree[:, None], (steps + near) / 2, steps)


def _others(suspects: Sequence[CloneGroup], groups: Sequence[CloneGroup]) -> list[CloneGroup]:
    known = {name for group in groups for name in group.members}
    return [group for group in suspects if not known & set(group.members)]


def _codes(table: Table, groups: list[CloneGroup]) -> list[int]:
    members = {name for group in groups for name in group.members}
    return [m for m, name in enumerate(table.labelers) if name in members]


def _differing(
    table: LabelTable, posteriors: Floats, steps: Floats, suspects: list[CloneGroup]
) -> int:
    """Items for which another explanation has a verdict that is not among the best here."""
    here = np.arange(len(posteriors))
    best = posteriors.max(axis=1) - 1e-9
    others = (steps.argmax(axis=1), weighted_shares(table, suspects).argmax(axis=1))
    differs = np.logical_or.reduce([posteriors[here, other] < best for other in others])
    return int((differs & (np.diff(table.start) > 0)).sum())
