"""Authorization: who may use each route, by the entries of `venire.operations` and of the pages.

A route that is in neither cannot be added, so none can be forgotten. A labeler's key is bound to
one labeler and acts only as that labeler.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from starlette.requests import Request

from venire.model import Role
from venire.operations import (
    ADMIN,
    EVERYBODY,
    OPERATIONS,
    PRODUCERS,
    READERS,
    REVIEWERS,
    WORKERS,
)
from venire.server.actors import Actor
from venire.server.edge.errors import RequestError

if TYPE_CHECKING:
    from venire.server.admin_messages import KeyView
    from venire.server.service import Service

COOKIE: Final = "venire_session"

#: Who may see each page, or send what its forms send; None for what needs no key.
PAGES: Final = MappingProxyType[str, frozenset[Role] | None](
    {
        "GET /": None,
        "POST /sign-in": None,
        "GET /sign-in": None,
        "POST /sign-out": None,
        "GET /sign-in/oidc": None,
        "GET /sign-in/oidc/callback": None,
        "GET /join/{stream}": None,
        "POST /join/{stream}": None,
        "GET /docs": EVERYBODY,
        "GET /live": READERS,
        "GET /work": WORKERS,
        "GET /audit": ADMIN,
        "GET /new-stream": ADMIN,
        "GET /archived": READERS,
        "GET /streams/{stream}": READERS,
        "GET /streams/{stream}/settings": READERS,
        "GET /streams/{stream}/what-if": READERS,
        "GET /streams/{stream}/items": READERS,
        "GET /streams/{stream}/upload": PRODUCERS,
        "GET /streams/{stream}/webhooks": ADMIN,
        "GET /streams/{stream}/export": OPERATIONS["export"].roles,
        "GET /streams/{stream}/reviews": REVIEWERS,
        "GET /streams/{stream}/labelers": READERS,
        "GET /streams/{stream}/items/{item}": READERS,
    }
)

#: Roles by route, of operations and pages.
ROLES: Final = MappingProxyType[str, frozenset[Role] | None](
    {one.route: one.roles for one in OPERATIONS.values()} | PAGES
)


@dataclass(frozen=True, slots=True)
class Caller:
    """The sender of a request."""

    key: str
    name: str
    role: Role
    labeler: str | None

    @property
    def actor(self) -> Actor:
        """The caller in the audit trail."""
        return Actor(self.name, self.key)

    def bound_to(self) -> str | None:
        """The only labeler whose leases the caller may use; None for any."""
        return self.labeler if self.role == Role.LABELER else None

    def as_labeler(self, asked: str | None) -> str:
        """The labeler that the caller acts as."""
        if self.role == Role.LABELER:
            if self.labeler is None or asked not in (None, self.labeler):
                raise RequestError(
                    403,
                    "not_your_labeler",
                    f"this key is bound to the labeler {self.labeler!r}, not {asked!r}",
                    hint="leave the labeler out, or use the key of that labeler",
                )
            return self.labeler
        if not asked:
            raise RequestError(
                422,
                "invalid",
                "labeler is missing, expected the id of a labeler",
                hint="only the key of a labeler may leave it out",
            )
        return asked


def token_of(request: Request) -> tuple[str | None, bool]:
    """The token of a request, and whether it is a session token, from the cookie.

    `Authorization: Bearer` or `Token`, or `X-Api-Key`, take precedence over the cookie.
    """
    headers = request.headers
    scheme, _, token = headers.get("authorization", "").partition(" ")
    if token and scheme.lower() in ("bearer", "token"):
        return token.strip(), False
    token = headers.get("x-api-key", "")
    if token:
        return token, False
    return request.cookies.get(COOKIE), True


def key_of(request: Request, service: Service) -> KeyView | None:
    """The key of a request or of its session, if it is valid."""
    token, from_page = token_of(request)
    if not token:
        return None
    return service.sessions.key_of(token) if from_page else service.keys.authenticate(token)


def admit(request: Request, service: Service, roles: frozenset[Role], what: str) -> Caller:
    """The authorized sender of a request; raises a 401 or 403 otherwise."""
    token, from_page = token_of(request)
    key = key_of(request, service)
    if key is None:
        if token and not from_page:
            request.scope["venire.refused"] = service.keys.known(token)
        raise no_key(token is not None)
    if from_page and foreign(request):
        raise RequestError(
            403, "foreign_page", "this came from another site", hint="use the pages of venire"
        )
    if key.role not in roles:
        raise RequestError(
            403,
            "not_allowed",
            f"a key with the role {key.role} may not use {what}",
            hint=f"it needs the role {' or '.join(sorted(roles))}",
        )
    return caller_of(key)


def no_key(sent: bool) -> RequestError:
    """The error for a request without a key, or with an invalid one."""
    return RequestError(
        401,
        "unknown_key" if sent else "no_key",
        "this key is unknown, revoked or expired" if sent else "a key is required",
        hint="send Authorization: Bearer vk_...; `venire keys create` creates a key",
    )


def caller_of(key: KeyView) -> Caller:
    return Caller(key.id, key.name, key.role, key.labeler)


def foreign(request: Request) -> bool:
    """Whether a page of another site made the request, by the headers that browsers send."""
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site not in ("same-origin", "none")
    origin = request.headers.get("origin")
    return origin is not None and origin.partition("://")[2] != request.headers.get("host")
