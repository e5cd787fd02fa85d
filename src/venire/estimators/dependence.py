"""Labels of an item that depend on each other are worth fewer independent ones.

A label model that takes labels for independent, given the class, is overconfident where they are
not. How far they depend on each other can be seen without the truth, and says how many independent
labels they amount to.

Labelers who share their errors, as votes: k of them are worth k / (1 + (k - 1) rho).

A family is declared by the user (judges on one model), or consists of labelers who hardly ever
differ (`find_clones`, a correlation of errors of 0.95 or more), or of a minority without which
errors are independent (`Auto`). Anything weaker is reported and not used: from labels alone two
experts among many who know little look like two copies.

What a family has in common must not pass for the truth, so the panel is learned with one label of
each family and item: what most of its members said (`merge_clones`). Then the correlation rho of
the errors inside it is measured, given the posteriors of the items (`residual_dependence`), and
each label of a member counts for 1 / (1 + (k - 1) rho) of a vote, k being how many of the family
labelled the item (the design effect of survey sampling).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from venire.errors import InputError
from venire.estimators.base import TINY, BaseEstimator
from venire.estimators.clones import CloneGroup, Clones
from venire.estimators.passes import dependence_pass
from venire.estimators.votes import implied_confusions
from venire.labels import LabelTable, Names
from venire.labels.partitions import Spread, Table, each, kept, labels_given, name_codes, total
from venire.labels.table import keep_labelers
from venire.tools.arrays import Floats, softmax


def temper(posteriors: ArrayLike, temperature: ArrayLike) -> Floats:
    """Posteriors to the power `temperature`, normalised: below 1 less confident, same order.

    `temperature` multiplies the log-odds; one number, or one for each item.

    >>> temper([[0.9, 0.1], [0.5, 0.5]], 0.5).round(3).tolist()
    [[0.75, 0.25], [0.5, 0.5]]
    """
    q, t = np.asarray(posteriors, dtype=np.float64), np.asarray(temperature, dtype=np.float64)
    if not ((t > 0) & np.isfinite(t)).all():
        raise InputError(f"got the temperature {temperature!r}, expected numbers above 0")
    logs = np.log(np.maximum(q, np.finfo(np.float64).tiny)) * t.reshape(-1, 1)
    return softmax(logs)


def residual_dependence(
    table: Table, posteriors: Floats | Spread, confusions: Floats | None = None
) -> float:
    r"""The mean correlation of two labels of an item, given its class.

    With r = (indicator of what m said of s) - (row k of m's confusion matrix), the mean over
    pairs of labels of the same item and over the posteriors of its class k,

        rho = sum_s sum_k q_sk sum_{m != n} r_m . r_n  /  sum_s sum_k q_sk sum_{m != n} |r_m| |r_n|

    with the norms as expected; `confusions` are by default those that the posteriors imply. Where
    labels are independent given the class, and the posteriors right, it is 0 up to chance; items
    that are hard for everyone, families of labelers and classes that hide several kinds of item
    all make it positive.

    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(2, size=(2000, 1))
    >>> sure = np.eye(2)[truth[:, 0]]
    >>> said = np.where(rng.random((2000, 5)) < 0.8, truth, 1 - truth)
    >>> round(abs(residual_dependence(LabelTable.from_matrix(said), sure)), 2)
    0.0
    >>> hard = rng.random((2000, 1)) < 0.3
    >>> said = np.where(rng.random((2000, 5)) < np.where(hard, 0.4, 0.9), truth, 1 - truth)
    >>> round(residual_dependence(LabelTable.from_matrix(said), sure), 2)
    0.31
    """
    rows = implied_confusions(table, posteriors) if confusions is None else confusions
    products, scale = total(table, _dependence, posteriors, rows)
    return float(products / scale) if scale > 0 else 0.0


def _dependence(table: LabelTable, posteriors: Floats, confusions: Floats) -> tuple[float, float]:
    labels = table.start, table.labeler, table.said
    products, scale = dependence_pass(*labels, posteriors, confusions)
    return products, scale


#: How much stronger the dependence of labels is than the posteriors show, and the number of pairs
#: of labels at which half of the observed dependence is believed.
HIDDEN, HALF_BELIEVED = 30.0, 300.0


def certainty(table: Table, posteriors: Floats | Spread, confusions: Floats | None = None) -> float:
    r"""What to multiply the log-odds of every verdict by, 1 where labels err independently.

    1 / (1 + 30 rho), where rho is the `residual_dependence`, shrunk towards 0 while it rests on few
    pairs of labels of the same item, rho P / (P + 300). It is one number for all items, so no
    verdict changes, however many labels an item has; a schedule can use it. The two constants were
    chosen on the 21 sets of docs/real-data.md, where posteriors themselves hide most of the
    dependence: errors that labelers share pass for the truth.

    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(2, size=(2000, 1))
    >>> sure = np.eye(2)[truth[:, 0]]
    >>> said = np.where(rng.random((2000, 5)) < 0.8, truth, 1 - truth)
    >>> round(certainty(LabelTable.from_matrix(said), sure), 1)
    1.0
    >>> hard = rng.random((2000, 1)) < 0.1
    >>> said = np.where(rng.random((2000, 5)) < np.where(hard, 0.4, 0.8), truth, 1 - truth)
    >>> round(certainty(LabelTable.from_matrix(said), sure), 1)
    0.3
    """
    pairs = float(total(table, _pairs))
    if not pairs:
        return 1.0
    rho = max(residual_dependence(table, posteriors, confusions), 0.0)
    return 1 / (1 + HIDDEN * rho * pairs / (pairs + HALF_BELIEVED))


def _pairs(table: LabelTable) -> float:
    labels = np.diff(table.start).astype(np.float64)
    return float((labels * (labels - 1)).sum() / 2)


def calibrated(estimator: BaseEstimator) -> Floats:
    r"""The posteriors of a fitted label model, tempered by the dependence that it leaves.

    n labels whose errors have correlation rho are worth n / (1 + (n - 1) rho) independent ones
    (the design effect), so the log-odds of an item with n labels are divided by
    1 + (n - 1) rho. Verdicts stay the same. The truth is not used.

    >>> from venire.estimators import OneCoin
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(2, size=(500, 1))
    >>> hard = rng.random((500, 1)) < 0.3
    >>> said = np.where(rng.random((500, 9)) < np.where(hard, 0.4, 0.9), truth, 1 - truth)
    >>> learned = OneCoin().fit(LabelTable.from_matrix(said))
    >>> right = (learned.posteriors_.argmax(axis=1) == truth[:, 0]).mean()
    >>> before, after = (_sure(q) for q in (learned.posteriors_, calibrated(learned)))
    >>> [round(float(x), 2) for x in (right, before, after)]
    [0.8, 0.98, 0.96]
    """
    table = estimator.table_
    found: Floats = discounted(table, estimator.posteriors_)
    return found


def discounted(table: Table, posteriors: Any) -> Any:
    """Posteriors with the log-odds divided by the design effect of each item."""
    rho = max(residual_dependence(table, posteriors), 0.0)
    return each(table, _tempered, posteriors, rho)


def _tempered(table: LabelTable, posteriors: Floats, rho: float) -> Floats:
    others = np.maximum(np.diff(table.start) - 1, 0)
    return temper(posteriors, 1 / (1 + others * rho))


def _sure(posteriors: Floats) -> float:
    return float(posteriors.max(axis=1).mean())


#: The family of each labeler by name, as the user declares it.
Families = Mapping[Any, Hashable]

#: Errors that correlate less than this are hardly shared.
HARDLY_SHARED: Final = 0.05

#: Labelers whose errors correlate at least this much count as a family without being declared.
COPY_CORRELATION: Final = 0.95


def families_of(labelers: Names, declared: Families | None, clones: Clones) -> list[CloneGroup]:
    """The declared families, and the copies among the other labelers; correlations to be measured.

    >>> found = families_of(("ann", "llama-a", "llama-b"), {"llama-a": 1, "llama-b": 1},
    ...                     Clones((), (), 0))
    >>> [group.members for group in found]
    [('llama-a', 'llama-b')]
    """
    declared = declared or {}
    if not isinstance(declared, Mapping):
        raise InputError(
            f"got families of type {type(declared).__name__}, expected a mapping of labeler to "
            'the name of its family, such as {"llama-a": "llama", "llama-b": "llama"}'
        )
    members: dict[Hashable, list[Hashable]] = {}
    for name in labelers:
        if declared.get(name) is not None:
            members.setdefault(declared[name], []).append(name)
    groups = [CloneGroup(tuple(names), 1.0) for names in members.values() if len(names) > 1]
    for group in clones.groups:
        free = tuple(name for name in group.members if declared.get(name) is None)
        if group.correlation >= COPY_CORRELATION and len(free) > 1:
            groups.append(CloneGroup(free, group.correlation))
    return groups


def relations(
    families: Sequence[CloneGroup],
    suspects: Sequence[CloneGroup],
    undecided: int,
    taught: bool = False,
) -> tuple[str, ...]:
    """Who shares errors or may share them, and how many verdicts hang on it, a sentence each.

    `taught` says that gold weighs what labels can mean, and so how suspects count.

    >>> print(*relations([CloneGroup(("llama-a", "llama-b"), 0.65)], [], 0))
    llama-a and llama-b share errors: together 1.2 votes.
    """
    said = [
        f"{group.names} {'hardly ' if group.correlation < HARDLY_SHARED else ''}share errors: "
        f"together {group.worth:.1f} votes."
        for group in families
    ]
    said += [
        f"{group.names} agree beyond what the others explain: either they share errors (and are "
        f"together worth {group.worth:.1f} votes), or they know more; "
        f"{'gold weighs them.' if taught else 'they count in full.'}"
        for group in suspects
    ]
    if undecided:
        verdicts = "1 verdict hangs" if undecided == 1 else f"{undecided:,} verdicts hang"
        said.append(
            f"{verdicts} on who shares errors: expert labels of a few items (gold), or families "
            "that you declare, would decide."
        )
    return tuple(said)


def merge_clones(table: Table, groups: Sequence[CloneGroup]) -> Any:
    """The table in which each group has one label per item: what most of its members said.

    The label is given by the group's first member. Where members are split evenly, the one with
    the most labels in the table decides (of equals one drawn by name). Labelers and items stay
    the same, so that any estimator can be fitted to the result.

    >>> table = LabelTable.from_matrix([[0, 1, 1, 0], [1, 1, -1, 0]])
    >>> merged = merge_clones(table, [CloneGroup((0, 1, 2), 0.9)])
    >>> merged.labeler.tolist(), merged.said.tolist()
    ([0, 3, 0, 3], [1, 0, 1, 0])
    """
    if not groups:
        return table
    first = np.arange(len(table.labelers))
    for members in _members(table.labelers, groups):
        first[members] = members[0]
    return kept(table, _merge, first, labels_given(table))


def _members(labelers: Names, groups: Sequence[CloneGroup]) -> list[list[int]]:
    code = {name: m for m, name in enumerate(labelers)}
    return [[code[name] for name in group.members] for group in groups]


def _merge(table: LabelTable, first: NDArray[np.intp], given: NDArray[np.int64]) -> LabelTable:
    K, M = len(table.classes), len(table.labelers)
    of = table.item * M + first[table.labeler]
    spoken, group = np.unique(of, return_inverse=True)
    votes = np.zeros((spoken.size, K))
    np.add.at(votes, (group, table.said), 1.0)
    # A tie goes to the class of the member with the most labels: a bonus between 0 and 1 vote.
    rank = np.empty(M)
    rank[np.lexsort((name_codes(table.labelers), given))] = np.arange(M)
    extra = np.zeros_like(votes)
    np.maximum.at(extra, (group, table.said), (1 + rank[table.labeler]) / (M + 2))
    said = (votes + extra).argmax(axis=1)
    return LabelTable.from_codes(
        spoken // M, spoken % M, said, table.items, table.labelers, table.classes
    )


def measured(
    table: Table, groups: Sequence[CloneGroup], posteriors: Floats | Spread
) -> list[CloneGroup]:
    """The groups with the correlation of errors that they show, given the posteriors."""
    found = []
    for group, members in zip(groups, _members(table.labelers, groups), strict=True):
        inside = np.zeros(len(table.labelers), np.bool_)
        inside[members] = True
        own = kept(table, keep_labelers, inside)
        rho = min(max(residual_dependence(own, posteriors), 0.0), 1.0)
        found.append(CloneGroup(group.members, rho))
    return found


def label_weights(table: LabelTable, groups: Sequence[CloneGroup]) -> Floats:
    """How many votes each label of the table counts for: 1 outside of the groups.

    >>> table = LabelTable.from_matrix([[0, 1, 1], [1, -1, 0]])
    >>> label_weights(table, [CloneGroup((0, 1), 0.5)]).round(2).tolist()
    [0.67, 0.67, 1.0, 1.0, 1.0]
    """
    weight = np.ones(len(table.labeler))
    for group, members in zip(groups, _members(table.labelers, groups), strict=True):
        inside = np.isin(table.labeler, members)
        there = np.bincount(table.item[inside], minlength=len(table.items))
        weight[inside] = 1 / (1 + (there[table.item[inside]] - 1) * group.correlation)
    return weight


def weighted_shares(table: LabelTable, groups: Sequence[CloneGroup], prior: float = 0.0) -> Floats:
    """The shares of the weighted votes, items x K; equal shares where there is no label.

    `prior` votes, shared out evenly, are added to those of each item.

    >>> weighted_shares(LabelTable.from_matrix([[0, 0], [0, 1]]), [], 2.0).tolist()
    [[0.75, 0.25], [0.5, 0.5]]
    """
    K = len(table.classes)
    votes = np.full((len(table.items), K), prior / K)
    np.add.at(votes, (table.item, table.said), label_weights(table, groups))
    votes += np.where(votes.any(axis=1, keepdims=True), 0.0, 1 / K)
    return np.asarray(votes / votes.sum(axis=1, keepdims=True))


def weighted_posteriors(
    table: LabelTable, confusions: Floats, priors: Floats, groups: Sequence[CloneGroup]
) -> Floats:
    r"""Posteriors in which each label counts for its weight: q_sk ~ pi_k prod C_mkl ** weight."""
    told = np.log(confusions.clip(TINY))[table.labeler, :, table.said]
    told *= label_weights(table, groups)[:, None]
    logs = np.tile(np.log(priors.clip(TINY)), (len(table.items), 1))
    for k in range(len(priors)):
        logs[:, k] += np.bincount(table.item, told[:, k], minlength=len(table.items))
    return softmax(logs)


def tempered(table: Table, confusions: Floats, groups: Sequence[CloneGroup]) -> Floats:
    """Confusion matrices of labelers whose label counts for its mean weight in the table.

    For a model that cannot weigh labels: a member's rows, to the power of its mean weight.
    """
    if not groups:
        return confusions
    given, weight = total(table, _weights, groups)
    power = np.where(given > 0, weight / np.maximum(given, 1), 1.0)[:, None, None]
    rows = confusions.clip(TINY) ** power
    return np.asarray(rows / rows.sum(axis=2, keepdims=True))


def _weights(table: LabelTable, groups: Sequence[CloneGroup]) -> tuple[Floats, Floats]:
    """How many labels each labeler gave, and how many votes they count for."""
    labelers = len(table.labelers)
    given = np.bincount(table.labeler, minlength=labelers).astype(np.float64)
    votes = np.bincount(table.labeler, label_weights(table, groups), minlength=labelers)
    return given, votes.astype(np.float64)
