"""The labelers of a stream: joining, retiring, and how they agree with gold and each other."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final

from venire.audits.intervals import share_interval
from venire.errors import InputError, NotFound
from venire.server.admin_messages import AgreementView, GoldAgreement, PairAgreement, SelfAgreement
from venire.server.operations.streams import StreamOperations
from venire.server.settings import Member, StreamSettings

if TYPE_CHECKING:
    from venire.server.actors import Actor
    from venire.server.messages import StreamView
    from venire.server.runtime.runtime import Runtime
    from venire.server.store import LabelRow, Storage

#: How many of the latest labels to look at, and of how many labelers the pairs are listed.
LABELS: Final = 20_000
SHOWN: Final = 40


def agreement_of(storage: Storage, stream: str) -> AgreementView:
    """The agreement by the latest labels in the store."""
    labels = storage.recent_labels(stream, 0.0, limit=LABELS)
    gold = storage.gold_of(stream, {row.item for row in labels})
    found = agreement_over(stream, labels, gold)
    return replace(found, itself=_with_themselves(storage.repeat_counts(stream)))


def _with_themselves(counts: Mapping[str, tuple[int, int]]) -> tuple[SelfAgreement, ...]:
    return tuple(
        SelfAgreement(name, items, same, *share_interval(same, items))
        for name, (items, same) in sorted(counts.items())
    )


def agreement_over(
    stream: str, labels: Sequence[LabelRow], gold: Mapping[str, str]
) -> AgreementView:
    """The agreement by some labels and the gold of their items.

    >>> from venire.server.store import LabelRow
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


class LabelerOperations(StreamOperations):
    """Changes the panel of a stream, one labeler at a time; each change is a new version."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(runtime)
        self._agreements: dict[str, tuple[int, AgreementView]] = {}

    async def add_labeler(self, stream: str, member: Member, actor: Actor | str) -> StreamView:
        """Put a labeler on the panel, or change what the panel says of it."""
        if member.id in (await self.runtime.live_stream(stream)).voices:
            raise InputError(f"{member.id!r} is the student of this stream: use another name")

        def panel(settings: StreamSettings) -> dict[str, Any]:
            others = [one for one in settings.panel if one.id != member.id]
            same = [member if one.id == member.id else one for one in settings.panel]
            return {"panel": same if len(others) < len(same) else [*others, member]}

        return await self.change_stream(stream, panel, actor, "labeler.add", member.id)

    async def retire_labeler(self, stream: str, labeler: str, actor: Actor | str) -> StreamView:
        """Give a labeler no more work; its labels stay, and what it holds it may still answer."""
        live = await self.runtime.live_stream(stream)
        if labeler in live.voices:
            raise InputError(f"{labeler!r} is the student: set student to null to dismiss it")
        if labeler not in live.labelers:
            raise NotFound("labeler", labeler, "nobody by that name has been here")
        return await self._retire(stream, labeler, True, actor)

    async def restore_labeler(self, stream: str, labeler: str, actor: Actor | str) -> StreamView:
        """Give a retired labeler work again."""
        live = await self.runtime.live_stream(stream)
        if labeler not in {member.id for member in live.settings.panel}:
            raise NotFound("labeler", labeler, "it is not on the panel, so it is not retired")
        return await self._retire(stream, labeler, False, actor)

    async def _retire(
        self, stream: str, labeler: str, retired: bool, actor: Actor | str
    ) -> StreamView:
        def panel(settings: StreamSettings) -> dict[str, Any]:
            known = {member.id: member for member in settings.panel}
            known.setdefault(labeler, Member(id=labeler))
            known[labeler] = known[labeler].model_copy(update={"retired": retired})
            return {"panel": list(known.values())}

        action = "labeler.retire" if retired else "labeler.restore"
        return await self.change_stream(stream, panel, actor, action, labeler)

    async def agreement(self, stream: str, wait: bool = True) -> AgreementView:
        """How the labelers agree with gold and with each other, by the latest labels.

        Who shares errors is found out first; without `wait` it is what was known last.
        """
        live = await self.runtime.live_stream(stream)
        if wait:
            await self.skills.of(live)
        count = live.statistics.labels + live.checks.gold + live.repeats.answers
        kept = self._agreements.get(stream)
        if kept is None or kept[0] != count:
            await self.runtime.flush()
            view = await self.runtime.threads.compute(agreement_of, self.runtime.storage, stream)
            kept = self._agreements[stream] = count, view
        view, lines = kept[1], self.skills.relations(live)
        return view if view.relations == lines else replace(view, relations=lines)
