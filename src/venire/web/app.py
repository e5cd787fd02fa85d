"""The application: routes, pages, limits and error handlers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import TypeAdapter
from starlette.staticfiles import StaticFiles

from venire import __version__
from venire.service import Service
from venire.service.settings import StreamSettings
from venire.web.access import ROLES
from venire.web.answers import REF, ErrorAnswer
from venire.web.bodies import BODIES
from venire.web.console import ConsoleRoutes
from venire.web.errors import add_handlers
from venire.web.guard import Gate, Guarded
from venire.web.limits import BodyLimit
from venire.web.pages import STATIC, PageRoutes
from venire.web.peers import Peers
from venire.web.plotly_file import PLOTLY_PATH, send_plotly
from venire.web.proofs import Proving
from venire.web.routes.analysis import AnalysisRoutes
from venire.web.routes.erasing import EraseRoutes
from venire.web.routes.exports import ExportRoutes
from venire.web.routes.finding import FindRoutes
from venire.web.routes.gold import GoldRoutes
from venire.web.routes.invitations import InvitationRoutes
from venire.web.routes.items import ItemRoutes
from venire.web.routes.keys import KeyRoutes
from venire.web.routes.labelers import LabelerRoutes
from venire.web.routes.notes import NoteRoutes
from venire.web.routes.operations import OperationRoutes
from venire.web.routes.reviews import ReviewRoutes
from venire.web.routes.streams import StreamRoutes
from venire.web.routes.uploads import UploadRoutes
from venire.web.routes.webhooks import WebhookRoutes
from venire.web.routes.work import WorkRoutes
from venire.web.settings import ServerSettings
from venire.web.stream_pages import StreamPageRoutes

__all__ = ["create_app"]

ABOUT = "Items in, work out, labels in, verdicts out. Send a key as `Authorization: Bearer vk_...`."

#: The header of answers about a stream, where servers share the streams of a store.
OWNER: Final[Mapping[str, Any]] = {
    "description": "With several servers on one store: the address of the one that owns the "
    "stream. Requests that are sent there are not passed on.",
    "schema": {"type": "string"},
}

#: Routes are matched in this order: busiest first.
PARTS = (
    WorkRoutes,
    ItemRoutes,
    UploadRoutes,
    ExportRoutes,
    NoteRoutes,
    FindRoutes,
    AnalysisRoutes,
    GoldRoutes,
    ReviewRoutes,
    StreamRoutes,
    LabelerRoutes,
    InvitationRoutes,
    WebhookRoutes,
    KeyRoutes,
    EraseRoutes,
    OperationRoutes,
    PageRoutes,
    ConsoleRoutes,
    StreamPageRoutes,
)


def create_app(service: Service, settings: ServerSettings | None = None) -> FastAPI:
    """The ASGI application for a service, which may start later.

    >>> from venire.service import Service
    >>> from venire.storage import open_storage
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
        part(gate).add(app)
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
    models = (*BODIES, ErrorAnswer)
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
