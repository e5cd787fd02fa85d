"""The console: pages with which people oversee a stream.

Whatever a page shows or does is also an API call, under the same roles.
"""

from __future__ import annotations

import asyncio
import time
from typing import Annotated, Any, Final
from urllib.parse import urlencode

from fastapi import FastAPI, Query, Request, Response
from pydantic import BeforeValidator, Field

from venire.errors import VenireError
from venire.model import ExitReason, ItemStatus, Role
from venire.scheduling import Policy
from venire.scheduling.by_name import exported
from venire.server.admin_messages import KeyView, Kind, Order, WhatIfView
from venire.server.edge.blind import Blind, blind_for
from venire.server.edge.bodies import plan_of, planned
from venire.server.edge.errors import error_of
from venire.server.edge.guard import ROLES, Caller, caller
from venire.server.edge.handlers import Item, Stream, dumps
from venire.server.edge.peers import all_streams
from venire.server.messages import ItemView, StreamView
from venire.server.pages.charts import plotly_address, student_charts, trend_charts
from venire.server.pages.pages import PageRoutes
from venire.server.pages.rendering import changed_settings, pictures_of
from venire.server.pages.setting_fields import PRESETS, groups_of
from venire.server.pages.story import chart_of, story_of
from venire.server.reports.alarm_rules import LEAST_CALLED
from venire.server.routes.items import Searched, formats
from venire.server.settings import STREAM_NAME, StreamSettings

#: Rows on a page.
ROWS = 50

#: Alarms in the history, and labelers to choose from; more classes than these have no heat map.
ALARMS, LISTED = 200, 100
HEAT_CLASSES: Final = 60

#: Labelers in the table of agreement.
MATRIX = 15

#: The pages of a stream, by path.
PAGES = {
    "": "Overview",
    "/items": "Items",
    "/upload": "Add items",
    "/reviews": "Reviews",
    "/labelers": "Labelers",
    "/export": "Export",
    "/webhooks": "Webhooks",
    "/what-if": "What if",
    "/settings": "Settings",
}

Named = Annotated[
    Annotated[str, Field(max_length=200)] | None,
    BeforeValidator(lambda value: value or None),
    Query(),
]
Cursor = Annotated[str | None, Query(max_length=2000)]


class ConsoleRoutes(PageRoutes):
    """All about a stream, new streams, and the audit log."""

    def add(self, app: FastAPI) -> None:
        one = "/streams/{stream}"
        for path, endpoint in (
            ("/new-stream", self.new),
            (one, self.stream),
            (f"{one}/what-if", self.what_if),
            (f"{one}/settings", self.settings),
            ("/audit", self.audit),
            ("/archived", self.archived),
            (f"{one}/items", self.items),
            (f"{one}/upload", self.upload),
            (f"{one}/export", self.export),
            (f"{one}/webhooks", self.webhooks),
            (f"{one}/reviews", self.reviews),
            (f"{one}/labelers", self.labelers),
            (f"{one}/items/{{item:path}}", self.item),
        ):
            app.add_api_route(path, endpoint, methods=["GET"], include_in_schema=False)

    async def items(
        self, request: Request, stream: Stream, search: Searched, cursor: Cursor = None
    ) -> Response:
        """The items of a stream, with a form to search them."""
        view = await self._gate.service.stream(stream)
        blind = await self._blind(request, stream)
        found = await self._gate.service.find_items(stream, blind.search(search), cursor, ROWS)
        found = blind.page(found)
        asked = {name: value for name, value in request.query_params.items() if value}
        asked.pop("cursor", None)
        more = None if found.next is None else urlencode({**asked, "cursor": found.next})
        return self._console(
            "items.html",
            request,
            view,
            found=found.items,
            more=more,
            first=cursor is None,
            asked=asked,
            statuses=list(ItemStatus),
            reasons=[reason for reason in ExitReason if reason != ExitReason.HORIZON],
        )

    async def upload(self, request: Request, stream: Stream) -> Response:
        view = await self._gate.service.stream(stream)
        made = bool(request.query_params.get("made"))
        return self._console(
            "upload.html", request, view, made=made, most=self._gate.settings.max_body
        )

    async def export(self, request: Request, stream: Stream) -> Response:
        view = await self._gate.service.stream(stream)
        return self._console("export.html", request, view, formats=formats())

    async def webhooks(self, request: Request, stream: Stream) -> Response:
        """Who is told what happens in the stream, and what could not be delivered."""
        view, hooks = await self._gate.service.stream(stream), self._gate.service.webhooks
        listed = [(one, await hooks.dead(stream, one.id)) for one in await hooks.list(stream)]
        return self._console("webhooks.html", request, view, hooks=listed)

    async def item(self, request: Request, stream: Stream, item: Item) -> Response:
        """An item: what it is, what became of it, and its story.

        The story is replayed from the log, which may take a while: the page asks for it on its
        own, with `?story=part`, or all at once, with `?story=whole`.
        """
        service, how = self._gate.service, request.query_params.get("story")
        view = await service.stream(stream)
        blind = await self._blind(request, stream)
        shown, hidden = blind.item(await service.item(stream, item)), item in blind.due
        told: dict[str, Any] = {"lines": [] if hidden else None, "chart": None, "complete": True}
        told["hidden"] = hidden
        if how in ("part", "whole") and not hidden:
            explained = await self._gate.long_poll(request, service.explain(stream, item, True))
            told |= {
                "lines": story_of(shown, explained, await self._costs_at(stream, shown)),
                "chart": chart_of(shown, explained.beliefs),
                "complete": explained.complete,
            }
        page = "story.html" if how == "part" else "item.html"
        judges = may(caller(request), "/streams/{stream}/reviews")
        left = shown.status == ItemStatus.LEFT and shown.gold is None
        due = judges and left and await service.is_due(stream, item)
        one = {"item": shown.id, "verdict": shown.verdict} if judges and left and not due else None
        told["corrects"] = None
        if judges and shown.status == ItemStatus.LEFT and shown.gold is not None:
            told["corrects"] = {"item": shown.id, "verdict": shown.gold}
        layout = await service.layout(stream)
        pictures = await asyncio.to_thread(pictures_of, shown.payload, layout)
        return self._console(
            page, request, view, item=shown, pictures=pictures, one=one, due=due, **told
        )

    async def _costs_at(self, stream: str, item: ItemView) -> list[dict[str, Any]]:
        """What errors cost when an item left."""
        versions = await self._gate.service.settings_history(stream)
        before = [one for one in versions if item.exit and one.at <= item.exit.at]
        return list(max(before, key=lambda one: one.version).settings["costs"]) if before else []

    async def reviews(
        self,
        request: Request,
        stream: Stream,
        kind: Annotated[Kind | None, Query()] = None,
        cursor: Cursor = None,
        order: Annotated[Order, Query()] = "doubt",
    ) -> Response:
        """The verdicts that wait for a reviewer, with a form for each."""
        service = self._gate.service
        view, layout = await service.stream(stream), await service.layout(stream)
        found = await service.reviews(stream, kind, cursor, order=order)
        payloads = await service.payloads(stream, [one.item for one in found.items])
        pictures = await asyncio.to_thread(
            lambda: {item: pictures_of(payload, layout) for item, payload in payloads.items()}
        )
        asked = {"kind": kind} if kind else {}
        more = None if found.next is None else urlencode({**asked, "cursor": found.next})
        return self._console(
            "reviews.html", request, view, found=found, kind=kind, more=more, pictures=pictures,
            order=order,
        )  # fmt: skip

    async def labelers(self, request: Request, stream: Stream) -> Response:
        """Who labels the stream: skills, keys, agreement with gold and with each other."""
        service, who = self._gate.service, caller(request)
        view, blind = await service.stream(stream), await self._blind(request, stream)
        agreement = blind.agreement(await service.agreement(stream, wait=False))
        keys: dict[str, list[Any]] = {}
        for key in await service.keys.list() if who.role == Role.ADMIN else ():
            if key.labeler is not None and _is_valid(key):
                keys.setdefault(key.labeler, []).append(key)
        listed = blind.labelers(await service.labelers(stream, wait=False))
        busiest = sorted(listed, key=lambda one: (-one.labels, one.id))
        paired = {name for pair in agreement.pairs for name in (pair.first, pair.second)}
        names = [one.id for one in busiest if one.id in paired]
        pairs = {(x.first, x.second): x for x in agreement.pairs}
        return self._console(
            "people.html",
            request,
            view,
            admin=who.role == Role.ADMIN,
            labelers=sorted(listed, key=lambda one: (one.retired, one.id)),
            voices=StreamSettings.model_validate(view.settings).voices,  # of its student
            agreement=agreement,
            gold={one.labeler: one for one in agreement.gold},
            itself={one.labeler: one for one in agreement.itself},
            keys=keys,
            invitations=await service.invitations.list(stream) if who.role == Role.ADMIN else [],
            names=names[:MATRIX],
            more_names=len(names) > MATRIX,
            pairs=pairs | {(b, a): x for (a, b), x in pairs.items()},
        )

    async def archived(self, request: Request) -> Response:
        found = await self._gate.service.archived()
        return self._page("archived.html", caller(request), streams=found)

    async def _blind(self, request: Request, stream: str) -> Blind:
        return await blind_for(self._gate.service, caller(request), stream)

    async def audit(
        self,
        request: Request,
        stream: Named = None,
        action: Named = None,
        before: Annotated[int | None, Query(ge=0, le=2**53)] = None,
    ) -> Response:
        """Who did what, the latest first."""
        service = self._gate.service
        rows = await service.recent_audit(before, ROWS, stream, action)
        asked = {k: v for k, v in (("stream", stream), ("action", action)) if v}
        more = urlencode({**asked, "before": rows[-1].n}) if len(rows) == ROWS else None
        who, streams = caller(request), [one.name for one in await all_streams(self._gate, request)]
        return self._page(
            "audit.html", who, rows=rows, asked=asked, more=more, streams=streams, first=not before
        )

    def _console(self, template: str, request: Request, stream: Any, **more: Any) -> Response:
        """A page about a stream."""
        who = caller(request)
        pages = [page for page in PAGES.items() if may(who, f"/streams/{{stream}}{page[0]}")]
        return self._page(template, who, stream=stream, pages=pages, **more)

    async def new(self, request: Request, template: Annotated[str, Query()] = "") -> Response:
        """A form for a new stream, with the settings of a template or the defaults."""
        preset = PRESETS.get(template)
        settings = preset.settings if preset else StreamSettings(classes=("yes", "no"))
        groups = [
            (title, [field for field in fields if field.kind != "json"])
            for title, fields in groups_of(settings)
        ]
        asked = StreamSettings.model_fields
        return self._page(
            "new_stream.html",
            caller(request),
            presets=PRESETS,
            chosen=template if preset else "",
            preset=preset,
            given=preset.more if preset else {},
            classes="\n".join(preset.more["classes"]) if preset else "",
            about={name: asked[name].description for name in ("classes", "guidelines")},
            groups=[(title, fields) for title, fields in groups if fields],
            pattern=STREAM_NAME.replace("-]", "\\-]"),  # browsers are strict about dashes
        )

    async def stream(self, request: Request, stream: Stream) -> Response:
        """A stream: alarms, figures, verdicts against votes, trends, labelers, its student.

        What takes longer is a part of the page that it asks for on its own: `?part=confusion` with
        a `labeler`, and `?part=panel`.
        """
        part = request.query_params.get("part")
        if part in ("confusion", "panel", "rates"):
            return await self._part(request, stream, part)
        service, blind = self._gate.service, await self._blind(request, stream)
        view = blind.stream(await service.stream(stream))
        now = blind.insights(await service.insights(stream))
        trends = blind.trends(await service.trends(stream))
        alarms = blind.alarms(await service.alarms(stream, None, ALARMS))
        lessons = blind.lessons(await service.lessons(stream)).lessons
        charts = trend_charts(trends.periods) if trends.periods else []
        course = student_charts(trends.periods, lessons)
        drawn = [*charts, *course]
        return self._console(
            "stream.html",
            request,
            view,
            now=now,
            labelers=blind.labelers(await service.labelers(stream, wait=False)),
            relations=blind.relations(await service.relations(stream)),
            trends=trends,
            least_called=LEAST_CALLED,
            alarms=alarms,
            charts=charts,
            course=course,
            lessons=lessons,
            data=dumps([chart.data() for chart in drawn]).decode().replace("<", "\\u003c"),
            plotly=plotly_address() if drawn else None,
        )

    async def _part(self, request: Request, stream: str, part: str) -> Response:
        """A part of the page; what cannot be had is said in its place."""
        service, view = self._gate.service, await self._gate.service.stream(stream)
        labeler = request.query_params.get("labeler", "")
        shown: dict[str, Any] = {"wrong": None, "found": None, "most": HEAT_CLASSES}
        try:
            (await self._blind(request, stream)).check_log()
            if part == "confusion":
                shown["found"] = await service.confusion(stream, labeler)
            elif part == "rates":
                shown["found"] = await service.rates(stream)
            else:
                shown["found"] = await self._gate.long_poll(request, service.panel(stream))
        except VenireError as error:
            shown["wrong"] = error_of(error).message
        return self._console(f"{part}.html", request, view, **shown)

    async def what_if(self, request: Request, stream: Stream) -> Response:
        """What another plan would have bought: a form, and the result of a plan."""
        service, asked = self._gate.service, request.query_params
        view = await service.stream(stream)
        found, wrong, faults = None, None, dict[str, str]()
        if asked:
            plan, faults = planned(asked)
            if plan is not None:
                try:
                    (await self._blind(request, stream)).check_log()
                    work = service.what_if(stream, plan_of(plan), plan.simulate_missing)
                    found = await self._gate.long_poll(request, work)
                except VenireError as error:
                    wrong = error_of(error).message
        return self._console(
            "what_if_result.html" if asked.get("part") else "what_if.html",
            request,
            view,
            asked=asked,
            found=found,
            rows=_compared(found, view.settings["slot_seconds"]) if found else [],
            wrong=wrong,
            faults=faults,
            policies=sorted(exported(Policy)),
            labelers=await self._labelers(view),
        )

    async def _labelers(self, view: StreamView) -> list[str]:
        """Who may be left out: the labelers, and the student as one."""
        student, known = view.student, await self._gate.service.labelers(view.name, wait=False)
        voices = StreamSettings.model_validate(view.settings).voices
        names = [one.id for one in known if one.id not in voices]
        return names[:LISTED] + ([student["id"]] if student and student["ready"] else [])

    async def settings(self, request: Request, stream: Stream) -> Response:
        """The settings of a stream: a form, and who changed what."""
        service = self._gate.service
        view = await service.stream(stream)
        edits = caller(request).role == Role.ADMIN
        settings = StreamSettings.model_validate(view.settings)
        return self._console(
            "settings.html",
            request,
            view,
            groups=groups_of(settings) if edits else [],
            history=changed_settings(await service.settings_history(stream)),
            saved=request.query_params.get("saved", ""),
        )


def _is_valid(key: KeyView) -> bool:
    """Whether a key was neither revoked nor has expired; to ask the keyring would be to use it."""
    return key.revoked_at is None and (key.expires_at is None or key.expires_at > time.time())


def may(who: Caller, path: str) -> bool:
    """Whether somebody may see a page.

    >>> from venire.model import Role
    >>> may(Caller("k", "Ann", Role.VIEWER, None), "/streams/{stream}/reviews")
    False
    """
    return who.role in (ROLES[f"GET {path}"] or ())


def _compared(found: WhatIfView, slot_seconds: float) -> list[tuple[str, str, str, str]]:
    """Each measure: its name, as it was, as it would be, and the change, with standard errors."""
    names = {
        "right": ("right verdicts, expected", 100.0, " %", 1),
        "labels": ("labels per item", 1.0, "", 2),
        "money": ("money an item", 1.0, "", 4),
        "wait": ("seconds to the exit", slot_seconds, " s", 1),
    }
    rows = []
    for key, measure in found.measures.items():
        name, scale, unit, digits = names[key]
        if key == "money" and not measure.was and not measure.would_be.value:
            continue
        would, change = measure.would_be, measure.change
        rows.append(
            (
                name,
                f"{measure.was * scale:,.{digits}f}{unit}",
                f"{would.value * scale:,.{digits}f} ± {would.error * scale:.{digits}f}{unit}",
                f"{change.value * scale:+,.{digits}f} ± {change.error * scale:.{digits}f}{unit}",
            )
        )
    return rows
