"""Pulling work and labelling it; what trusted people say, and the verdicts that wait for them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any

from fastapi import Path, Query, Request, Response
from pydantic import BaseModel

from venire.model import NoteKind, NoWork, Role
from venire.server.admin_messages import Kind, Order, Reviewed, ReviewsPage, SentBackView
from venire.server.edge.blind import Blind, blind_for
from venire.server.edge.bodies import (
    CSV,
    NDJSON,
    GoldBody,
    LabelBody,
    NoteBody,
    ReleaseBody,
    ReviewBody,
    SaidBody,
    SendBackBody,
    read,
    read_list,
)
from venire.server.edge.errors import RequestError
from venire.server.edge.guard import Caller, by_hand, caller
from venire.server.edge.handlers import (
    Level,
    Limit,
    Part,
    Stream,
    Token,
    Wait,
    flag,
    flag_parameter,
    json_answer,
    lines_answer,
    outcomes_answer,
    payload_answer,
    serves,
)
from venire.server.messages import (
    Answer,
    AuditsView,
    GoldIn,
    LabelIn,
    Lease,
    NoteView,
    Nothing,
    Progress,
)
from venire.server.pages.rendering import as_html, lay_out
from venire.server.settings import LONGEST_ID, MOST_AHEAD, Block, Name

AHEAD = "How many items the labeler may hold beyond its capacity; the stream's `ahead` at most."
SHOWN = "Whether to add `shown`: the parts that the labelling page draws, by the stream's layout."
LABELER = "The labeler; a labeler's own key may omit it."
ITEM = "Only the notes on this item."
SINCE = "Seconds since 1970; labels from then on are counted."
LEASED = (
    "Only labels of items that their labeler holds or held, unless the stream has unasked_labels."
)
NO_WORK = {
    "description": "No work; Venire-Reason says why.",
    "headers": {
        "Venire-Reason": {
            "description": "Why: " + ", ".join(NoWork),
            "schema": {"type": "string", "enum": list(NoWork)},
        }
    },
}
Number = Annotated[
    str, Path(description="The number of the item, from 0.", json_schema_extra={"type": "integer"})
]
EXAMPLE = [{"item": "post-1", "labeler": "ann", "said": "ok"}]


class PracticeItem(BaseModel):
    """An item to practise with; `shown` are the parts that the page draws."""

    n: int
    shown: list[dict[str, object]]


class Feedback(BaseModel):
    """Whether an answer to a practice item is right, which one is, and why (as HTML)."""

    right: bool
    answer: str
    why: str


class WorkRoutes(Part):
    """For labelers."""

    @serves("label", "work", 409, 410,
            text="Labelled; a retry gets the first answer.",
            reply=Answer, body=SaidBody)  # fmt: skip
    @by_hand
    async def label(self, request: Request) -> Response:
        """Label an assigned item; idempotent for the same label, a conflict for another."""
        sent, who = await read(request, SaidBody), caller(request)
        token = request.path_params["token"]
        how = who.bound_to(), who.key, sent.seconds, sent.confidence, sent.rationale
        made = await self._service.label(token, sent.said, *how)
        return json_answer(made)

    @serves("heartbeat", "work", 409, 410, 413, 415, text="The new expiry time of the lease.")
    @by_hand
    async def heartbeat(self, request: Request) -> Response:
        """Renew the lease of an assignment."""
        who = caller(request).bound_to()
        return json_answer(
            {"expires_at": await self._service.heartbeat(request.path_params["token"], who)}
        )

    @serves("release", "work", 409, 410, text="Released.", body=ReleaseBody)
    @by_hand
    async def release(self, request: Request) -> Response:
        """Release an assignment."""
        bar = (await read(request, ReleaseBody)).bar if await request.body() else False
        who = caller(request)
        await self._service.release(request.path_params["token"], bar, who.bound_to(), who.key)
        return json_answer({"status": "released"})

    @serves("next", "work", 409, text="An item to label.", reply=Lease, responses={204: NO_WORK})
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

    @serves("held", "work", text="The labeler's open leases, with new tokens.", reply=list[Lease])
    async def held(
        self,
        sender: Caller,
        stream: Stream,
        labeler: Annotated[Name | None, Query(description=LABELER)] = None,
        shown: Annotated[bool, Query(description=SHOWN)] = False,
    ) -> Response:
        """The open leases of a labeler that lost its tokens; the old tokens become invalid."""
        who, key = sender.as_labeler(labeler), sender.key
        leases = await self._service.held(stream, who, new_tokens=True, key=key)
        seen = await self._seen(stream, leases, shown)
        return await payload_answer(seen, [[lease.payload for lease in seen]])

    @serves("add_labels", "work", 409, text="The outcome of the labels.",
            body=LabelBody, lists=True, example=EXAMPLE,
            openapi_extra=flag_parameter("leased", LEASED))  # fmt: skip
    @by_hand
    async def add_labels(self, request: Request) -> Response:
        """Add labels in bulk, idempotent; a labeler's own key only for items it was assigned.

        So with `leased`, for programs that pass on what labelers say elsewhere.
        """
        who, most = caller(request), self._gate.settings.max_batch
        bound = who.bound_to()

        def label(number: int, row: LabelBody) -> LabelIn:
            labeler = row.get("labeler") or bound
            if bound is not None and labeler != bound:
                who.as_labeler(labeler)
            if labeler is None:
                raise RequestError(422, "invalid", f"row {number} has no labeler", hint="add it")
            beside = row.get("confidence"), row.get("rationale")
            return LabelIn(row["item"], labeler, row["said"], *beside)

        labels = await read_list(request, LabelBody, most, label)
        outcomes = await self._service.add_labels(
            request.path_params["stream"],
            labels,
            who.actor,
            own=bound is not None or flag(request, "leased"),
        )
        return await outcomes_answer(outcomes, "accepted", "exists", "late", "refused")

    @serves("abstain", "work", 409, 413, 415, text="The item goes to others; counted as not sure.")
    async def abstain(self, who: Caller, token: Token) -> Any:
        """Say that one is not sure: the item goes to others, and is not assigned again."""
        await self._service.abstain(token, who.bound_to(), who.key)
        return {"status": "abstained"}

    @serves("note", "work", 409, text="Noted.")
    async def note(self, who: Caller, token: Token, sent: NoteBody) -> Any:
        """Comment on an assigned item, or flag it; also after it was answered."""
        kind = NoteKind(sent.kind)
        await self._service.add_note(token, kind, sent.text, who.bound_to(), who.key)
        return {"status": "noted"}

    @serves("notes", "work", text="The notes, oldest first.")
    async def notes(
        self,
        who: Caller,
        stream: Stream,
        after: Annotated[int, Query(ge=0, le=2**53, description="The cursor.")] = 0,
        limit: Limit = 1000,
        item: Annotated[str | None, Query(max_length=LONGEST_ID, description=ITEM)] = None,
    ) -> list[NoteView]:
        """Comments, flags and abstentions of labelers, oldest first."""
        found = await self._service.notes(stream, after, limit, item)
        return (await blind_for(self._service, who, stream)).notes(found)

    @serves("progress", "work", text="How many labels the labeler gave.")
    async def progress(
        self,
        who: Caller,
        stream: Stream,
        labeler: Annotated[Name | None, Query()] = None,
        since: Annotated[float, Query(description=SINCE, allow_inf_nan=False)] = 0.0,
    ) -> Progress:
        """How many labels a labeler has given, since a time and in all."""
        return await self._service.progress(stream, who.as_labeler(labeler), since)

    @serves("practice", "work", text="The items to practise with.", reply=list[PracticeItem])
    async def practice(self, stream: Stream) -> Any:
        """The items to practise with, without their answers."""
        items, blocks = await self._service.practice(stream), await self._service.layout(stream)

        def shown() -> list[dict[str, Any]]:
            return [
                {"n": n, "shown": lay_out(one.payload, f"practice {n + 1}", blocks)}
                for n, one in enumerate(items)
            ]

        return await asyncio.to_thread(shown)

    @serves("check_practice", "work", text="Whether the answer is right.", reply=Feedback)
    async def check(self, stream: Stream, n: Number, sent: SaidBody) -> Any:
        """Check an answer to a practice item; nothing of it is stored."""
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
        return {"right": sent.said == one.answer, "answer": one.answer, "why": why}


def _laid_out(leases: list[Lease], blocks: Sequence[Block]) -> list[Lease]:
    return [replace(x, shown=tuple(lay_out(x.payload, x.item, blocks))) for x in leases]


CORRECT = "Gold that says otherwise than before takes its place; it is refused without."
ORDER = "The least confident first, or those whose truth tells most about who is right."
GOLD = [{"item": "post-1", "label": "ok"}]
REVIEW = {"item": "post-1", "label": "ok", "note": "a quotation"}
BACK = {"item": "post-1", "min_confidence": 0.95}


class GoldRoutes(Part):
    """For admins, reviewers and trusted labelers; the bounds for readers too."""

    @serves("audits", "reading", text="The bounds on the rate of errors.")
    async def audits(self, who: Caller, stream: Stream, level: Level = 0.95) -> AuditsView:
        """What accuracy audits prove: bounds on the rate of errors that hold at all times."""
        listed = await self._may_judge(who, stream)
        if not listed and who.role == Role.LABELER:
            raise _not_trusted(who.labeler)
        view = await self._service.audits(stream, level, listed)
        return Blind(frozenset(), hides=listed and who.role != Role.ADMIN).audits(view)

    @serves("add_gold", "work", 403, 409, text="The outcome of the gold.",
            body=GoldBody, lists=True, example=GOLD)  # fmt: skip
    async def add_gold(
        self,
        request: Request,
        who: Caller,
        stream: Stream,
        correct: Annotated[bool, Query(description=CORRECT)] = False,
    ) -> Response:
        """Add gold of any items, idempotent; verdicts become the gold.

        Other gold for the same item is refused, or with `correct=true` takes its place: who
        corrected what is kept, and what had been learned from it is learned again.
        """
        if not await self._may_judge(who, stream):
            raise _not_trusted(who.labeler)
        most = self._gate.settings.max_batch
        rows = await read_list(
            request, GoldBody, most, lambda _, row: GoldIn(row["item"], row["label"]), CSV
        )
        outcomes = await self._service.add_gold(stream, rows, who.actor, correct, who.labeler)
        counts = "accepted", "exists", "corrected", "refused"
        return await outcomes_answer(outcomes, *counts, notes=True)

    @serves("reviews", "reviews", text="Verdicts that wait.")
    async def reviews(
        self,
        stream: Stream,
        kind: Annotated[Kind | None, Query(description="Only verdicts of this kind.")] = None,
        cursor: Annotated[
            str | None, Query(description="The `next` of an earlier answer.", max_length=100)
        ] = None,
        limit: Annotated[int, Query(description="Maximum number of results.", ge=1, le=500)] = 20,
        order: Annotated[Order, Query(description=ORDER)] = "doubt",
    ) -> ReviewsPage:
        """Audits that are due, then verdicts without gold: the least confident, or most telling."""
        return await self._service.reviews(stream, kind, cursor, limit, order)

    @serves("review", "reviews", 409, text="Confirmed or overridden.", example=REVIEW)
    async def review(self, who: Caller, stream: Stream, sent: ReviewBody) -> Reviewed:
        """Confirm or override a verdict: the label becomes gold, and the verdict. Idempotent.

        With `correct`, what was judged otherwise before is corrected.
        """
        return await self._service.review(
            stream, sent.item, sent.label, sent.note, who.actor, sent.correct
        )

    @serves("send_back", "reviews", 409, text="It comes again.", example=BACK)
    async def send_back(self, who: Caller, stream: Stream, sent: SendBackBody) -> SentBackView:
        """Send an item that has left back for more labels; it comes again. Idempotent."""
        return await self._service.send_back(
            stream, sent.item, who.actor, sent.min_confidence, sent.note
        )

    @serves("gold", "reviews", text="Gold, one per line, by item.", kind=NDJSON)
    async def gold(
        self,
        stream: Stream,
        after: Annotated[
            str | None, Query(description="The item to continue behind.", max_length=LONGEST_ID)
        ] = None,
        limit: Limit = 1000,
    ) -> Response:
        """All gold, by item: who said it, when, how it came, and what was corrected."""
        found = await self._service.gold(stream, after, limit)
        return await lines_answer(found, {})

    async def _may_judge(self, who: Caller, stream: str) -> bool:
        """Whether the caller is an admin, a reviewer, or a labeler whom the stream trusts."""
        if who.role == Role.LABELER and who.labeler is not None:
            return await self._service.is_trusted(stream, who.labeler)
        return who.role in (Role.ADMIN, Role.REVIEWER)


def _not_trusted(labeler: str | None) -> RequestError:
    return RequestError(
        403,
        "not_trusted",
        f"the labeler {labeler!r} is not trusted in this stream",
        hint="an admin may set trusted: true in its panel, or use an admin key",
    )
