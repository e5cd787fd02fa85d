r"""Screening before learning: whose labels count, and whether labelers can be told apart."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from venire.estimators.base import BaseEstimator
from venire.estimators.dawid_skene import DawidSkene
from venire.estimators.gold import Gold, GoldVotes, gold_votes
from venire.labels import LabelTable, Names
from venire.labels.partitions import Table, kept, labels_given, said_counts, total, vote_counts
from venire.labels.sources import as_labels
from venire.labels.table import has_several, keep_labelers, several_labels
from venire.tools.arrays import Floats

#: A labeler who says one class with at least this share, in at least this many labels, is tested.
SUSPECT_SHARE: Final = 0.95
SUSPECT_LABELS: Final = 8

#: A constant labeler says another class with this probability.
SLIP: Final = 0.02

#: A class with this share of the others' votes is the obvious guess.
COMMON_SHARE: Final = 2 / 3

#: Labels are ignored only on evidence of at least 100 to 1.
LOG_ODDS: Final = np.log(100.0)


def find_constant(labels: Any) -> tuple[Any, ...]:
    """The names of the labelers who always say the same class.

    A labeler who says one class in 95 % of eight labels or more is compared with the others: one
    who knows anything says something else about items that the others find to be of another class.
    The labels are compared under two explanations,

        like the others    sum_k r_k C_k(said), r the shares of the others' votes on the item and
                           C how the others label items on which the rest votes k
        constant           0.98 for the one class, for every item

    and a labeler is returned if the second is 100 times more probable. Where one class is rare, or
    the others say nothing about its items, both explain the labels equally well, and nobody is
    returned; nor is one whose class has two thirds of the others' votes anyway: it repeats the
    known class shares, and without it the rare class would win too often.

    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(2, size=(100, 1))
    >>> said = np.where(rng.random((100, 6)) < 0.8, truth, 1 - truth)
    >>> said[:, 4:] = 1
    >>> find_constant(LabelTable.from_matrix(said))
    (4, 5)
    """
    table = labels.table_ if isinstance(labels, BaseEstimator) else as_labels(labels)
    return tuple(table.labelers[m] for m in np.flatnonzero(constant_labelers(table)).tolist())


def constant_labelers(table: Table) -> NDArray[np.bool_]:
    """Whether each labeler of the table always says the same class."""
    K, counts = len(table.classes), said_counts(table)
    given = counts.sum(axis=1)
    suspect = (given >= SUSPECT_LABELS) & (counts.max(axis=1) >= SUSPECT_SHARE * given)
    if not suspect.any() or not counts[~suspect].any():
        return np.zeros(len(given), np.bool_)
    favourite = counts.argmax(axis=1)
    share = counts[~suspect].sum(axis=0) / counts[~suspect].sum()
    joint = total(table, _beside_the_rest, suspect) + np.eye(K) + 1.0 / K
    like = joint / joint.sum(axis=1, keepdims=True)
    evident = total(table, _evidence, like, suspect, favourite) > LOG_ODDS
    return np.asarray(suspect & evident & (share[favourite] < COMMON_SHARE))


def _votes(table: LabelTable, suspect: NDArray[np.bool_]) -> Floats:
    """The votes of those who are not suspected, items x K."""
    return vote_counts(keep_labelers(table, ~suspect)).astype(np.float64)


def _beside_the_rest(table: LabelTable, suspect: NDArray[np.bool_]) -> Floats:
    """What labelers say where the rest votes k, for C: counts, K (rest) x K (said)."""
    votes, own = _votes(table, suspect), ~suspect[table.labeler]
    K = votes.shape[1]
    s, said = table.item[own], table.said[own]
    rest = votes[s]
    rest[np.arange(s.size), said] -= 1.0
    others = rest.sum(axis=1)
    rest = rest[others > 0] / others[others > 0, None]
    joint = np.zeros((K, K))
    for k in range(K):
        joint[:, k] = rest[said[others > 0] == k].sum(axis=0)
    return joint


def _evidence(
    table: LabelTable,
    like: Floats,
    suspect: NDArray[np.bool_],
    favourite: NDArray[np.int64],
) -> Floats:
    """The log-odds of each suspect being constant."""
    votes = _votes(table, suspect)
    K = votes.shape[1]
    mine = suspect[table.labeler] & (votes.sum(axis=1)[table.item] > 0)
    s, m, said = table.item[mine], table.labeler[mine], table.said[mine]
    share = votes[s] / votes[s].sum(axis=1, keepdims=True)
    others = np.log(np.einsum("ek,ke->e", share, like[:, said]))
    constant = np.log(np.where(said == favourite[m], 1 - SLIP, SLIP / (K - 1)))
    odds: Floats = np.bincount(m, constant - others, minlength=len(suspect)).astype(np.float64)
    return odds


#: Fewer labelers cannot be told apart by their agreement.
FEWEST_LABELERS: Final = 3

#: Agreement must exceed chance by this many standard errors before labelers are weighted.
CHANCE_ERRORS: Final = 2.0


#: A labeler who contradicts the vote, in at least this many labels, is ignored.
CONTRARY_LABELS: Final = 20


class Screened(NamedTuple):
    """The labels that count, the labelers who are ignored, and why nothing can be learned.

    `constant` labelers always say one class; `contrary` ones say a class less often where the vote
    says it than elsewhere. `present` are the labels of all but the constant ones, `heard` those of
    neither. `obstacle` is None where labelers can be told apart; `faint` is whether they cannot
    only because labels hardly agree beyond chance.
    """

    present: Any
    heard: Any
    constant: NDArray[np.bool_]
    contrary: NDArray[np.bool_]
    obstacle: str | None
    faint: bool = False

    def why(self, learned: str, contrary: bool = True) -> str:
        """In words: who is ignored, and what was `learned` or why the result is the vote."""
        stays = f"It stays with the plain vote: {self.obstacle}."
        told = learned if self.obstacle is None else stays
        names = self.heard.labelers
        aside = _set_aside(names, self.constant, ("says", "say"), "one class whatever the item")
        if contrary:
            aside += _set_aside(names, self.contrary, ("contradicts", "contradict"), "the others")
        return " ".join([*aside, told])


def screen(table: Table, gold: Gold | None = None) -> Screened:
    """Ignore labelers who always say one class; check whether there is anything to learn.

    With gold, who contradicts the vote is who contradicts the vote that gold gives
    (`gold_votes`); and labelers are told apart by gold, if their labels do not.

    >>> found = screen(LabelTable.from_matrix([[0, 0], [1, 1]]))
    >>> found.why("learned")
    'It stays with the plain vote: 2 labelers cannot be told apart by their agreement.'
    """
    constant = constant_labelers(table)
    present = heard = _without(table, constant)
    contrary = np.zeros(len(constant), np.bool_)
    told = gold_votes(heard, gold)
    obstacle, faint = _obstacle(heard)
    if told is not None and told.given.sum() >= CONTRARY_LABELS:
        obstacle, faint = None, False
    if obstacle is None:
        contrary = _contrary(heard, told)
        heard = _without(heard, contrary)
    return Screened(present, heard, constant, contrary, obstacle, faint)


def _without(table: Table, labelers: NDArray[np.bool_]) -> Any:
    return kept(table, keep_labelers, ~labelers) if labelers.any() else table


def _contrary(table: Table, told: GoldVotes | None) -> NDArray[np.bool_]:
    """Who is right less often than one who does not look: the diagonal sums to 1 or less.

    Their labels would tell something if they were turned round, but then a panel of two camps
    could be turned round as a whole.
    """
    several = kept(table, several_labels, None if told is None else told.known)
    given = labels_given(several)
    if not (given >= CONTRARY_LABELS).any():
        return np.zeros(len(given), np.bool_)
    start = "majority" if told is None else told.shares
    rows = DawidSkene(max_iter=0, start=start).fit(several).confusions_
    return np.asarray((given >= CONTRARY_LABELS) & (np.einsum("mkk->m", rows) <= 1.0))


def _obstacle(table: Table) -> tuple[str | None, bool]:
    """Why labelers cannot be told apart, None if they can; and whether more labels would do."""
    said = said_counts(table)
    present = int((said.sum(axis=1) > 0).sum())
    if present < FEWEST_LABELERS:
        return f"{present} labelers cannot be told apart by their agreement", False
    if not total(table, _several):
        return "no item has two labels to compare labelers on", False
    share = said.sum(axis=0) / said.sum()
    beyond, squares = total(table, _agreement, float((share**2).sum()))
    z = float(beyond / np.sqrt(squares)) if squares > 0 else 0.0
    if z < CHANCE_ERRORS:
        return f"labels do not agree beyond chance ({z:.1f} standard errors)", True
    return None, False


def _several(table: LabelTable) -> int:
    return int(has_several(table).sum())


def _agreement(table: LabelTable, chance: float) -> tuple[float, float]:
    """Agreement of pairs of labels beyond chance: its sum over items, and that of its squares."""
    several = has_several(table)
    n, v = np.diff(table.start)[several].astype(np.float64), vote_counts(table)[several]
    beyond = ((v * (v - 1)).sum(axis=1) / (n * (n - 1)) - chance) * (n - 1)
    return float(beyond.sum()), float((beyond**2).sum())


def _set_aside(
    labelers: Names, which: NDArray[np.bool_], verb: tuple[str, str], what: str
) -> list[str]:
    names = [str(labelers[m]) for m in np.flatnonzero(which).tolist()]
    if not names:
        return []
    shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    one, many = verb
    if len(names) == 1:
        return [f"{shown} {one} {what}, and counts for nothing."]
    return [f"{shown} {many} {what}, and count for nothing."]
