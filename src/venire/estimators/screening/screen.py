"""Screening before learning: whose labels count, and whether labelers can be told apart."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from venire.estimators.dawid_skene.estimator import DawidSkene
from venire.estimators.given import Gold
from venire.estimators.gold_votes import GoldVotes, gold_votes
from venire.estimators.screening.constant import constant_labelers
from venire.labels import LabelTable, Names
from venire.labels.subset import keep_items, keep_labels

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
    says it than elsewhere. `obstacle` is None where labelers can be told apart.
    """

    heard: LabelTable
    constant: NDArray[np.bool_]
    contrary: NDArray[np.bool_]
    obstacle: str | None

    def why(self, learned: str) -> str:
        """In words: who is ignored, and what was `learned` or why the result is the vote."""
        stays = f"It stays with the plain vote: {self.obstacle}."
        told = learned if self.obstacle is None else stays
        names = self.heard.labelers
        aside = _set_aside(names, self.constant, ("says", "say"), "one class whatever the item")
        aside += _set_aside(names, self.contrary, ("contradicts", "contradict"), "the others")
        return " ".join([*aside, told])


def screen(table: LabelTable, gold: Gold | None = None) -> Screened:
    """Ignore labelers who always say one class; check whether there is anything to learn.

    With gold, who contradicts the vote is who contradicts the vote that gold gives
    (`gold_votes`); and labelers are told apart by gold, if their labels do not.

    >>> found = screen(LabelTable.from_matrix([[0, 0], [1, 1]]))
    >>> found.why("learned")
    'It stays with the plain vote: 2 labelers cannot be told apart by their agreement.'
    """
    constant = constant_labelers(table)
    heard = keep_labels(table, ~constant[table.labeler])
    contrary = np.zeros(len(constant), np.bool_)
    told = gold_votes(heard, gold)
    obstacle = None if told is not None and told.given.sum() >= FEWEST_LABELS else _obstacle(heard)
    if obstacle is None:
        contrary = _contrary(heard, told)
        heard = keep_labels(heard, ~contrary[heard.labeler])
    return Screened(heard, constant, contrary, obstacle)


def _contrary(table: LabelTable, told: GoldVotes | None) -> NDArray[np.bool_]:
    """Who is right less often than one who does not look: the diagonal sums to 1 or less.

    Their labels would tell something if they were turned round, but then a panel of two camps
    could be turned round as a whole.
    """
    wanted = np.diff(table.start) >= 2
    several = keep_items(table, wanted if told is None else wanted | (told.known >= 0))
    given = np.bincount(several.labeler, minlength=len(table.labelers))
    if not (given >= FEWEST_LABELS).any():
        return np.zeros(len(given), np.bool_)
    start = "majority" if told is None else told.shares
    rows = DawidSkene(max_iter=0, start=start).fit(several).confusions_
    return np.asarray((given >= FEWEST_LABELS) & (np.einsum("mkk->m", rows) <= 1.0))


def _obstacle(table: LabelTable) -> str | None:
    """Why labelers cannot be told apart; None if they can."""
    present = int((np.bincount(table.labeler, minlength=len(table.labelers)) > 0).sum())
    if present < FEWEST_LABELERS:
        return f"{present} labelers cannot be told apart by their agreement"
    length = np.diff(table.start)
    if not (length >= 2).any():
        return "no item has two labels to compare labelers on"
    z = _agreement(table)
    if z < BEYOND_CHANCE:
        return f"labels do not agree beyond chance ({z:.1f} standard errors)"
    return None


def _agreement(table: LabelTable) -> float:
    """Agreement of pairs of labels beyond chance, in standard errors over items."""
    length = np.diff(table.start).astype(np.float64)
    votes = np.zeros((len(length), len(table.classes)))
    np.add.at(votes, (table.item, table.said), 1.0)
    several = length >= 2
    n, v = length[several], votes[several]
    share = votes.sum(axis=0) / votes.sum()
    chance = float((share**2).sum())
    beyond = ((v * (v - 1)).sum(axis=1) / (n * (n - 1)) - chance) * (n - 1)
    spread = float(np.sqrt((beyond**2).sum()))
    return float(beyond.sum()) / spread if spread > 0 else 0.0


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
