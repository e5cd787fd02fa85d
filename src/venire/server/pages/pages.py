"""The pages that belong to no stream: home, labelling, signing in and out, and the API's docs.

`sections` lays the OpenAPI document out for a page that needs no script and no other host.

The cookie of a session is `SameSite=Strict`, and the way back from a provider of identities is one
from another site, on which browsers send no such cookie: so it ends on a page of ours, which goes
on by itself.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import parse_qs, urlencode

from fastapi import FastAPI, Request, Response
from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.responses import HTMLResponse, RedirectResponse

from venire import __version__
from venire.errors import Conflict, InputError
from venire.model import ExitReason, Role, StreamStatus
from venire.server.edge.blind import Blind
from venire.server.edge.errors import RequestError
from venire.server.edge.guard import COOKIE, Caller, Gate, by_hand, caller, caller_of, foreign
from venire.server.edge.handlers import event, follow, json_answer, says
from venire.server.edge.oidc import WITHIN, Begun, Provider
from venire.server.edge.peers import all_insights, all_streams
from venire.server.pages.charts import sparkline
from venire.server.pages.rendering import as_html, number, payload_of, percent, seconds, times
from venire.server.reports.alarm_rules import title_of

K = TypeVar("K")
Schema = Mapping[str, Any]


@dataclass(frozen=True)
class Row:
    """A field or a parameter: its name, type, whether it is required, and meaning."""

    name: str
    kind: str
    needed: bool
    text: str


@dataclass(frozen=True)
class Operation:
    """One route."""

    method: str
    path: str
    summary: str
    roles: tuple[str, ...]
    parameters: tuple[Row, ...]
    fields: tuple[Row, ...]
    example: str
    answers: tuple[tuple[str, str], ...]


def sections(described: Schema) -> dict[str, list[Operation]]:
    """The operations by tag.

    >>> get = {"tags": ["a"], "description": "Look.", "responses": {"200": {"description": "ok"}}}
    >>> [row] = sections({"paths": {"/x": {"get": get}}, "components": {}})["a"]
    >>> row.method, row.path, row.summary, row.answers
    ('GET', '/x', 'Look.', (('200', 'ok'),))
    """
    found: dict[str, list[Operation]] = {}
    schemas = described["components"].get("schemas", {})
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            laid_out = _operation(method.upper(), path, operation, schemas)
            found.setdefault(operation["tags"][0], []).append(laid_out)
    return found


def _operation(method: str, path: str, operation: Schema, schemas: Schema) -> Operation:
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    example = content.get("example")
    return Operation(
        method=method,
        path=path,
        summary=operation.get("description", ""),
        roles=tuple(operation.get("x-roles", ("anyone",))),
        parameters=tuple(
            Row(
                p["name"],
                _kind(p["schema"], schemas),
                p.get("required", False),
                p.get("description", ""),
            )
            for p in operation.get("parameters", ())
        ),
        fields=_fields(content.get("schema", {}), schemas),
        example="" if example is None else json.dumps(example, indent=2),
        answers=tuple(
            (str(status), answer["description"])
            for status, answer in sorted(operation["responses"].items())
        ),
    )


def _fields(schema: Schema, schemas: Schema) -> tuple[Row, ...]:
    schema = schema.get("items", schema)
    schema = schemas.get(str(schema.get("$ref", "")).rpartition("/")[2], schema)
    needed = schema.get("required", ())
    return tuple(
        Row(name, _kind(field, schemas), name in needed, _default(field))
        for name, field in schema.get("properties", {}).items()
    )


def _default(field: Schema) -> str:
    return f"default: {json.dumps(field['default'])}" if "default" in field else ""


def _kind(schema: Schema, schemas: Schema) -> str:
    """A type in words; for an enum, its values."""
    if "$ref" in schema:
        name = str(schema["$ref"]).rpartition("/")[2]
        meant = schemas.get(name, {})
        return _kind(meant, schemas) if "enum" in meant else name
    if "anyOf" in schema:
        return " or ".join(_kind(choice, schemas) for choice in schema["anyOf"])
    if "enum" in schema:
        return " | ".join(str(choice) for choice in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_kind(schema.get('items', {}), schemas)}"
    return str(schema.get("type", "any"))


STATIC = Path(__file__).parent / "static"
PERIOD = 1.0

#: So many classes have a digit as their key.
DIGITS = 9

#: The only targets to which signing in redirects.
WORK = ("/work?", "/streams/")

#: The cookie with the id token of who signed in with the provider, for signing out there too.
ID_TOKEN = "venire_id_token"

#: Where a sign-in begins, and how the names begin of the cookies that hold one each.
BEGIN: Final = "/sign-in/oidc"
SIGN_IN_COOKIE: Final = "venire_sign_in_"

#: A longer id token does not fit into a cookie.
LONGEST: Final = 3_800

_STATE: Final = re.compile(r"[A-Za-z0-9_-]{43}")


class PageRoutes:
    """The HTML pages."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._overview: dict[Role, tuple[float, str]] = {}
        self._templates = Environment(
            loader=PackageLoader("venire.server.pages"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.filters.update(seconds=seconds, number=number, percent=percent)
        self._templates.filters.update(sparkline=sparkline, times=times, payload=payload_of)
        self._templates.filters["alarm_title"] = title_of
        self._templates.globals.update(ExitReason=ExitReason, Role=Role)
        self._templates.globals["provider"] = gate.provider
        hosts = [host.strip() for host in gate.settings.image_hosts.split(",") if host.strip()]
        self._images = " ".join(host if "://" in host else f"https://{host}" for host in hosts)

    def add(self, app: FastAPI) -> None:
        self._app = app
        self._gate.error_page = self.error
        for path, method, endpoint in (
            ("/", "GET", self.home),
            ("/sign-in", "POST", self.sign_in),
            ("/sign-in", "GET", self.sign_in_by_link),
            (BEGIN, "GET", self.begin),
            (f"{BEGIN}/callback", "GET", self.finish),
            ("/sign-out", "POST", self.sign_out),
            ("/join/{stream}", "GET", self.invited),
            ("/join/{stream}", "POST", self.join),
            ("/live", "GET", self.live),
            ("/work", "GET", self.work),
            ("/docs", "GET", self.docs),
        ):
            app.add_api_route(path, endpoint, methods=[method], include_in_schema=False)
        app.add_api_route(
            "/openapi.json",
            self.openapi,
            methods=["GET"],
            tags=["operations"],
            responses=says(text="The OpenAPI document."),
        )

    @by_hand
    async def home(self, request: Request) -> Response:
        """The overview, or the sign-in page."""
        token = request.cookies.get(COOKIE)
        key = await self._key(self._gate.service.sessions.key_of, token)
        if key is None:
            to = request.query_params.get("to")
            wrong = "session" if token is not None else ""
            return self._page("sign_in.html", None, wrong=wrong, to=to)
        if key.role == Role.LABELER:
            return RedirectResponse("/work", 303)
        who = caller_of(key)
        return self._page("home.html", who, overview=await self._render_overview(request, who))

    @by_hand
    async def sign_in(self, request: Request) -> Response:
        """Exchange a key for a session cookie."""
        form = await self._form(request)
        token, to = form.get("key", "").strip(), form.get("to", "")
        key = await self._key(self._gate.service.keys.authenticate, token)
        if key is None:
            return self._page("sign_in.html", None, status=401, wrong=True, to=to)
        session = await self._gate.service.sessions.begin(key, self._longest)
        return self._signed_in(request, session, landing(key.role, to))

    @by_hand
    async def sign_in_by_link(self, request: Request) -> Response:
        """Sign in with the token of a session that was begun for this link; it works once."""
        token = request.query_params.get("link", "")
        if not token:  # a bookmark, or typed by hand: the page to sign in is the first one
            return RedirectResponse("/", 303)
        sessions = self._gate.service.sessions
        session = None if foreign(request) else await sessions.exchange(token)
        if session is None:
            return self._page("sign_in.html", None, status=401, wrong="link", to=None)
        return self._signed_in(request, session, "/")

    @by_hand
    async def invited(self, request: Request) -> Response:
        """Where the link of an invitation leads: its token is behind the #, and is not sent.

        So it is in no log, and whoever only looks at the link, as chats do, does not use it up.
        """
        return self._page("join.html", None, view=None, token="", wrong="", name="")

    @by_hand
    async def join(self, request: Request) -> Response:
        """Look at an invitation, or accept it and go on to the labelling page."""
        form = await self._form(request)
        token, name = form.get("token", ""), form.get("name", "")
        stream, wrong, status = request.path_params["stream"], "", 200
        invitations = self._gate.service.invitations
        view = await invitations.look(stream, token)
        if view is not None and "accept" in form:
            try:
                session = await invitations.accept(stream, token, name, self._longest)
            except (Conflict, InputError) as error:
                wrong, status = str(error), 409 if isinstance(error, Conflict) else 422
            else:
                if session is not None:
                    to = f"/work?{urlencode({'stream': stream})}"
                    return self._signed_in(request, session, to)
                view = None
        if view is None:
            wrong = "This link has been used, was revoked or has expired: ask for another."
            status = 401
        return self._page(
            "join.html", None, status=status, view=view, token=token, wrong=wrong, name=name
        )

    async def _form(self, request: Request) -> dict[str, str]:
        """What a form of ours sends."""
        if foreign(request):
            raise RequestError(403, "foreign_page", "this came from another site")
        sent = parse_qs((await request.body()).decode(errors="replace"))
        return {name: values[0] for name, values in sent.items()}

    async def _key(self, find: Callable[[str], K | None], token: str | None) -> K | None:
        """The key of a token, which another server may have made just now."""
        key = find(token) if token else None
        if key is None and token:
            await self._gate.catch_up()
            key = find(token)
        return key

    @property
    def _longest(self) -> float:
        """How many seconds a session lasts at most."""
        return self._gate.settings.session_hours * 3600

    def _signed_in(self, request: Request, session: str, to: str) -> Response:
        """Go on to a page, with the cookie of a session."""
        response = RedirectResponse(to, 303)
        self._keep(request, response, session)
        return response

    def _keep(
        self, request: Request, response: Response, value: str, name: str = COOKIE, path: str = "/"
    ) -> None:
        """Set a cookie that lasts as long as a session does."""
        response.set_cookie(
            name,
            value,
            max_age=round(self._longest),
            path=path,
            httponly=True,
            samesite="strict",
            secure=self._is_secure(request),
        )

    def _is_secure(self, request: Request) -> bool:
        return self._gate.settings.secure_cookies or over_https(request)

    def _address(self, request: Request) -> str:
        """Where the browser found this server."""
        return f"{'https' if self._is_secure(request) else 'http'}://{request.url.netloc}"

    @by_hand
    async def sign_out(self, request: Request) -> Response:
        """End the session; who signed in with the provider is told where to sign out there."""
        if foreign(request):
            raise RequestError(403, "foreign_page", "this came from another site")
        await self._gate.service.sessions.end(request.cookies.get(COOKIE, ""))
        token, provider = request.cookies.get(ID_TOKEN), self._gate.provider
        response: Response = RedirectResponse("/", 303)
        if token is not None and provider is not None:
            hint = "" if token == "-" else token
            url = await provider.end_url(hint, f"{self._address(request)}/")
            response = self._page("signed_out.html", None, url=url)
        response.delete_cookie(COOKIE, httponly=True, samesite="strict")
        response.delete_cookie(ID_TOKEN, path="/sign-out", httponly=True, samesite="strict")
        return response

    @by_hand
    async def begin(self, request: Request) -> Response:
        """Send the browser to the provider."""
        provider = self._provider()
        back = f"{self._address(request)}{BEGIN}/callback"
        url, begun = await provider.begin(back, request.query_params.get("to", "")[:2000])
        response = RedirectResponse(url, 303, {"cache-control": "no-store"})
        response.set_cookie(
            _cookie_of(begun.state),
            provider.sealed(begun, self._gate.service.identities.secret),
            max_age=round(WITHIN),
            path=BEGIN,
            httponly=True,
            samesite="lax",  # it has to come along when the provider sends the browser back
            secure=self._is_secure(request),
        )
        return response

    @by_hand
    async def finish(self, request: Request) -> Response:
        """Sign in who comes back from the provider, if it says who that is."""
        provider, identities = self._provider(), self._gate.service.identities
        begun = await self._begun(request, provider)
        person, token = await provider.finish(begun, request.query_params)
        try:
            session = await identities.sign_in(person, self._longest, begun.state, begun.exp)
        except (Conflict, InputError) as error:
            raise RequestError(403, "no_labeler", str(error)) from None
        if person.role is None:
            url = await provider.end_url(token, f"{self._address(request)}/")
            return self._page("no_role.html", None, 403, person=person, url=url)
        if session is None:
            raise _unknown()
        home = landing(person.role, begun.to)
        response = self._page("go_on.html", None, to=home, name=person.name)
        response.delete_cookie(_cookie_of(begun.state), path=BEGIN)
        self._keep(request, response, session)
        kept = token if len(token) <= LONGEST else "-"
        self._keep(request, response, kept, ID_TOKEN, "/sign-out")
        return response

    async def _begun(self, request: Request, provider: Provider) -> Begun:
        """The sign-in that this browser began, and has not finished."""
        state, begun = request.query_params.get("state", ""), None
        if _STATE.fullmatch(state):
            identities, kept = self._gate.service.identities, request.cookies.get(_cookie_of(state))
            begun = None if kept is None else provider.opened(kept, identities.secret, state)
            if begun is not None and await identities.is_finished(state):
                begun = None
        if begun is None:
            raise _unknown()
        return begun

    def _provider(self) -> Provider:
        if self._gate.provider is None:
            raise RequestError(
                404,
                "not_found",
                "this server has no single sign-on",
                hint="sign in with a key, or set VENIRE_OIDC_ISSUER",
            )
        return self._gate.provider

    @by_hand
    async def live(self, request: Request) -> Response:
        """The overview as server-sent events, whenever it changes."""
        who = caller(request)

        async def changes() -> AsyncIterator[bytes]:
            shown = ""
            while True:
                overview = await self._render_overview(request, who)
                if overview != shown:
                    shown = overview
                    yield event("overview", {"html": overview})
                await asyncio.sleep(PERIOD)

        return follow(self._gate, request, changes())

    @by_hand
    async def work(self, request: Request) -> Response:
        """The labelling page, or the choice of a stream."""
        who, service = caller(request), self._gate.service
        name = request.query_params.get("stream")
        labeler = who.bound_to() or request.query_params.get("labeler")
        if not name or not labeler:
            known = await all_streams(self._gate, request)
            streams = [one for one in known if one.status != StreamStatus.CLOSED or one.open_items]
            first = next((one.name for one in streams if one.open_items), name)
            return self._page("choose.html", who, streams=streams, labeler=labeler, first=first)
        stream = await service.stream(name)
        desk = await asyncio.to_thread(_desk, stream.settings)
        return self._page("work.html", who, stream=stream, labeler=labeler, **desk)

    @by_hand
    async def docs(self, request: Request) -> Response:
        described = self._app.openapi()
        return self._page("docs.html", caller(request), sections=sections(described))

    async def openapi(self) -> Response:
        """The OpenAPI document."""
        return json_answer(self._app.openapi())

    def error(self, request: Request, fault: RequestError) -> Response:
        who = getattr(request.state, "caller", None)
        return self._page("error.html", who, fault.status, fault=fault)

    async def _render_overview(self, request: Request, who: Caller) -> str:
        """The statistics of all streams as HTML; rendered at most once a second for each role.

        Admins see what they may do with a stream beside it; reviewers not what is hidden.
        """
        at, shown = self._overview.get(who.role, (-PERIOD, ""))
        now = time.monotonic()
        if now - at >= PERIOD:
            service, blind = self._gate.service, Blind(frozenset(), who.role == Role.REVIEWER)
            shown = self._templates.get_template("overview.html").render(
                streams=[blind.insights(one) for one in await all_insights(self._gate, request)],
                up=service.up,
                aside=service.set_aside,
                loading=service.loading,
                admin=who.role == Role.ADMIN,
            )
            self._overview[who.role] = now, shown
        return shown

    def _page(self, template: str, who: Caller | None, status: int = 200, **more: Any) -> Response:
        page = self._templates.get_template(template).render(who=who, version=__version__, **more)
        policy = (
            "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
            f"img-src data: {self._images}; media-src data: {self._images}; form-action 'self'; "
            "base-uri 'none'; frame-ancestors 'none'"
        )
        headers = {
            "content-security-policy": policy,
            "x-content-type-options": "nosniff",
            "referrer-policy": "same-origin",
            "cache-control": "no-store",
        }
        return HTMLResponse(page, status, headers)


def _desk(settings: dict[str, Any]) -> dict[str, Any]:
    """What the labelling page needs of a stream's settings."""
    classes, about = settings["classes"], settings["descriptions"]
    practice = json.dumps(settings["practice"], sort_keys=True).encode()
    return {
        "settings": settings,
        "classes": classes,
        "many": len(classes) > DIGITS,
        "guidelines": as_html(settings["guidelines"]),
        "descriptions": {name: as_html(about[name]) for name in classes if name in about},
        "hints": {
            name: text.strip().splitlines()[0] for name, text in about.items() if text.strip()
        },
        "guided": bool(settings["guidelines"].strip() or about),
        "practised": hashlib.sha256(practice).hexdigest()[:12],
    }


def landing(role: Role, to: str) -> str:
    """Where signing in leads: to the page that was asked for, or to the first one of a role.

    >>> landing(Role.VIEWER, "/streams/posts"), landing(Role.LABELER, "//evil.example")
    ('/streams/posts', '/work')
    """
    return to if to.startswith(WORK) else "/work" if role == Role.LABELER else "/"


def over_https(request: Request) -> bool:
    """Whether the browser uses HTTPS, directly or by the headers of a proxy.

    The headers may be forged: the only effects are a cookie that is sent over HTTPS alone, and the
    address to which a provider of identities is asked to send who forged them.
    """
    proxied = request.headers.get("x-forwarded-proto", "").partition(",")[0].strip().lower()
    forwarded = request.headers.get("forwarded", "").lower().replace('"', "")
    return "https" in (request.url.scheme, proxied) or "proto=https" in forwarded


def _cookie_of(state: str) -> str:
    """The cookie of a sign-in: each has its own, so that it may be tried in several tabs."""
    return f"{SIGN_IN_COOKIE}{state[:8]}"


def _unknown() -> RequestError:
    return RequestError(
        400,
        "unknown_sign_in",
        "this sign-in was finished, took longer than ten minutes, or began in another browser",
        hint="sign in again",
    )
