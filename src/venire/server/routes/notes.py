"""What labelers say beside their labels, how far they are, and items to practise with."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import FastAPI, Query, Request, Response
from pydantic import BaseModel

from venire.model import NoteKind
from venire.server.edge.answers import body, json_answer, says
from venire.server.edge.blind import blind_for
from venire.server.edge.bodies import NoteBody, SaidBody, read
from venire.server.edge.errors import RequestError
from venire.server.edge.guard import Gate, by_hand, caller
from venire.server.edge.parameters import Limit, Stream, stream_parameter, token_parameter
from venire.server.messages import NoteView, Progress
from venire.server.pages.layouts import lay_out
from venire.server.pages.markdown import as_html
from venire.server.settings import LONGEST_ID, Name

__all__ = ["NoteRoutes"]

ITEM = "Only the notes on this item."
SINCE = "Seconds since 1970; labels from then on are counted."


class PracticeItem(BaseModel):
    """An item to practise with; `shown` are the parts that the page draws."""

    n: int
    shown: list[dict[str, object]]


class Feedback(BaseModel):
    """Whether an answer to a practice item is right, which one is, and why (as HTML)."""

    right: bool
    answer: str
    why: str


class NoteRoutes:
    """For labelers and those who read what they say."""

    def __init__(self, gate: Gate) -> None:
        """Behind a gate."""
        self._service = gate.service

    def add(self, app: FastAPI) -> None:
        """Add the routes."""
        for verb, endpoint, model, text in (
            ("abstain", self.abstain, None, "The item goes to others; counted as not sure."),
            ("note", self.note, "NoteBody", "Noted."),
        ):
            app.add_api_route(
                f"/v1/assignments/{{token}}/{verb}",
                endpoint,
                methods=["POST"],
                tags=["work"],
                responses=says(404, 409, 413, 415, 422, text=text),
                openapi_extra=token_parameter(body(model) if model else {}),
            )
        for path, read_one, kind, text in (
            ("notes", self.notes, list[NoteView], "The notes, oldest first."),
            ("progress", self.progress, Progress, "How many labels the labeler gave."),
            ("practice", self.practice, list[PracticeItem], "The items to practise with."),
        ):
            app.add_api_route(
                f"/v1/streams/{{stream}}/{path}",
                read_one,
                methods=["GET"],
                tags=["work"],
                response_model=kind,
                responses=says(404, 422, text=text),
            )
        number = {"name": "n", "in": "path", "required": True, "schema": {"type": "integer"}}
        described = stream_parameter(body("SaidBody"))
        described["parameters"].append(number)
        app.add_api_route(
            "/v1/streams/{stream}/practice/{n}",
            self.check,
            methods=["POST"],
            tags=["work"],
            response_model=Feedback,
            responses=says(404, 413, 415, 422, text="Whether the answer is right."),
            openapi_extra=described,
        )

    @by_hand
    async def abstain(self, request: Request) -> Response:
        """Say that one is not sure: the item goes to others, and is not assigned again."""
        who = caller(request)
        await self._service.abstain(request.path_params["token"], who.bound_to(), who.key)
        return json_answer({"status": "abstained"})

    @by_hand
    async def note(self, request: Request) -> Response:
        """Comment on an assigned item, or flag it; also after it was answered."""
        sent, who = await read(request, NoteBody), caller(request)
        token, kind = request.path_params["token"], NoteKind(sent.kind)
        await self._service.add_note(token, kind, sent.text, who.bound_to(), who.key)
        return json_answer({"status": "noted"})

    async def notes(
        self,
        request: Request,
        stream: Stream,
        after: Annotated[int, Query(ge=0, le=2**53, description="The cursor.")] = 0,
        limit: Limit = 1000,
        item: Annotated[str | None, Query(max_length=LONGEST_ID, description=ITEM)] = None,
    ) -> Response:
        """Comments, flags and abstentions of labelers, oldest first."""
        found = await self._service.notes(stream, after, limit, item)
        blind = await blind_for(self._service, caller(request), stream)
        return json_answer(blind.notes(found))

    async def progress(
        self,
        request: Request,
        stream: Stream,
        labeler: Annotated[Name | None, Query()] = None,
        since: Annotated[float, Query(description=SINCE, allow_inf_nan=False)] = 0.0,
    ) -> Response:
        """How many labels a labeler has given, since a time and in all."""
        who = caller(request).as_labeler(labeler)
        return json_answer(await self._service.progress(stream, who, since))

    async def practice(self, stream: Stream) -> Response:
        """The items to practise with, without their answers."""
        items, blocks = await self._service.practice(stream), await self._service.layout(stream)

        def shown() -> list[dict[str, Any]]:
            return [
                {"n": n, "shown": lay_out(one.payload, f"practice {n + 1}", blocks)}
                for n, one in enumerate(items)
            ]

        return json_answer(await asyncio.to_thread(shown))

    @by_hand
    async def check(self, request: Request) -> Response:
        """Check an answer to a practice item; nothing of it is stored."""
        said = (await read(request, SaidBody)).said
        stream, n = request.path_params["stream"], request.path_params["n"]
        items = await self._service.practice(stream)
        if not n.isdecimal() or len(n) > 9 or int(n) >= len(items):
            raise RequestError(
                404,
                "not_found",
                f"there is no practice item {n!r}",
                hint=f"the stream has {len(items)}, counted from 0",
            )
        one = items[int(n)]
        why = await asyncio.to_thread(as_html, one.why)
        return json_answer({"right": said == one.answer, "answer": one.answer, "why": why})
