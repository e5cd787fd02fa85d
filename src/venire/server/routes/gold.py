"""Gold: what trusted people say, the verdicts that wait for them, and what audits prove."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Request, Response

from venire.model import Role
from venire.server.admin_messages import Kind, Order, Reviewed, ReviewsPage, SentBackView
from venire.server.edge.access import Caller
from venire.server.edge.answers import lines_answer, outcomes_answer
from venire.server.edge.blind import Blind
from venire.server.edge.bodies import CSV, NDJSON, GoldBody, ReviewBody, SendBackBody, read_list
from venire.server.edge.errors import RequestError
from venire.server.edge.parameters import Level, Limit, Part, Stream, serves
from venire.server.messages import AuditsView, GoldIn
from venire.server.settings import LONGEST_ID

CORRECT = "Gold that says otherwise than before takes its place; it is refused without."
ORDER = "The least confident first, or those whose truth tells most about who is right."
GOLD = [{"item": "post-1", "label": "ok"}]
REVIEW = {"item": "post-1", "label": "ok", "note": "a quotation"}
BACK = {"item": "post-1", "min_confidence": 0.95}


class GoldRoutes(Part):
    """For admins, reviewers and trusted labelers; the bounds for readers too."""

    @serves("audits", "reading", 404, 422, text="The bounds on the rate of errors.")
    async def audits(self, who: Caller, stream: Stream, level: Level = 0.95) -> AuditsView:
        """What accuracy audits prove: bounds on the rate of errors that hold at all times."""
        listed = await self._may_judge(who, stream)
        if not listed and who.role == Role.LABELER:
            raise _not_trusted(who.labeler)
        view = await self._service.audits(stream, level, listed)
        return Blind(frozenset(), hides=listed and who.role != Role.ADMIN).audits(view)

    @serves("add_gold", "work", 403, 404, 409, 413, 415, 422, text="The outcome of the gold.",
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

    @serves("reviews", "reviews", 404, 422, text="Verdicts that wait.")
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

    @serves("review", "reviews", 404, 409, 413, 415, 422,
            text="Confirmed or overridden.", example=REVIEW)  # fmt: skip
    async def review(self, who: Caller, stream: Stream, sent: ReviewBody) -> Reviewed:
        """Confirm or override a verdict: the label becomes gold, and the verdict. Idempotent.

        With `correct`, what was judged otherwise before is corrected.
        """
        return await self._service.review(
            stream, sent.item, sent.label, sent.note, who.actor, sent.correct
        )

    @serves("send_back", "reviews", 404, 409, 413, 415, 422,
            text="It comes again.", example=BACK)  # fmt: skip
    async def send_back(self, who: Caller, stream: Stream, sent: SendBackBody) -> SentBackView:
        """Send an item that has left back for more labels; it comes again. Idempotent."""
        return await self._service.send_back(
            stream, sent.item, who.actor, sent.min_confidence, sent.note
        )

    @serves("gold", "reviews", 404, 422, text="Gold, one per line, by item.", kind=NDJSON)
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
