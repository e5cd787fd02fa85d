"""Pulling work and labelling it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

from fastapi import FastAPI, Query, Request, Response

from venire.model import NoWork
from venire.server.edge.answers import body, json_answer, outcomes_answer, payload_answer, says
from venire.server.edge.bodies import LabelBody, ReleaseBody, SaidBody, read, read_list
from venire.server.edge.errors import RequestError
from venire.server.edge.guard import Gate, by_hand, caller
from venire.server.edge.parameters import (
    Stream,
    Wait,
    flag,
    flag_parameter,
    stream_parameter,
    token_parameter,
)
from venire.server.messages import Answer, Lease, Nothing
from venire.server.page_settings import Block
from venire.server.pages.layouts import lay_out
from venire.server.settings import MOST_AHEAD, Name

__all__ = ["WorkRoutes"]

AHEAD = "How many items the labeler may hold beyond its capacity; the stream's `ahead` at most."
SHOWN = "Whether to add `shown`: the parts that the labelling page draws, by the stream's layout."
LABELER = "The labeler; a labeler's own key may omit it."
REASON = {
    "description": "Why: " + ", ".join(NoWork),
    "schema": {"type": "string", "enum": list(NoWork)},
}
LEASED = (
    "Only labels of items that their labeler holds or held, unless the stream has unasked_labels."
)
EXAMPLE = [{"item": "post-1", "labeler": "ann", "said": "ok"}]


class WorkRoutes:
    """For labelers."""

    def __init__(self, gate: Gate) -> None:
        """Behind a gate."""
        self._gate, self._service = gate, gate.service

    def add(self, app: FastAPI) -> None:
        """Add the routes."""
        for verb, endpoint, model, text in (
            ("label", self.label, "SaidBody", "Labelled; a retry gets the first answer."),
            ("heartbeat", self.heartbeat, None, "The new expiry time of the lease."),
            ("release", self.release, "ReleaseBody", "Released."),
        ):
            app.add_api_route(
                f"/v1/assignments/{{token}}/{verb}",
                endpoint,
                methods=["POST"],
                tags=["work"],
                response_model=Answer if verb == "label" else None,
                responses=says(404, 409, 410, 413, 415, 422, text=text),
                openapi_extra=token_parameter(body(model) if model else {}),
            )
        app.add_api_route(
            "/v1/streams/{stream}/next",
            self.next,
            methods=["GET"],
            tags=["work"],
            response_model=Lease,
            responses={
                **says(404, 409, 422, text="An item to label."),
                204: {
                    "description": "No work; Venire-Reason says why.",
                    "headers": {"Venire-Reason": REASON},
                },
            },
        )
        app.add_api_route(
            "/v1/streams/{stream}/held",
            self.held,
            methods=["POST"],
            tags=["work"],
            response_model=list[Lease],
            responses=says(404, 422, text="The labeler's open leases, with new tokens."),
        )
        app.add_api_route(
            "/v1/streams/{stream}/labels",
            self.add_labels,
            methods=["POST"],
            tags=["work"],
            responses=says(404, 409, 413, 415, 422, text="The outcome of the labels."),
            openapi_extra=flag_parameter(
                "leased", LEASED, stream_parameter(body("LabelBody", lists=True, example=EXAMPLE))
            ),
        )

    @by_hand
    async def label(self, request: Request) -> Response:
        """Label an assigned item; idempotent for the same label, a conflict for another."""
        sent, who = await read(request, SaidBody), caller(request)
        token = request.path_params["token"]
        made = await self._service.label(token, sent.said, who.bound_to(), who.key, sent.seconds)
        return json_answer(made)

    @by_hand
    async def heartbeat(self, request: Request) -> Response:
        """Renew the lease of an assignment."""
        who = caller(request).bound_to()
        return json_answer(
            {"expires_at": await self._service.heartbeat(request.path_params["token"], who)}
        )

    @by_hand
    async def release(self, request: Request) -> Response:
        """Release an assignment."""
        bar = (await read(request, ReleaseBody)).bar if await request.body() else False
        who = caller(request)
        await self._service.release(request.path_params["token"], bar, who.bound_to(), who.key)
        return json_answer({"status": "released"})

    async def next(
        self,
        request: Request,
        stream: Stream,
        labeler: Annotated[Name | None, Query(description=LABELER)] = None,
        wait: Wait = 0.0,
        ahead: Annotated[int, Query(ge=0, le=MOST_AHEAD, description=AHEAD)] = 0,
        shown: Annotated[bool, Query(description=SHOWN)] = False,
    ) -> Response:
        """Get the next item to label, waiting if there is none."""
        who, key = caller(request).as_labeler(labeler), caller(request).key
        seconds = self._gate.wait_of(wait)
        if seconds > 0:
            work = self._service.next(stream, who, seconds, key, ahead)
            found = await self._gate.long_poll(request, work, self._release)
        else:
            found = await self._service.next(stream, who, 0.0, key, ahead)
        if isinstance(found, Nothing):
            return Response(status_code=204, headers={"Venire-Reason": found.reason})
        (seen,) = await self._seen(stream, [found], shown)
        return await payload_answer(seen, [seen.payload])

    async def _seen(self, stream: str, leases: list[Lease], shown: bool) -> list[Lease]:
        """Leases as they are answered, with what a page shows of their payloads if it asks."""
        if not shown:
            return leases
        blocks = await self._service.layout(stream)
        return await asyncio.to_thread(_laid_out, leases, blocks)  # it may take a while

    async def _release(self, found: Lease | Nothing) -> None:
        if isinstance(found, Lease) and found.token is not None:
            await self._service.release(found.token)

    async def held(
        self,
        request: Request,
        stream: Stream,
        labeler: Annotated[Name | None, Query(description=LABELER)] = None,
        shown: Annotated[bool, Query(description=SHOWN)] = False,
    ) -> Response:
        """The open leases of a labeler that lost its tokens; the old tokens become invalid."""
        who, key = caller(request).as_labeler(labeler), caller(request).key
        leases = await self._service.held(stream, who, new_tokens=True, key=key)
        seen = await self._seen(stream, leases, shown)
        return await payload_answer(seen, [[lease.payload for lease in seen]])

    @by_hand
    async def add_labels(self, request: Request) -> Response:
        """Add labels in bulk, idempotent; a labeler's own key only for items it was assigned.

        So with `leased`, for programs that pass on what labelers say elsewhere.
        """
        who, most = caller(request), self._gate.settings.max_batch
        bound = who.bound_to()

        def label(number: int, row: LabelBody) -> tuple[str, str, str]:
            labeler = row.get("labeler") or bound
            if bound is not None and labeler != bound:
                who.as_labeler(labeler)
            if labeler is None:
                raise RequestError(422, "invalid", f"row {number} has no labeler", hint="add it")
            return row["item"], labeler, row["said"]

        labels = await read_list(request, LabelBody, most, label)
        outcomes = await self._service.add_labels(
            request.path_params["stream"],
            labels,
            who.actor,
            own=bound is not None or flag(request, "leased"),
        )
        return await outcomes_answer(outcomes, "accepted", "exists", "late", "refused")


def _laid_out(leases: list[Lease], blocks: Sequence[Block]) -> list[Lease]:
    return [replace(x, shown=tuple(lay_out(x.payload, x.item, blocks))) for x in leases]
