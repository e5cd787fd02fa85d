"""The pages of a stream itself: how it does, what another plan would do, and its settings.

Whatever a page shows or does is also an API call, under the same roles.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import FastAPI, Query, Request, Response

from venire.errors import VenireError
from venire.model import Role
from venire.scheduling import Policy
from venire.scheduling.by_name import exported
from venire.server.admin_messages import WhatIfView
from venire.server.edge.answers import dumps
from venire.server.edge.errors import error_of
from venire.server.edge.guard import caller
from venire.server.edge.parameters import Stream, plan_of, planned
from venire.server.messages import StreamView
from venire.server.pages.charts import plotly_address, student_charts, trend_charts
from venire.server.pages.console import ConsoleRoutes
from venire.server.pages.rendering import changed_settings
from venire.server.pages.setting_fields import PRESETS, groups_of
from venire.server.reports.alarm_rules import LEAST_CALLED
from venire.server.settings import STREAM_NAME, StreamSettings

#: Alarms in the history, and labelers to choose from; more classes than these have no heat map.
ALARMS, LISTED = 200, 100
HEAT_CLASSES: Final = 60


class StreamPageRoutes(ConsoleRoutes):
    """The overview of a stream, what-if, and settings; and a new stream."""

    def add(self, app: FastAPI) -> None:
        for path, endpoint in (
            ("", self.stream),
            ("/what-if", self.what_if),
            ("/settings", self.settings),
        ):
            app.add_api_route(
                f"/streams/{{stream}}{path}", endpoint, methods=["GET"], include_in_schema=False
            )

        app.add_api_route("/new-stream", self.new, methods=["GET"], include_in_schema=False)

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
