"""The application: routes, pages, limits and error handlers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import TypeAdapter
from starlette.requests import Request
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send

from venire import __version__
from venire.server.edge.errors import RequestError, add_handlers, error_response
from venire.server.edge.guard import ROLES, Gate, Guarded
from venire.server.edge.handlers import (
    REF,
    ErrorAnswer,
    Part,
    add_handlers_of,
    bodies_of,
    json_answer,
)
from venire.server.edge.limits import BodyLimit
from venire.server.edge.peers import Peers, Proving
from venire.server.edge.settings import ServerSettings
from venire.server.pages.charts import PLOTLY_PATH, send_plotly
from venire.server.pages.console import ConsoleRoutes
from venire.server.pages.pages import STATIC, PageRoutes
from venire.server.routes.admin import HealthRoutes, KeyRoutes, WebhookRoutes
from venire.server.routes.items import ItemRoutes, ReadingRoutes
from venire.server.routes.streams import LabelerRoutes, StreamRoutes
from venire.server.routes.work import GoldRoutes, WorkRoutes
from venire.server.settings import StreamSettings

if TYPE_CHECKING:
    from venire.server.service import Service

ABOUT = "Items in, work out, labels in, verdicts out. Send a key as `Authorization: Bearer vk_...`."

#: The header of answers about a stream, where servers share the streams of a store.
OWNER: Final[Mapping[str, Any]] = {
    "description": "With several servers on one store: the address of the one that owns the "
    "stream. Requests that are sent there are not passed on.",
    "schema": {"type": "string"},
}

#: Routes are matched in this order: busiest first.
PARTS: Final[tuple[type[Part], ...]] = (
    WorkRoutes,
    ItemRoutes,
    ReadingRoutes,
    GoldRoutes,
    StreamRoutes,
    LabelerRoutes,
    WebhookRoutes,
    KeyRoutes,
    HealthRoutes,
)
PAGES = (PageRoutes, ConsoleRoutes)


def create_app(service: Service, settings: ServerSettings | None = None) -> FastAPI:
    """The ASGI application for a service, which may start later.

    >>> from venire.server import Service
    >>> from venire.server.store import open_storage
    >>> app = create_app(Service(open_storage("memory:")))
    >>> "/v1/streams" in app.openapi()["paths"]
    True
    """
    settings = settings or ServerSettings()
    gate = Gate(service, settings)
    app = FastAPI(
        title="venire",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
    )
    app.router.route_class = type("GuardedHere", (Guarded,), {"gate": gate})
    app.state.gate = gate
    if service.runtime.storage.shared:
        gate.peers = Peers(gate)
    for part in PARTS:
        add_handlers_of(part(gate), app)
    for pages in PAGES:
        pages(gate).add(app)
    app.add_route(PLOTLY_PATH, send_plotly)
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    app.add_middleware(BodyLimit, most=settings.max_body)
    if service.runtime.storage.shared:
        app.add_middleware(Proving, secret=service.runtime.storage.secret)
    add_handlers(app)
    app.openapi = lambda: _openapi(app)  # type: ignore[method-assign]
    return app


def _openapi(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document, with the bodies that routes read themselves, keys and roles."""
    if app.openapi_schema is None:
        described = get_openapi(
            title="venire", version=__version__, routes=app.routes, description=ABOUT
        )
        components = described.setdefault("components", {})
        components.setdefault("schemas", {}).update(_body_schemas())
        components["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
        components["headers"] = {"VenireOwner": OWNER}
        for path, methods in described["paths"].items():
            for method, operation in methods.items():
                _say_owner(f"{method.upper()} {path}", operation["responses"])
                roles = ROLES[f"{method.upper()} {path}"]
                if roles is not None:
                    operation["security"] = [{"key": []}]
                    operation["x-roles"] = sorted(roles)
        app.openapi_schema = described
    return app.openapi_schema


def _say_owner(route: str, responses: dict[str, Any]) -> None:
    """Document the header of the answers about a stream."""
    if "{stream}" in route or "{token}" in route or route == "POST /v1/streams":
        for status, response in responses.items():
            if status != "401":
                named = response.setdefault("headers", {})
                named["Venire-Owner"] = {"$ref": "#/components/headers/VenireOwner"}


def _body_schemas() -> dict[str, Any]:
    models: tuple[Any, ...] = (
        *{model: None for part in PARTS for model in bodies_of(part)},
        ErrorAnswer,
    )
    adapters = [(model, "validation", TypeAdapter(model)) for model in models]
    _, schemas = TypeAdapter.json_schemas(adapters, ref_template=REF)  # type: ignore[arg-type]
    bodies: dict[str, Any] = schemas["$defs"]
    changes = StreamSettings.model_json_schema(ref_template=REF)
    changes.pop("$defs", None)
    changes["properties"].pop("classes")
    changes.pop("required")
    changes["title"] = "StreamChanges"
    changes["description"] = "Settings to change; the others stay as they are."
    return {**bodies, "StreamChanges": changes}


class Front:
    """An ASGI application that stands by until it is given the one that serves."""

    def __init__(self) -> None:
        self._app: ASGIApp | None = None
        self.gate: Gate | None = None

    def open(self, app: ASGIApp, gate: Gate) -> None:
        """Serve this application from now on."""
        self._app, self.gate = app, gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer that another server has the store."""
        if self._app is not None:
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            answer = _health() if Request(scope).url.path == "/health" else _elsewhere()
            await answer(scope, receive, send)


def _health() -> ASGIApp:
    return json_answer({"status": "ok", "role": "standby"})


def _elsewhere() -> ASGIApp:
    return error_response(
        RequestError(
            503,
            "standby",
            "this server is on standby: another one owns the store",
            hint="send it to the leader; load balancers ask /ready",
            retry_after=1.0,
        )
    )
