"""How the labelers of a stream agree with gold, and with each other."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Final

from venire.audits.intervals import share_interval
from venire.server.panel_messages import AgreementView, GoldAgreement, PairAgreement
from venire.server.store import LabelRow, Storage

#: How many of the latest labels to look at, and of how many labelers the pairs are listed.
LABELS: Final = 20_000
SHOWN: Final = 40


def agreement_of(storage: Storage, stream: str) -> AgreementView:
    """The agreement by the latest labels in the store."""
    labels = storage.recent_labels(stream, 0.0, limit=LABELS)
    gold = storage.gold_of(stream, {row.item for row in labels})
    return agreement_over(stream, labels, gold)


def agreement_over(
    stream: str, labels: Sequence[LabelRow], gold: Mapping[str, str]
) -> AgreementView:
    """The agreement by some labels and the gold of their items.

    >>> def said(item, who, what):
    ...     return LabelRow.load(["s", item, who, what, 0.0, 0, False, None, "lease"])
    >>> rows = [said("1", "ann", "a"), said("1", "bob", "a"), said("2", "ann", "b")]
    >>> found = agreement_over("s", rows, {"1": "a", "2": "a"})
    >>> [(one.labeler, one.right, one.items) for one in found.gold]
    [('ann', 1, 2), ('bob', 1, 1)]
    >>> found.pairs
    (PairAgreement(first='ann', second='bob', items=1, same=1, kappa=None),)
    """
    known = [row for row in labels if row.item in gold]
    items = Counter(row.labeler for row in known)
    right = Counter(row.labeler for row in known if row.said == gold[row.item])
    rows = [
        GoldAgreement(name, n, right[name], *share_interval(right[name], n))
        for name, n in sorted(items.items())
    ]
    return AgreementView(stream, len(labels), tuple(rows), _pairs(labels))


def _pairs(labels: Sequence[LabelRow]) -> tuple[PairAgreement, ...]:
    busiest = Counter(row.labeler for row in labels).most_common(SHOWN)
    shown = {name for name, _ in busiest}
    said: dict[str, dict[str, str]] = defaultdict(dict)
    for row in labels:
        if row.labeler in shown:
            said[row.item][row.labeler] = row.said
    found: dict[tuple[str, str], Counter[tuple[str, str]]] = defaultdict(Counter)
    for votes in said.values():
        for one, other in combinations(sorted(votes), 2):
            found[one, other][votes[one], votes[other]] += 1
    return tuple(_pair(*names, counts) for names, counts in sorted(found.items()))


def _pair(first: str, second: str, counts: Counter[tuple[str, str]]) -> PairAgreement:
    same = sum(number for (a, b), number in counts.items() if a == b)
    return PairAgreement(first, second, counts.total(), same, kappa(counts))


def kappa(counts: Mapping[tuple[str, str], int]) -> float | None:
    """Cohen's kappa, by how often one said the first class while the other said the second.

    >>> kappa({("a", "a"): 20, ("a", "b"): 5, ("b", "a"): 10, ("b", "b"): 15})
    0.4
    """
    n = sum(counts.values())
    one, other = Counter[str](), Counter[str]()
    for (a, b), number in counts.items():
        one[a] += number
        other[b] += number
    same = sum(number for (a, b), number in counts.items() if a == b) / n
    chance = sum(one[name] * other[name] for name in one) / n**2
    return None if chance >= 1 else round((same - chance) / (1 - chance), 4)
