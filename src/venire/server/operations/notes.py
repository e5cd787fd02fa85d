"""What labelers say beside their labels: comments, flags, and that they are not sure."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from venire.errors import InputError, StateError, TooMuch
from venire.model import LeaseStatus, NoteKind, rationale_of
from venire.server.actors import PROGRAM, Actor
from venire.server.messages import Answer, LabelIn, NoteView, Outcome, Progress
from venire.server.operations.labelling import LabellingOperations, Labels
from venire.server.reports.event_json import note_view
from venire.server.store import NoteRow
from venire.server.stream import grants
from venire.server.stream.change_batch import Batch
from venire.server.tokens import hashed

if TYPE_CHECKING:
    from venire.server.runtime.runtime import Runtime
    from venire.server.stream.live_stream import LiveStream, Moment

#: Maximum length of a note, in characters.
LONGEST_NOTE: Final = 2_000


class NoteOperations(LabellingOperations):
    """Takes and lists the notes of labelers."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(runtime)
        self._noting = asyncio.Lock()  # of two that are the same, the second finds the first

    async def abstain(self, token: str, labeler: str | None = None, key: str | None = None) -> None:
        """The labeler of a lease is not sure: the item goes to others, and that is counted.

        Sent again it changes nothing.
        """
        found = await self._find_lease(hashed(token), labeler)
        if isinstance(found, Answer):
            raise StateError("the item is already labelled: it is too late to be unsure of it")
        live, lease, ended = found
        async with self._noting:
            known = await self._noted(live.name, lease.item, lease.labeler, NoteKind.UNSURE)
            live = await self.runtime.live_stream(live.name)
            batch, moment = Batch(key), self.runtime.moment()
            if not ended and live.leases.get(lease.token_hash) is lease:
                grants.give_back(live, lease, LeaseStatus.RELEASED, True, batch, moment)
            else:
                grants.bar(live, lease.item, lease.labeler, batch, moment)
            if not known:
                live.labelers.touch(lease.labeler, moment.now).unsure += 1
                _note(live, lease.item, lease.labeler, NoteKind.UNSURE, "", batch, moment)
            done = self.runtime.commit(live, batch)
        await done

    async def add_labels(
        self, stream: str, labels: Labels, actor: Actor | str = PROGRAM, own: bool = False
    ) -> list[Outcome]:
        """Add labels without leases, see `LabellingOperations.add_labels`; the outcome of each.

        Where what was said is None, the labeler is not sure: that is kept as `abstain` keeps it,
        with the rationale as the text of the note.
        """
        unsure = [k for k, row in enumerate(labels) if _said(row) is None]
        if not unsure:
            return await super().add_labels(stream, labels, actor, own)
        sure = [row for row in labels if _said(row) is not None]
        outcomes = await super().add_labels(stream, sure, actor, own)
        for k in unsure:
            row = labels[k]
            told = LabelIn(*row) if isinstance(row, tuple) else row
            outcomes.insert(k, await self._unsure(stream, told, Actor.of(actor).key, own))
        return outcomes

    async def _unsure(self, stream: str, told: LabelIn, key: str | None, own: bool) -> Outcome:
        """A labeler says without a lease that it is not sure of an item."""
        item, labeler, why = told.item, told.labeler, rationale_of(told.rationale) or ""
        async with self._noting:
            if await self._noted(stream, item, labeler, NoteKind.UNSURE):
                return Outcome("exists")
            refused = await self._why_not_unsure(stream, item, labeler, own)
            if refused is not None:
                return refused
            live = await self.runtime.live_stream(stream)
            batch, moment = Batch(key), self.runtime.moment()
            try:
                if labeler not in live.labelers:
                    grants.seat(live, labeler, batch, moment)
            except TooMuch as error:
                return Outcome("refused", "panel_full", str(error))
            grants.bar(live, item, labeler, batch, moment)
            live.labelers.touch(labeler, moment.now).unsure += 1
            _note(live, item, labeler, NoteKind.UNSURE, why, batch, moment)
            done = self.runtime.commit(live, batch)
        await done
        return Outcome("accepted")

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
                _note(live, item, who, kind, text, batch, self.runtime.moment())
            done = self.runtime.commit(live, batch)
        await done

    async def _noted(
        self, stream: str, item: str, labeler: str, kind: str, text: str | None = None
    ) -> bool:
        """Whether the labeler has said this of the item before; without `text`, any of the kind."""
        read = self.runtime.storage.notes
        rows = await self.runtime.read_committed(read, stream, 0, None, item)
        said = [row.text for row in rows if (row.labeler, row.kind) == (labeler, kind)]
        return bool(said) if text is None else text in said

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


def _said(row: LabelIn | tuple[Any, ...]) -> str | None:
    said: str | None = row[2] if isinstance(row, tuple) else row.said
    return said


def _note(
    live: LiveStream,
    item: str,
    labeler: str,
    kind: NoteKind,
    text: str,
    batch: Batch,
    moment: Moment,
) -> None:
    """Number a note, count it, and have it written."""
    live.note_n += 1
    live.notes[kind] += 1
    row = NoteRow(
        stream=live.name,
        n=live.note_n,
        item=item,
        labeler=labeler,
        kind=kind,
        text=text,
        at=moment.wall,
        key=batch.key,
    )
    batch.notes.append(row)
