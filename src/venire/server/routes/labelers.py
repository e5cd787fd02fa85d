"""Who labels a stream: joining, retiring, restoring, inviting; what was learned of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final

from fastapi import Path, Query, Request

from venire.server.admin_messages import (
    AgreementView,
    ConfusionView,
    InvitationView,
    LabelerView,
    NewInvitation,
    PanelView,
)
from venire.server.edge.access import Caller
from venire.server.edge.blind import blind_for
from venire.server.edge.bodies import InvitationBody, LabelerBody
from venire.server.edge.parameters import Part, Stream, serves
from venire.server.messages import StreamView
from venire.server.settings import Member

WANT = "The accuracy wanted of the cheapest panel. By default that of all, less 0.005."
NAMED: Final = {"labeler": "ann"}

Labeler = Annotated[str, Query(description="The id of the labeler.", min_length=1, max_length=200)]
Invitation = Annotated[str, Path(description="The id of the invitation.")]


class LabelerRoutes(Part):
    """For admins; what was learned for readers."""

    @serves("labelers", "reading", 404, 422, text="The current state.")
    async def labelers(self, who: Caller, stream: Stream) -> Sequence[LabelerView]:
        """The labelers with what was learned about them."""
        blind = await blind_for(self._service, who, stream)
        return blind.labelers(await self._service.labelers(stream))

    @serves("add_labeler", "streams", 404, 409, 413, 415, 422,
            text="It is on the panel.", example={"id": "ann", "price": 0.05})  # fmt: skip
    async def join(self, who: Caller, stream: Stream, member: Member) -> StreamView:
        """Put a labeler on the panel, or change what the panel says of it."""
        return await self._service.add_labeler(stream, member, who.actor)

    @serves("retire_labeler", "streams", 404, 409, 413, 415, 422,
            text="It is given no more work.", example=NAMED)  # fmt: skip
    async def retire(self, who: Caller, stream: Stream, sent: LabelerBody) -> StreamView:
        """Give a labeler no more work; its labels stay, and what it holds it may still answer."""
        return await self._service.retire_labeler(stream, sent.labeler, who.actor)

    @serves("restore_labeler", "streams", 404, 409, 413, 415, 422,
            text="It is given work again.", example=NAMED)  # fmt: skip
    async def restore(self, who: Caller, stream: Stream, sent: LabelerBody) -> StreamView:
        """Give a retired labeler work again."""
        return await self._service.restore_labeler(stream, sent.labeler, who.actor)

    @serves("agreement", "reading", 404, 422, text="By the latest labels.")
    async def agreement(self, who: Caller, stream: Stream) -> AgreementView:
        """How the labelers agree with gold, and with each other."""
        blind = await blind_for(self._service, who, stream)
        return blind.agreement(await self._service.agreement(stream))

    @serves("panel", "reading", 404, 409, 422)
    async def panel(
        self,
        request: Request,
        who: Caller,
        stream: Stream,
        want: Annotated[float | None, Query(description=WANT, gt=0, le=1)] = None,
    ) -> PanelView:
        """What each labeler brings and costs, and who can go; by replaying the latest labels."""
        (await blind_for(self._service, who, stream)).check_log()
        return await self._gate.long_poll(request, self._service.panel(stream, want))

    @serves("confusion", "reading", 404, 409, 422, text="The learned confusion matrix.")
    async def confusion(self, who: Caller, stream: Stream, labeler: Labeler) -> ConfusionView:
        """How often a labeler says each class of items of each true class, as learned."""
        (await blind_for(self._service, who, stream)).check_log()
        return await self._service.confusion(stream, labeler)

    @serves("invitations", "keys", 404, 422, text="Those that have not expired, oldest first.")
    async def list(self, stream: Stream) -> Sequence[InvitationView]:
        """The invitations to a stream, without their links."""
        return await self._service.invitations.list(stream)

    @serves("invite", "keys", 404, 409, 413, 415, 422, ok=201,
            text="The link is shown only once.",
            example={"labeler": "ann", "days": 14})  # fmt: skip
    async def create(self, who: Caller, stream: Stream, asked: InvitationBody) -> NewInvitation:
        """Invite somebody to label, by a link that signs in without a key."""
        return await self._service.invitations.create(
            stream, asked.labeler, asked.days, asked.once, who.actor
        )

    @serves("revoke_invitation", "keys", 404, 409, 422, text="The link and its key work no more.")
    async def revoke(self, who: Caller, stream: Stream, invitation: Invitation) -> InvitationView:
        """Revoke an invitation, and the key of who came by it."""
        return await self._service.invitations.revoke(stream, invitation, who.actor)
