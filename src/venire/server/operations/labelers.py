"""Who labels a stream: adding, retiring and restoring labelers, and how they agree."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from venire.errors import InputError, NotFound
from venire.server.actors import Actor
from venire.server.messages import StreamView
from venire.server.operations.streams import StreamOperations
from venire.server.panel_messages import AgreementView
from venire.server.reports.agreement import agreement_of
from venire.server.reports.skill_report import Skills
from venire.server.runtime.runtime import Runtime
from venire.server.settings import Member, StreamSettings


class LabelerOperations:
    """Changes the panel of a stream, one labeler at a time; each change is a new version."""

    def __init__(self, runtime: Runtime, streams: StreamOperations, skills: Skills) -> None:
        self.runtime, self._streams, self._skills = runtime, streams, skills
        self._kept: dict[str, tuple[int, AgreementView]] = {}

    async def add_labeler(self, stream: str, member: Member, actor: Actor | str) -> StreamView:
        """Put a labeler on the panel, or change what the panel says of it."""
        if member.id in (await self.runtime.live_stream(stream)).voices:
            raise InputError(f"{member.id!r} is the student of this stream: use another name")

        def panel(settings: StreamSettings) -> dict[str, Any]:
            others = [one for one in settings.panel if one.id != member.id]
            same = [member if one.id == member.id else one for one in settings.panel]
            return {"panel": same if len(others) < len(same) else [*others, member]}

        return await self._streams.change_stream(stream, panel, actor, "labeler.add", member.id)

    async def retire_labeler(self, stream: str, labeler: str, actor: Actor | str) -> StreamView:
        """Give a labeler no more work; its labels stay, and what it holds it may still answer."""
        live = await self.runtime.live_stream(stream)
        if labeler in live.voices:
            raise InputError(f"{labeler!r} is the student: set student to null to dismiss it")
        if labeler not in live.labelers:
            raise NotFound("labeler", labeler, "nobody of that name has been here")
        return await self._set(stream, labeler, True, actor)

    async def restore_labeler(self, stream: str, labeler: str, actor: Actor | str) -> StreamView:
        """Give a retired labeler work again."""
        live = await self.runtime.live_stream(stream)
        if labeler not in {member.id for member in live.settings.panel}:
            raise NotFound("labeler", labeler, "it is not on the panel, and so not retired")
        return await self._set(stream, labeler, False, actor)

    async def _set(
        self, stream: str, labeler: str, retired: bool, actor: Actor | str
    ) -> StreamView:
        def panel(settings: StreamSettings) -> dict[str, Any]:
            known = {member.id: member for member in settings.panel}
            known.setdefault(labeler, Member(id=labeler))
            known[labeler] = known[labeler].model_copy(update={"retired": retired})
            return {"panel": list(known.values())}

        action = "labeler.retire" if retired else "labeler.restore"
        return await self._streams.change_stream(stream, panel, actor, action, labeler)

    async def agreement(self, stream: str, wait: bool = True) -> AgreementView:
        """How the labelers agree with gold and with each other, by the latest labels.

        Who shares errors is found out first; without `wait` it is what was known last.
        """
        live = await self.runtime.live_stream(stream)
        if wait:
            await self._skills.of(live)
        count = live.statistics.labels + live.checks.gold
        kept = self._kept.get(stream)
        if kept is None or kept[0] != count:
            await self.runtime.flush()
            view = await self.runtime.threads.compute(agreement_of, self.runtime.storage, stream)
            kept = self._kept[stream] = count, view
        view, lines = kept[1], self._skills.relations(live)
        return view if view.relations == lines else replace(view, relations=lines)

    def forget(self, stream: str) -> None:
        """Drop what is kept of a deleted stream."""
        self._kept.pop(stream, None)
