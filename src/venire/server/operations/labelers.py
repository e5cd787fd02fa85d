"""The labelers of a stream: joining, retiring, how they agree, and what they say beside labels."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final

from venire.audits.intervals import share_interval
from venire.errors import InputError, NotFound, StateError
from venire.model import NoteKind
from venire.server.actors import Actor
from venire.server.admin_messages import (
    AgreementView,
    ConfusionView,
    GoldAgreement,
    LabelerView,
    LessonsView,
    PairAgreement,
    PanelView,
    SelfAgreement,
)
from venire.server.messages import Answer, NoteView, Progress, StreamView
from venire.server.operations.labelling import LabellingOperations
from venire.server.operations.streams import StreamOperations
from venire.server.reports.event_json import note_view
from venire.server.reports.replays import panel_of
from venire.server.reports.skill_report import MIN_LABELS, Skill
from venire.server.settings import LONGEST_NOTE, Member, StreamSettings
from venire.server.stream import grants
from venire.server.stream.change_batch import Batch
from venire.server.stream.labels import take_note
from venire.server.stream.statistics import quantile
from venire.server.tokens import hashed

if TYPE_CHECKING:
    from venire.server.runtime.runtime import Runtime
    from venire.server.store import LabelRow, Storage
    from venire.server.stream.live_stream import LiveStream

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

    def _forget(self, stream: str) -> None:
        super()._forget(stream)
        self._agreements.pop(stream, None)

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

    async def labelers(self, stream: str, wait: bool = True) -> list[LabelerView]:
        """The labelers with what was learned about them; without `wait` what was known last."""
        live = await self.runtime.live_stream(stream)
        skills = await self.skills.of(live) if wait else self.skills.latest(live)
        live = await self.runtime.live_stream(stream)
        now, known = self.runtime.clock.monotonic(), live.engine.competences or {}
        names = sorted(live.labelers.seated | set(live.labelers))
        views = [
            labeler_view(live, name, known.get(name), skills.get(name, Skill()), now)
            for name in names
        ]
        await self.runtime.flush()
        return views

    async def relations(self, stream: str) -> tuple[str, ...]:
        """Who shares errors, a sentence each, as far as it is known by now."""
        return self.skills.relations(await self.runtime.live_stream(stream))

    async def confusion(self, stream: str, labeler: str) -> ConfusionView:
        """How often a labeler says each class of items of each true class."""
        live = await self.runtime.live_stream(stream)
        if labeler not in live.labelers:
            raise NotFound("labeler", labeler)
        skill = (await self.skills.of(live)).get(labeler, Skill())
        if skill.confusion is None:
            raise StateError(
                f"no confusion matrix is learned of {labeler!r}: it takes {MIN_LABELS} labels of "
                "three labelers, and is kept of those who labelled most lately"
            )
        rows = tuple(tuple(row) for row in skill.confusion.tolist())
        return ConfusionView(labeler, tuple(live.settings.classes), rows)

    async def lessons(self, stream: str) -> LessonsView:
        """How the student of a stream learned."""
        live = await self.runtime.live_stream(stream)
        student = live.settings.student
        lessons = tuple(live.pupil.lessons) if student else ()
        return LessonsView(stream, student.id if student else None, lessons)

    async def panel(self, stream: str, want: float | None = None) -> PanelView:
        """What each labeler brings and costs, and the cheapest panel of the wanted accuracy."""
        return await panel_of(self.runtime, stream, want)


class NoteOperations(LabellingOperations):
    """Takes and lists the notes of labelers."""

    async def add_note(
        self,
        token: str,
        kind: NoteKind,
        text: str = "",
        labeler: str | None = None,
        key: str | None = None,
    ) -> None:
        """Comment on the item of a lease, or flag it; also after it was answered.

        The same note again changes nothing.
        """
        if kind == NoteKind.UNSURE or len(text) > LONGEST_NOTE:
            raise InputError(
                f"got a note of the kind {kind} with {len(text):,} characters, expected comment or "
                f"flag, and at most {LONGEST_NOTE:,}"
            )
        if kind == NoteKind.COMMENT and not text.strip():
            raise InputError("got a comment without a text, expected one: or send a flag")
        found = await self._find_lease(hashed(token), labeler)
        if isinstance(found, Answer):
            stream, item, who = found.stream, found.item, found.labeler
            await self.runtime.writable(stream)
        else:
            stream, item, who = found[0].name, found[1].item, found[1].labeler
        async with self._noting:
            known = await self._noted(stream, item, who, kind, text)
            live = await self.runtime.live_stream(stream)
            batch = Batch(key)
            if not known:
                take_note(live, item, who, kind, text, batch, self.runtime.moment())
            done = self.runtime.commit(live, batch)
        await done

    async def notes(
        self, stream: str, after: int = 0, limit: int = 1000, item: str | None = None
    ) -> list[NoteView]:
        """The notes after a cursor, oldest first; of one item, or all."""
        await self.runtime.live_stream(stream)
        read = self.runtime.storage.notes
        rows = await self.runtime.read_committed(read, stream, after, limit, item)
        return [note_view(row) for row in rows]

    async def progress(self, stream: str, labeler: str, since: float) -> Progress:
        """How many labels a labeler has given since a time, and in all."""
        live = await self.runtime.live_stream(stream)
        record = live.labelers.get(labeler)
        read = self.runtime.storage.labels_since
        labels = await self.runtime.read_committed(read, stream, since, labeler)
        total, unsure = (0, 0) if record is None else (record.labels, record.unsure)
        left = grants.unanswered(live, labeler) if live.settings.show_left else None
        return Progress(stream, labeler, since, labels, total, unsure, left)


def labeler_view(
    live: LiveStream, name: str, skill: float | None, measured: Skill, now: float
) -> LabelerView:
    """A labeler, with its skill and interval.

    Until there are labels to measure it by, the skill is the engine's belief.
    """
    record, holds, times = live.labelers[name], live.leases.holds(name), live.lead_times.of(name)
    return LabelerView(
        id=name,
        kind=record.kind,
        state=record.state(holds, now),
        capacity=record.capacity,
        holds=holds,
        skill=skill if measured.skill is None else measured.skill,
        skill_low=measured.low,
        skill_high=measured.high,
        labels=record.labels,
        late_labels=record.late,
        expired=record.expired,
        lead_median=quantile(times, 0.5),
        lead_p90=quantile(times, 0.9),
        drifting=measured.drifting,
        clone_of=measured.clone_of,
        price=record.price,
        money=record.money,
        trusted=name in live.trusted,
        retired=name in live.settings.retired,
        unsure=record.unsure,
        agreement=measured.agreement,
        family=measured.family,
    )
