r"""Which items an expert should see: those whose truth tells most about which explanation holds.

Labels alone leave several explanations open (`venire.estimators.mixture`). With w_c their
weights by the gold so far, and p_c what each says of an item, its truth tells

    H( sum_c w_c p_c ) - sum_c w_c H( p_c )

about them: the mutual information between "who is right" and the label. It is 0 where all say the
same, however unsure they are. Items of one list are chosen for what they tell together: after each
choice the weights are updated by answers drawn from the mixture, many times over, and the next item
is the one that tells most on average. Equal items are in the order of a draw from the seed.

Items that are chosen teach. They are not a random sample, so they say nothing about error
rates: they must not count in bounds and rates (`venire audit`), and carry the mark `asked`.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from venire.errors import InputError
from venire.estimators.auto import Auto
from venire.estimators.dependence import Families
from venire.estimators.gold import Gold, known_classes
from venire.estimators.mixture import Mixture, candidate_rows, gold_sample, weighed
from venire.estimators.teaching import explanations
from venire.labels import LabelTable, Names
from venire.labels.sources import as_table
from venire.tools.arrays import Floats, Ints

#: Labelers who are explanations of their own here: those of most weight.
MOST_ALONE: Final = 150

#: Items that are compared: those that tell most by themselves; at a time, and at last.
AT_ONCE: Final = 4096
POOL: Final = 1000

#: How often answers are drawn.
DRAWS: Final = 32

#: A camp is named by a common prefix of at least this number of letters, or by up to this number
#: of its members.
NAME_LENGTH: Final = 3

#: More answers pay as long as they may turn this share of the verdicts.
PAYING_SHARE: Final = 0.005


class Question(NamedTuple):
    """An item to ask about: its verdict so far, what speaks for another one, and what it tells.

    `information` is in bits, about which explanation holds, before the items above are answered.
    """

    item: Hashable
    verdict: Hashable
    other: Hashable
    information: float


class Camp(NamedTuple):
    """Labelers whose errors look alike, against all others, on the answered items.

    `right` and `others` count the answers that the vote of the camp and that of the others give,
    among the `differ` answered items on which these two votes differ.
    """

    members: tuple[Hashable, ...]
    right: int
    others: int
    differ: int
    name: str

    @property
    def words(self) -> str:
        """Who is right where they differ."""
        about = f"where the camp of {self.name} and the others differ"
        if self.right == self.others:
            return f"{about}, each is right on {self.right} of {self.differ}"
        best, hits = ("the camp is", self.right), ("the others are", self.others)
        who, of = best if self.right > self.others else hits
        return f"{about}, {who} right on {of} of {self.differ}"


@dataclass(frozen=True, eq=False)
class Questions:
    """What to ask, and what the answers so far say.

    Attributes
    ----------
    asked : tuple of Question
        The items, those first that tell most.
    gold : int
        The answers so far.
    explanations : dict
        The weight of each explanation by the answers, the largest first.
    right : dict
        On how many of the answered items the verdict of an explanation is right, and of how many.
    changed : int
        How many verdicts differ from those of labels alone.
    open : float
        How many verdicts are expected to change once it is known which explanation holds.
    items : int
        All items with labels.
    camps : tuple of Camp
        Labelers whose errors look alike, and who of them and the others the answers speak for.
    """

    asked: tuple[Question, ...]
    gold: int
    explanations: dict[str, float]
    right: dict[str, tuple[int, int]]
    changed: int
    open: float
    items: int
    camps: tuple[Camp, ...] = ()

    @property
    def pays(self) -> bool:
        """Whether more answers may turn a share of the verdicts that is worth them."""
        return self.open > PAYING_SHARE * self.items

    @property
    def words(self) -> tuple[str, ...]:
        """What is known, and whether more would pay."""
        best, weight = next(iter(self.explanations.items()))
        lines = []
        if self.gold:
            hits, of = self.right.get(best, (0, 0))
            told = f"{hits} of {of}: " if of else ""
            change = (
                "1 verdict changes" if self.changed == 1 else f"{self.changed:,} verdicts change"
            )
            lines.append(f"{told}{best} explains the answers best ({weight:.0%}); {change}")
        else:
            lines.append(f"no answers yet: verdicts are those of {best} (weight {weight:.0%})")
        lines += [camp.words for camp in self.camps if camp.differ]
        about = (
            f"to know who is right would change about {self.open:,.0f} of {self.items:,} verdicts"
        )
        lines.append(
            f"{about}: {'more answers would pay' if self.pays else 'more would hardly pay'}"
        )
        return tuple(lines)

    def record(self) -> dict[str, Any]:
        """The same for JSON."""
        return {
            "asked": [q._asdict() for q in self.asked],
            "gold": self.gold,
            "explanations": {k: v for k, v in self.explanations.items() if v >= 0.001},
            "right": {name: list(pair) for name, pair in self.right.items()},
            "changed": self.changed,
            "open": self.open,
            "items": self.items,
            "pays": self.pays,
            "camps": [camp._asdict() for camp in self.camps],
        }


def questions(
    labels: Any,
    n: int = 10,
    gold: Gold | None = None,
    *,
    asked: Collection[Any] | None = None,
    families: Families | None = None,
    seed: int = 0,
) -> Questions:
    """The n items whose truth tells most about which explanation of the labels holds.

    Parameters
    ----------
    labels
        A table of labels, in any form that `as_table` takes.
    n
        How many items.
    gold
        The answers so far, item to class; also gold from elsewhere.
    asked
        Which of these items were asked, and not drawn at random. By default all of them.
    families
        Labelers who may share errors: see `Auto`.
    seed
        Of the draws.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(2, size=300)
    >>> herd = np.where(rng.random(300) < 0.6, truth, 1 - truth)
    >>> said = [herd, herd, herd, np.where(rng.random(300) < 0.95, truth, 1 - truth)]
    >>> table = LabelTable.from_matrix(np.array(said).T)
    >>> first = questions(table, 5)
    >>> answers = {one.item: int(truth[one.item]) for one in first.asked}
    >>> then = questions(table, 5, answers)
    >>> then.changed > 90, then.words[0].endswith("verdicts change")
    (True, True)
    """
    if not isinstance(n, int | np.integer) or n < 1:
        raise InputError(f"got n={n!r}, expected how many items to ask about, 1 or more")
    table = as_table(labels)
    default = Auto(families, seed=seed).fit(table)
    names, aggregates = explanations(table, default)
    camps = [group.members for group in (*default.families_, *default.suspects_)]
    return chosen(table, names, aggregates, n, known_classes(table, gold), seed, asked, camps)


def chosen(
    table: LabelTable,
    names: tuple[str, ...],
    aggregates: list[Floats],
    n: int,
    known: Ints | None,
    seed: int = 0,
    asked: Collection[Any] | None = None,
    camps: Iterable[tuple[Hashable, ...]] = (),
) -> Questions:
    """The same, by explanations that are there already; `known` has classes of items, or -1.

    `camps` are labelers whose errors look alike.
    """
    known = np.full(len(table.items), -1) if known is None else known
    answers = (
        {table.items[i] for i in np.flatnonzero(known >= 0).tolist()} if asked is None else asked
    )
    sample = gold_sample(table, known, aggregates, answers)
    mixture = weighed(table, sample, names, aggregates)
    labelled = np.diff(table.start) > 0
    verdicts, before = (
        q.argmax(axis=1) for q in (mixture.posteriors(table, aggregates), aggregates[0])
    )
    verdicts = np.where(known >= 0, known, verdicts)
    candidates = _Candidates(table, mixture, aggregates)
    unknown = np.flatnonzero(labelled & (known < 0))
    telling, hanging = np.empty(len(unknown)), 0.0
    for first in range(0, len(unknown), AT_ONCE):
        some = unknown[first : first + AT_ONCE]
        rows = candidates.rows(some)
        telling[first : first + AT_ONCE] = _information(candidates.weights[None], rows)[0]
        differ = rows.argmax(axis=2) != verdicts[some]
        hanging += float((candidates.weights[:, None] * differ).sum())
    drawn = np.random.default_rng(seed).random(len(unknown))
    pool = unknown[np.lexsort((drawn, -telling))[: max(POOL, n)]]
    listed = [
        _question(table, candidates, int(pool[i]), int(verdicts[pool[i]]), bits)
        for i, bits in _together(candidates, pool, min(n, len(pool)), seed)
    ]
    answered = np.flatnonzero(labelled & (known >= 0))
    return Questions(
        asked=tuple(listed),
        gold=len(answered),
        explanations=mixture.shares(table.labelers),
        right=_right(table, candidates, answered, known),
        changed=int((labelled & (verdicts != before)).sum()),
        open=hanging,
        items=int(labelled.sum()),
        camps=tuple(_camp(table, members, known) for members in camps),
    )


def _camp(table: LabelTable, members: tuple[Hashable, ...], known: Ints) -> Camp:
    """Whom the answers speak for where a camp and the others differ; a tie is not a vote."""
    mine = np.array([name in set(members) for name in table.labelers])[table.labeler]
    there, n, K = known[table.item] >= 0, len(known), len(table.classes)
    place = table.item * K + table.said
    votes = [np.bincount(place[there & x], minlength=n * K).reshape(n, K) for x in (mine, ~mine)]
    best = [np.where(_clear(vote), vote.argmax(axis=1), -1) for vote in votes]
    differ = (best[0] != best[1]) & (best[0] >= 0) & (best[1] >= 0)
    right, others = (int((differ & (said == known)).sum()) for said in best)
    return Camp(
        members, right, others, int(differ.sum()), camp_name(members, tuple(table.labelers))
    )


def _clear(votes: Ints) -> NDArray[np.bool_]:
    """Which items have one class with more votes than any other."""
    return np.asarray((votes == votes.max(axis=1, keepdims=True)).sum(axis=1) == 1)


def camp_name(members: Sequence[Hashable], labelers: Names) -> str:
    """What to call a camp: the beginning that only its members' names have, or their names.

    >>> camp_name(["gpt-4", "gpt-4o"], ["gpt-4", "gpt-4o", "llama"])
    'gpt-4*'
    >>> camp_name(["ann", "bob", "cat", "dan"], ["ann", "bob", "cat", "dan", "eve"])
    'ann, bob and 2 more'
    """
    named = [str(name) for name in members]
    alike = zip(*named, strict=False)
    start = named[0][: sum(1 for _ in takewhile(lambda letters: len(set(letters)) == 1, alike))]
    theirs = sum(str(name).startswith(start) for name in labelers) == len(named)
    if theirs and len(start) >= NAME_LENGTH:
        return f"{start}*"
    if len(named) <= NAME_LENGTH:
        return " and ".join([", ".join(named[:-1]), named[-1]])
    return f"{', '.join(named[: NAME_LENGTH - 1])} and {len(named) - NAME_LENGTH + 1} more"


class _Candidates:
    """The explanations: aggregates, taught votes, and the labelers of most weight alone."""

    def __init__(self, table: LabelTable, mixture: Mixture, aggregates: list[Floats]) -> None:
        self.table, self.mixture = table, mixture
        self.fixed = candidate_rows(table, mixture, *aggregates)
        self.alone = np.argsort(-mixture.single, kind="stable")[:MOST_ALONE]
        taught = [f"taught by gold {k + 1}" for k in range(len(mixture.taught))]
        singles = [f"{table.labelers[m]} alone" for m in self.alone]
        self.names = (*mixture.names, *taught, *singles)
        weights = np.concatenate([mixture.weights, mixture.single[self.alone]])
        self.weights = weights / weights.sum()

    def rows(self, items: Ints) -> Floats:
        """What each says of these items, candidates x items x K."""
        fixed, usual = self.fixed[:, items], self.fixed[0, items]
        found = np.repeat(usual[None], len(self.alone), axis=0)
        place = np.full(len(self.table.labelers), -1)
        place[self.alone] = np.arange(len(self.alone))
        where = np.full(len(self.table.items), -1)
        where[items] = np.arange(len(items))
        here, who = where[self.table.item], place[self.table.labeler]
        there = (here >= 0) & (who >= 0)
        own = self.mixture.tables[self.table.labeler[there], self.table.said[there]]
        found[who[there], here[there]] = own
        return np.concatenate([fixed, found])


def _information(weights: Floats, rows: Floats) -> Floats:
    """What the label of each item tells about the candidates, in bits, for each row of weights."""
    C, n, K = rows.shape
    mean = (weights @ rows.reshape(C, n * K)).reshape(len(weights), n, K)
    found = _entropy(mean) - weights @ _entropy(rows)
    return np.asarray(np.maximum(found, 0.0))


def _entropy(q: Floats) -> Floats:
    return np.asarray(-(q * np.log2(np.maximum(q, 1e-300))).sum(axis=-1))


def _together(candidates: _Candidates, pool: Ints, n: int, seed: int) -> list[tuple[int, float]]:
    """The places in the pool, one after the other, and what each tells by itself."""
    rng = np.random.default_rng([seed, 1])
    rows = candidates.rows(pool)
    alone = _information(candidates.weights[None], rows)[0]
    weights = np.tile(candidates.weights, (DRAWS, 1))
    worlds = rng.choice(len(candidates.weights), DRAWS, p=candidates.weights)
    left, found = np.ones(len(pool), np.bool_), []
    for _ in range(n):
        telling = np.where(left, _information(weights, rows).mean(axis=0), -1.0)
        i = int(np.argmax(telling))
        left[i] = False
        found.append((i, float(alone[i])))
        chances = np.cumsum(rows[worlds, i], axis=1)
        said = (rng.random((DRAWS, 1)) * chances[:, -1:] > chances).sum(axis=1)
        weights = weights * rows[:, i, said].T
        weights /= weights.sum(axis=1, keepdims=True)
    return found


def _question(
    table: LabelTable, candidates: _Candidates, item: int, verdict: int, bits: float
) -> Question:
    mean = np.einsum("c,ck->k", candidates.weights, candidates.rows(np.array([item]))[:, 0])
    mean[verdict] = -1.0
    other = table.classes[int(mean.argmax())]
    return Question(table.items[item], table.classes[verdict], other, bits)


def _right(
    table: LabelTable, candidates: _Candidates, answered: Ints, known: Ints
) -> dict[str, tuple[int, int]]:
    """On how many answered items each explanation is right; of labelers, those they labelled."""
    if not answered.size:
        return {}
    hit = candidates.rows(answered).argmax(axis=2) == known[answered]
    found = {
        name: (int(row.sum()), len(answered))
        for name, row in zip(candidates.names, hit, strict=False)
        if not name.startswith("taught")
    }
    truth = known[table.item]
    for m in candidates.alone.tolist():
        mine = (table.labeler == m) & (truth >= 0)
        right = int((table.said[mine] == truth[mine]).sum())
        found[f"{table.labelers[m]} alone"] = right, int(mine.sum())
    return found
