"""Screening before learning: whose labels count, and whether labelers can be told apart."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from venire.estimators.dawid_skene.estimator import DawidSkene
from venire.estimators.given import Gold
from venire.estimators.gold_votes import GoldVotes, gold_votes
from venire.estimators.screening.constant import constant_labelers
from venire.labels import LabelTable, Names
from venire.labels.counts import labels_given, said_counts
from venire.labels.entropy import vote_counts
from venire.labels.partitions import Table, kept, total
from venire.labels.subset import has_several, keep_labelers, several_labels

__all__ = ["Screened", "screen"]

#: Fewer labelers cannot be told apart by their agreement.
FEWEST_LABELERS: Final = 3

#: Agreement must exceed chance by this many standard errors before labelers are weighted.
BEYOND_CHANCE: Final = 2.0


#: A labeler who contradicts the vote, in at least this many labels, is ignored.
FEWEST_LABELS: Final = 20


class Screened(NamedTuple):
    """The labels that count, whose do not, and why nothing can be learned from them.

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
    if told is not None and told.given.sum() >= FEWEST_LABELS:
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
    if not (given >= FEWEST_LABELS).any():
        return np.zeros(len(given), np.bool_)
    start = "majority" if told is None else told.shares
    rows = DawidSkene(max_iter=0, start=start).fit(several).confusions_
    return np.asarray((given >= FEWEST_LABELS) & (np.einsum("mkk->m", rows) <= 1.0))


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
    if z < BEYOND_CHANCE:
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
