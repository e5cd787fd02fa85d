"""Invitations to label a stream, by a link: make, list and revoke them."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import FastAPI, Path, Request, Response

from venire.server.admin_messages import InvitationView, NewInvitation
from venire.server.edge.answers import body, json_answer, says
from venire.server.edge.bodies import InvitationBody, read
from venire.server.edge.guard import Gate, by_hand, caller
from venire.server.edge.parameters import Stream, stream_parameter

__all__ = ["InvitationRoutes"]

Invitation = Annotated[str, Path(description="The id of the invitation.")]
EXAMPLE: Final = {"labeler": "ann", "days": 14}


class InvitationRoutes:
    """Management of invitations, for operators; the page that a link leads to is a page."""

    def __init__(self, gate: Gate) -> None:
        """Behind a gate."""
        self._invitations = gate.service.invitations

    def add(self, app: FastAPI) -> None:
        """Add the routes."""
        many = "/v1/streams/{stream}/invitations"
        app.add_api_route(
            many,
            self.list,
            methods=["GET"],
            tags=["keys"],
            response_model=list[InvitationView],
            responses=says(404, 422, text="Those that have not expired, oldest first."),
        )
        app.add_api_route(
            many,
            self.create,
            methods=["POST"],
            tags=["keys"],
            status_code=201,
            response_model=NewInvitation,
            responses=says(404, 409, 413, 415, 422, ok=201, text="The link is shown only once."),
            openapi_extra=stream_parameter(body("InvitationBody", example=EXAMPLE)),
        )
        app.add_api_route(
            f"{many}/{{invitation}}",
            self.revoke,
            methods=["DELETE"],
            tags=["keys"],
            response_model=InvitationView,
            responses=says(404, 409, 422, text="The link and its key work no more."),
        )

    async def list(self, stream: Stream) -> Response:
        """The invitations to a stream, without their links."""
        return json_answer(await self._invitations.list(stream))

    @by_hand
    async def create(self, request: Request) -> Response:
        """Invite somebody to label, by a link that signs in without a key."""
        asked, stream = await read(request, InvitationBody), request.path_params["stream"]
        made = await self._invitations.create(
            stream, asked.labeler, asked.days, asked.once, caller(request).actor
        )
        return json_answer(made, 201)

    async def revoke(self, request: Request, stream: Stream, invitation: Invitation) -> Response:
        """Revoke an invitation, and the key of who came by it."""
        revoked = await self._invitations.revoke(stream, invitation, caller(request).actor)
        return json_answer(revoked)
