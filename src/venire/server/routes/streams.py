"""Streams, and who labels them: create, change live, archive, delete; join, retire, invite."""

from __future__ import annotations

import pathlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Final

from fastapi import Path, Query, Request
from pydantic import ValidationError
from pydantic_core import to_json

from venire.errors import FileError
from venire.files.trees import parse_tree
from venire.model import Role
from venire.server.admin_messages import (
    AgreementView,
    ConfusionView,
    InvitationView,
    LabelerView,
    NewInvitation,
    PanelView,
)
from venire.server.edge.blind import Blind
from venire.server.edge.bodies import (
    JSON,
    InvitationBody,
    LabelerBody,
    NewStream,
    beside,
    media_type,
    parsed,
    read,
    read_object,
    refused,
)
from venire.server.edge.errors import RequestError
from venire.server.edge.guard import Caller
from venire.server.edge.handlers import Part, Stream, dumps, serves
from venire.server.edge.peers import all_streams
from venire.server.messages import ArchivedStream, Deleted, SettingsVersion, StreamView
from venire.server.settings import Member, StreamSettings, page_of

#: Settings of a stream as people write them, by type, and the most bytes of them: YAML is slow.
TREES: Final = {"application/toml": "toml", "application/yaml": "yaml"}
LONGEST_TREE: Final = 64 * 1024
AS_TREES: Final = {kind: {"schema": {"type": "string"}} for kind in TREES}

NEW: Final = {
    "name": "posts",
    "classes": ["spam", "ok"],
    "panel": [{"id": "ann"}, {"id": "bob"}],
}
CHANGES: Final = {"max_overlap": 5, "min_confidence": 0.95}


class StreamRoutes(Part):
    """Management of streams, for operators."""

    @serves("streams", "streams", text="All streams, by name.")
    async def list(self, request: Request, who: Caller) -> Sequence[StreamView]:
        """All streams but archived ones; a labeler's key sees of their settings what it needs."""
        return [_seen_by(who, view) for view in await all_streams(self._gate, request)]

    @serves("archived", "streams", text="The streams that are archived, by name.")
    async def archived(self) -> Sequence[ArchivedStream]:
        """The streams that are archived."""
        return await self._service.archived()

    @serves("create_stream", "streams", 409, ok=201,
            text="The stream exists with these settings.", body=NewStream, example=NEW,
            openapi_extra={"content": AS_TREES})  # fmt: skip
    async def create(self, request: Request, who: Caller) -> StreamView:
        """Create a stream; idempotent for the same name and settings."""
        new = await read_stream(request)
        settings = StreamSettings.model_validate(new.model_dump(exclude={"name"}))
        made = await self._service.create_stream(new.name, settings, who.actor)
        if self._gate.peers is not None:
            self._gate.peers.about(request, new.name)
        return made

    @serves("stream", "streams", text="The stream as it is now.")
    async def show(self, who: Caller, stream: Stream) -> StreamView:
        """A stream as it is now; a labeler's key sees only what the page shows of its settings."""
        return _seen_by(who, await self._service.stream(stream))

    @serves("change_stream", "streams", 409,
            text="Changed, without a restart.", body="StreamChanges", example=CHANGES)  # fmt: skip
    async def change(self, request: Request, who: Caller, stream: Stream) -> StreamView:
        """Change some of the settings, live; each change is a new version."""
        changes = await read_object(request)
        settings = (await self._service.stream(stream)).settings

        def check() -> None:
            try:
                StreamSettings.model_validate_json(dumps({**settings, **changes}), strict=True)
            except ValidationError as error:
                raise refused(error) from error

        await beside(check)
        return await self._service.change_stream(stream, changes, who.actor)

    @serves("delete_stream", "streams", 409,
            text="The stream is deleted, with all that belonged to it.")  # fmt: skip
    async def delete(self, who: Caller, stream: Stream) -> Deleted:
        """Delete a closed stream permanently."""
        return await self._service.delete_stream(stream, who.actor)

    @serves("settings_history", "streams", text="Every version, oldest first.")
    async def history(self, stream: Stream) -> Sequence[SettingsVersion]:
        """Every version of the settings: what, when and by whom."""
        return await self._service.settings_history(stream)

    @serves("pause", "streams", 409,
            text="Paused: no work is handed out, the slot clock stands still.")  # fmt: skip
    async def pause(self, who: Caller, stream: Stream) -> StreamView:
        """Stop handing out work; labels and items are still accepted."""
        return await self._service.pause(stream, who.actor)

    @serves("resume", "streams", 409, text="Resumed.")
    async def resume(self, who: Caller, stream: Stream) -> StreamView:
        """Resume a paused stream."""
        return await self._service.resume(stream, who.actor)

    @serves("close_stream", "streams", 409,
            text="Closed: no new items; the open ones are finished.")  # fmt: skip
    async def close(self, who: Caller, stream: Stream) -> StreamView:
        """Drain the stream: no new items, the open ones are finished."""
        return await self._service.close(stream, who.actor)

    @serves("archive_stream", "streams", 409, text="Archived: it can be read, and is not listed.")
    async def archive(self, who: Caller, stream: Stream) -> StreamView:
        """Put a closed stream away, once its items have left: it can only be read."""
        return await self._service.archive(stream, who.actor)

    @serves("restore_stream", "streams", 409, text="Restored: it is closed.")
    async def restore(self, who: Caller, stream: Stream) -> StreamView:
        """Bring an archived stream back, closed as it was."""
        return await self._service.restore(stream, who.actor)


async def read_stream(request: Request) -> NewStream:
    """A stream to create: JSON, or TOML or YAML as `venire stream` takes it."""
    kind = media_type(request, (JSON, *TREES))
    if kind == JSON:
        return await read(request, NewStream)
    body = await request.body()
    if len(body) > LONGEST_TREE:
        raise RequestError(
            413,
            "body_too_large",
            f"got {len(body):,} bytes of {TREES[kind].upper()}, expected at most {LONGEST_TREE:,}",
            hint="send JSON",
        )
    return await beside(lambda: _of_tree(body, pathlib.Path(f"stream.{TREES[kind]}")))


def _of_tree(body: bytes, name: pathlib.Path) -> NewStream:
    r"""The stream of a text of settings.

    >>> body = b"name: posts\nclasses: [spam, ok]\nmin_labels: 2"
    >>> _of_tree(body, pathlib.Path("stream.yaml")).min_labels
    2
    """
    try:
        content = parse_tree(body.decode("utf-8-sig"), name).content
    except UnicodeDecodeError:
        raise FileError(name, None, "this is not UTF-8 text") from None
    if not isinstance(content, dict):
        got = type(content).__name__
        raise FileError(name, None, f"got a {got}, expected settings such as name: posts")
    return parsed(NewStream, to_json(content, fallback=str))


def _seen_by(who: Caller, view: StreamView) -> StreamView:
    """Labelers do not see who else is on the panel, nor anybody's competence."""
    if who.role != Role.LABELER:
        return Blind(frozenset(), who.role == Role.REVIEWER).stream(view)
    return replace(view, settings=page_of(view.settings), student=None)


WANT = "The accuracy wanted of the cheapest panel. By default that of all, less 0.005."
NAMED: Final = {"labeler": "ann"}

Labeler = Annotated[str, Query(description="The id of the labeler.", min_length=1, max_length=200)]
Invitation = Annotated[str, Path(description="The id of the invitation.")]


class LabelerRoutes(Part):
    """For admins; what was learned for readers."""

    @serves("labelers", "reading", text="The current state.")
    async def labelers(self, blind: Blind, stream: Stream) -> Sequence[LabelerView]:
        """The labelers with what was learned about them."""
        return blind.labelers(await self._service.labelers(stream))

    @serves("add_labeler", "streams", 409,
            text="It is on the panel.", example={"id": "ann", "price": 0.05})  # fmt: skip
    async def join(self, who: Caller, stream: Stream, member: Member) -> StreamView:
        """Put a labeler on the panel, or change what the panel says of it."""
        return await self._service.add_labeler(stream, member, who.actor)

    @serves("retire_labeler", "streams", 409, text="It is given no more work.", example=NAMED)
    async def retire(self, who: Caller, stream: Stream, sent: LabelerBody) -> StreamView:
        """Give a labeler no more work; its labels stay, and what it holds it may still answer."""
        return await self._service.retire_labeler(stream, sent.labeler, who.actor)

    @serves("restore_labeler", "streams", 409, text="It is given work again.", example=NAMED)
    async def restore(self, who: Caller, stream: Stream, sent: LabelerBody) -> StreamView:
        """Give a retired labeler work again."""
        return await self._service.restore_labeler(stream, sent.labeler, who.actor)

    @serves("agreement", "reading", text="By the latest labels.")
    async def agreement(self, blind: Blind, stream: Stream) -> AgreementView:
        """How the labelers agree with gold, and with each other."""
        return blind.agreement(await self._service.agreement(stream))

    @serves("panel", "reading", 409)
    async def panel(
        self,
        request: Request,
        blind: Blind,
        stream: Stream,
        want: Annotated[float | None, Query(description=WANT, gt=0, le=1)] = None,
    ) -> PanelView:
        """What each labeler brings and costs, and who can go; by replaying the latest labels."""
        blind.check_log()
        return await self._gate.long_poll(request, self._service.panel(stream, want))

    @serves("confusion", "reading", 409, text="The learned confusion matrix.")
    async def confusion(self, blind: Blind, stream: Stream, labeler: Labeler) -> ConfusionView:
        """How often a labeler says each class of items of each true class, as learned."""
        blind.check_log()
        return await self._service.confusion(stream, labeler)

    @serves("invitations", "keys", text="Those that have not expired, oldest first.")
    async def list(self, stream: Stream) -> Sequence[InvitationView]:
        """The invitations to a stream, without their links."""
        return await self._service.invitations.list(stream)

    @serves("invite", "keys", 409, ok=201,
            text="The link is shown only once.",
            example={"labeler": "ann", "days": 14})  # fmt: skip
    async def create(self, who: Caller, stream: Stream, asked: InvitationBody) -> NewInvitation:
        """Invite somebody to label, by a link that signs in without a key."""
        return await self._service.invitations.create(
            stream, asked.labeler, asked.days, asked.once, who.actor
        )

    @serves("revoke_invitation", "keys", 409, text="The link and its key work no more.")
    async def revoke(self, who: Caller, stream: Stream, invitation: Invitation) -> InvitationView:
        """Revoke an invitation, and the key of who came by it."""
        return await self._service.invitations.revoke(stream, invitation, who.actor)
