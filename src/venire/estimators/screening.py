r"""Screening before learning: whose labels count, and whether labelers can be told apart.

Do the labelers of a table err independently of each other? A goodness-of-fit test of EM.

In Dawid and Skene's model labels of an item have nothing in common but its class. Where labelers
share errors (judges on one model), where some know one kind of item and some another, or where
labelers change, EM takes what a group has in common for the truth. Then other pairs of labelers
agree more, or less, than it predicts. With q_ik the posterior of item i and C_akl how
often a says l of class k, the score of a pair,

    s_ab = sum_i sum_k q_ik sum_l (1[a says l] - C_akl) (1[b says l] - C_bkl),

is the derivative of the log-likelihood by a dependence between a and b that does not change how
often each says what. If errors are independent its mean is 0, whoever was asked for labels: also
where somebody was asked because of what others had said of the item, as in streams and batches, as
a likelihood does not depend on that. The *misfit* is the mean over pairs of
s_ab^2 / sum_i s_iab^2, about 1.

It is below 1 even if labelers err independently, because EM was fitted to these labels. So EM is
also fitted to tables that are drawn from its own model, with the same items and labelers (a
parametric bootstrap). The misfit less theirs is the *excess*: about 0 for independent errors,
whatever the number of labelers, classes and labels.

Where the excess is small, EM may be used. Where it is large, no method that works from labels alone
is safe, and the plain vote is the one that a group of labelers distorts least.

Labels that are pure noise are independent too, and EM finds experts among them. So where labels
hardly agree beyond chance, EM must also fit them better than it fits noise (`beyond_noise`).
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from venire.estimators.base import BaseEstimator
from venire.estimators.clones import manageable
from venire.estimators.dawid_skene import DawidSkene
from venire.estimators.gold import Gold, GoldVotes, gold_votes
from venire.labels import LabelTable, Names
from venire.labels.partitions import (
    Table,
    item_draws,
    kept,
    label_draws,
    labels_given,
    said_counts,
    total,
    vote_counts,
)
from venire.labels.sources import as_labels
from venire.labels.table import has_several, keep_labelers, several_labels
from venire.tools.arrays import Floats, Ints

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


#: Errors are shown to be independent up to the first excess, and not to be above the second.
SHOWN_EXCESS: Final = 0.3
REFUTED_EXCESS: Final = 1.0

#: A pair of labelers is compared if it has as many items in common; independence is tested if
#: compared pairs have as many on average.
PAIR_ITEMS: Final = 3
MEAN_ITEMS: Final = 12.0

#: The same average where labels hardly agree beyond chance: the vote knows nothing there either,
#: and EM must be `beyond_noise` as well.
FAINT_MEAN_ITEMS: Final = 6.0

#: In a panel of up to this size, a few who share errors may be the majority. There independence is
#: shown only with this average number of common items, and refuted by an excess of two standard
#: errors.
SMALL_PANEL, SMALL_PANEL_ITEMS = 9, 100.0

#: How many tables are drawn from the model; more of them if there are fewer pairs than this.
DRAWS, DRAWS_OF_FEW, FEW_PAIRS = 2, 4, 200

#: The tolerance of EM on drawn tables, where it starts from the parameters that they have.
_REFIT_TOL: Final = 1e-4

#: By how many standard errors EM must be more likely on the labels than on noise.
NOISE_ERRORS: Final = 3.0

#: Independent errors seldom have a larger misfit.
USUAL_MISFIT: Final = 1.1


class Independence(NamedTuple):
    """What the labels of pairs say about the independence of errors.

    `excess` is how much larger the misfit is than under independence; `pairs` of `labelers` were
    compared, which have `shared` items in common on average; `least` are needed.
    """

    excess: float
    pairs: int
    shared: float
    labelers: int
    least: float = MEAN_ITEMS

    @property
    def enough(self) -> bool:
        """Whether labelers have enough items in common to tell."""
        return self.shared >= MEAN_ITEMS

    @property
    def shown(self) -> bool:
        """Whether the labels show that labelers err independently."""
        least = SMALL_PANEL_ITEMS if self.small else self.least
        return self.shared >= least and self.excess <= SHOWN_EXCESS

    @property
    def refuted(self) -> bool:
        """Whether the labels show that they do not.

        Of two standard errors in a small panel: that of a mean of squares is sqrt(2 / pairs).
        """
        chance = 2 * float(np.sqrt(2 / max(self.pairs, 1)))
        return self.enough and self.excess > (chance if self.small else REFUTED_EXCESS)

    @property
    def small(self) -> bool:
        """Whether a few labelers who share errors could be the majority of the panel."""
        return self.labelers <= SMALL_PANEL


#: What is known before any two labelers have been compared.
UNKNOWN: Final = Independence(np.nan, 0, 0.0, 0)


def independence(
    labels: Table, seed: int = 0, threads: int | None = None, least: float = MEAN_ITEMS
) -> Independence:
    """Test whether the labelers of a table err independently, with `least` items in common.

    A table of more than five million pairs of labels is sampled by items.

    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(2, size=(500, 1))
    >>> said = np.where(rng.random((500, 6)) < [0.9, 0.85, 0.8, 0.7, 0.7, 0.7], truth, 1 - truth)
    >>> independence(LabelTable.from_matrix(said)).shown
    True
    >>> said[:, 5] = np.where(rng.random(500) < 0.8, said[:, 4], said[:, 5])
    >>> independence(LabelTable.from_matrix(said)).refuted
    True
    """
    table = manageable(labels, PAIR_ITEMS, seed)[0]
    pairs = Pairs.of(table)
    seen = pairs.compared.size, pairs.shared, pairs.labelers, least
    if pairs.shared < least:
        return Independence(np.nan, *seen)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a panel that EM cannot explain shows in the misfit
        fitted = DawidSkene(threads=threads).fit(table)
        found = pairs.misfit(table.said, fitted.posteriors_, fitted.confusions_)
        few = pairs.compared.size < FEW_PAIRS
        refuted = found > 2 * USUAL_MISFIT + REFUTED_EXCESS
        if refuted or (found <= USUAL_MISFIT and not few):  # drawn tables would not change it
            return Independence(found - 1, *seen)
        refit = DawidSkene(
            threads=threads, start=fitted.confusions_, prior=fitted.pseudo_labels_, tol=_REFIT_TOL
        )
        drawn = []
        for draw in range(DRAWS_OF_FEW if few else DRAWS):
            again = _drawn(table, fitted, seed + 2 * draw)
            refit.fit(again)
            drawn.append(pairs.misfit(again.said, refit.posteriors_, refit.confusions_))
    return Independence(found - float(np.mean(drawn)), *seen)


def beyond_noise(labels: Table, seed: int = 0, threads: int | None = None) -> bool:
    """Whether EM explains the labels better than it explains noise.

    In noise, labels have nothing in common: those of each labeler are dealt out anew to the items
    that it labelled. What EM gains in likelihood there over labels that tell nothing is about half
    a chi-square, whose variance is its mean.

    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(2, size=(200, 1))
    >>> said = np.where(rng.random((200, 6)) < [0.9, 0.9, 0.9, 0.1, 0.1, 0.1], truth, 1 - truth)
    >>> beyond_noise(LabelTable.from_matrix(said))
    True
    >>> beyond_noise(LabelTable.from_matrix(rng.integers(2, size=(200, 6))))
    False
    """
    table = manageable(labels, PAIR_ITEMS, seed)[0]
    counts = said_counts(table).astype(np.float64)
    habits = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    nothing = float((counts * np.log(np.where(counts > 0, habits, 1.0))).sum())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # noise has many explanations
        gains = [
            float(DawidSkene(threads=threads, tol=_REFIT_TOL).fit(t).log_likelihood_ or 0.0)
            - nothing
            for t in (table, *(_dealt(table, seed + 4 * draw) for draw in range(DRAWS)))
        ]
    usual = max(float(np.mean(gains[1:])), 1.0)
    return gains[0] > usual + NOISE_ERRORS * float(np.sqrt(usual))


def _dealt(table: LabelTable, seed: int) -> LabelTable:
    """The table in which what each labeler said is dealt out anew to the items it labelled.

    Draws depend on the names of items and labelers, not on the order of the labels.
    """
    given, taken = (np.lexsort((label_draws(table, s), table.labeler)) for s in (seed, seed + 2))
    said = table.said.copy()
    said[taken] = table.said[given]
    return replace(table, said=said)


class Pairs(NamedTuple):
    """Two labels of one item each, by their places in the table; and who gave them.

    `compared` are the pairs of labelers with enough items in common, as `first` * M + `second`.
    """

    item: Ints
    places: tuple[Ints, Ints]
    who: tuple[Ints, Ints]
    compared: Ints
    shared: float
    labelers: int

    @classmethod
    def of(cls, table: LabelTable) -> Pairs:
        """All pairs of labels of the table.

        >>> pairs = Pairs.of(LabelTable.from_matrix([[0, 1, 1]] * 3 + [[0, 1, -1]] * 2))
        >>> pairs.item.size, pairs.compared.tolist(), round(pairs.shared, 2)
        (11, [1, 2, 5], 3.67)
        """
        length, M = np.diff(table.start), len(table.labelers)
        one, two = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for size in np.unique(length[length > 1]).tolist():
            start = table.start[:-1][length == size]
            a, b = np.triu_indices(size, 1)
            one.append((start[:, None] + a).ravel())
            two.append((start[:, None] + b).ravel())
        places = np.concatenate(one), np.concatenate(two)
        who = table.labeler[places[0]].astype(np.int64), table.labeler[places[1]].astype(np.int64)
        counts = np.bincount(who[0] * M + who[1], minlength=M * M)
        compared = np.flatnonzero(counts >= PAIR_ITEMS)
        shared = float(counts[compared].mean()) if compared.size else 0.0
        labelers = np.unique([compared // M, compared % M]).size
        return cls(table.item[places[0]], places, who, compared, shared, labelers)

    def misfit(self, said: NDArray[Any], posteriors: Floats, confusions: Floats) -> float:
        """The mean over pairs of labelers of their squared score, in units of its variance."""
        M, K = confusions.shape[:2]
        (a, b), x, y = self.who, said[self.places[0]], said[self.places[1]]
        score, same = np.zeros(a.size), (x == y).astype(np.float64)
        for k in range(K):
            rows = confusions[:, k]
            centred = same - rows[b, x] - rows[a, y] + (rows @ rows.T)[a, b]
            score += posteriors[self.item, k] * centred
        pair = a * M + b
        total = np.bincount(pair, score, minlength=M * M)[self.compared]
        square = np.bincount(pair, score**2, minlength=M * M)[self.compared]
        return float(np.mean(total**2 / (square + 1e-9)))


def _drawn(table: LabelTable, fitted: DawidSkene, seed: int) -> LabelTable:
    """A table of the same items and labelers, with labels drawn from the model.

    Draws depend on the names of items and labelers, not on the order of the labels.
    """
    shares = np.cumsum(fitted.priors_)[:-1]
    truth = (item_draws(table, seed)[:, None] > shares).sum(axis=1)
    rows = fitted.confusions_.cumsum(axis=2)[table.labeler, truth[table.item]]
    said = (label_draws(table, seed)[:, None] > rows[:, :-1]).sum(axis=1)
    return replace(table, said=said.astype(table.said.dtype))
