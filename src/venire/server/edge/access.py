"""Authorization: one table of roles, with every route in it.

A route that is not listed cannot be added, so none can be forgotten. A labeler's key is bound to
one labeler and acts only as that labeler.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from starlette.requests import Request

from venire.model import Role
from venire.server.actors import Actor
from venire.server.admin_messages import KeyView
from venire.server.edge.errors import RequestError
from venire.server.service import Service

__all__ = ["COOKIE", "ROLES", "Caller", "admit", "caller_of", "key_of", "no_key", "token_of"]

COOKIE: Final = "venire_session"

_ADMIN: Final = frozenset({Role.ADMIN})
_READERS: Final = frozenset({Role.ADMIN, Role.PRODUCER, Role.VIEWER, Role.REVIEWER})
_PRODUCERS: Final = frozenset({Role.ADMIN, Role.PRODUCER})
_WORKERS: Final = frozenset({Role.ADMIN, Role.LABELER})
_REVIEWERS: Final = frozenset({Role.ADMIN, Role.REVIEWER})
_SENDERS: Final = frozenset({Role.ADMIN, Role.PRODUCER, Role.LABELER})
_ALL: Final = frozenset(Role)

#: Roles by route; None for a route that needs no key.
ROLES: Final = MappingProxyType[str, frozenset[Role] | None](
    {
        "POST /v1/assignments/{token}/label": _WORKERS,
        "POST /v1/assignments/{token}/heartbeat": _WORKERS,
        "POST /v1/assignments/{token}/release": _WORKERS,
        "POST /v1/assignments/{token}/abstain": _WORKERS,
        "POST /v1/assignments/{token}/note": _WORKERS,
        "GET /v1/streams/{stream}/notes": _READERS,
        "GET /v1/streams/{stream}/progress": _WORKERS,
        "GET /v1/streams/{stream}/practice": _WORKERS,
        "POST /v1/streams/{stream}/practice/{n}": _WORKERS,
        "GET /v1/streams/{stream}/next": _WORKERS,
        "POST /v1/streams/{stream}/held": _WORKERS,
        "POST /v1/streams/{stream}/labels": _SENDERS,
        "POST /v1/streams/{stream}/items": _PRODUCERS,
        "POST /v1/streams/{stream}/upload": _PRODUCERS,
        "GET /v1/streams/{stream}/items": _READERS,
        "DELETE /v1/streams/{stream}/items/{item}": _PRODUCERS,
        "GET /v1/streams/{stream}/items/{item}/explain": _READERS,
        "GET /v1/streams/{stream}/items/{item}": _READERS,
        "GET /v1/streams/{stream}/exits": _READERS,
        "GET /v1/streams/{stream}/revisions": _READERS,
        "GET /v1/streams/{stream}/events": _READERS - {Role.REVIEWER},  # audits are blind
        "GET /v1/streams/{stream}/export": _READERS - {Role.REVIEWER},  # audits are blind
        "GET /v1/streams/{stream}/labelers": _READERS,
        "POST /v1/streams/{stream}/labelers": _ADMIN,
        "POST /v1/streams/{stream}/labelers/retire": _ADMIN,
        "POST /v1/streams/{stream}/labelers/restore": _ADMIN,
        "GET /v1/streams/{stream}/invitations": _ADMIN,
        "POST /v1/streams/{stream}/invitations": _ADMIN,
        "DELETE /v1/streams/{stream}/invitations/{invitation}": _ADMIN,
        "GET /v1/streams/{stream}/agreement": _READERS,
        "GET /v1/streams/{stream}/panel": _READERS,
        "GET /v1/streams/{stream}/confusion": _READERS,
        "GET /v1/streams/{stream}/rates": _READERS,
        "GET /v1/streams/{stream}/lessons": _READERS,
        "POST /v1/streams/{stream}/what-if": _READERS,
        "GET /v1/streams/{stream}/insights": _READERS,
        "GET /v1/streams/{stream}/trends": _READERS,
        "GET /v1/streams/{stream}/alarms": _READERS,
        "GET /v1/streams/{stream}/audits": _ALL,
        "POST /v1/streams/{stream}/gold": _WORKERS | _REVIEWERS,
        "GET /v1/streams/{stream}/gold": _READERS,
        "GET /v1/streams/{stream}/reviews": _REVIEWERS,
        "POST /v1/streams/{stream}/reviews": _REVIEWERS,
        "POST /v1/streams/{stream}/send-back": _REVIEWERS,
        "GET /v1/streams": _ALL,
        "POST /v1/streams": _ADMIN,
        "GET /v1/streams/{stream}": _ALL,
        "PATCH /v1/streams/{stream}": _ADMIN,
        "DELETE /v1/streams/{stream}": _ADMIN,
        "DELETE /v1/streams/{stream}/payloads/{item}": _ADMIN,
        "GET /v1/audit": _ADMIN,
        "GET /v1/audit/export": _ADMIN,
        "GET /v1/streams/{stream}/settings": _READERS,
        "POST /v1/streams/{stream}/pause": _ADMIN,
        "POST /v1/streams/{stream}/resume": _ADMIN,
        "POST /v1/streams/{stream}/close": _ADMIN,
        "POST /v1/streams/{stream}/archive": _ADMIN,
        "POST /v1/streams/{stream}/restore": _ADMIN,
        "GET /v1/archived": _READERS,
        "GET /v1/streams/{stream}/webhooks": _ADMIN,
        "POST /v1/streams/{stream}/webhooks": _ADMIN,
        "DELETE /v1/streams/{stream}/webhooks/{webhook}": _ADMIN,
        "POST /v1/streams/{stream}/webhooks/{webhook}/ping": _ADMIN,
        "POST /v1/streams/{stream}/webhooks/{webhook}/rotate": _ADMIN,
        "GET /v1/streams/{stream}/webhooks/{webhook}/dead": _ADMIN,
        "POST /v1/streams/{stream}/webhooks/{webhook}/redeliver": _ADMIN,
        "GET /v1/keys": _ADMIN,
        "POST /v1/keys": _ADMIN,
        "DELETE /v1/keys/{key}": _ADMIN,
        "POST /v1/keys/{key}/rotate": _ADMIN,
        "GET /v1/me": _ALL,
        "GET /health": None,
        "GET /ready": None,
        "GET /version": _ALL,
        "GET /metrics": frozenset({Role.ADMIN, Role.VIEWER}),
        "GET /openapi.json": _ALL,
        "GET /docs": _ALL,
        "GET /": None,
        "POST /sign-in": None,
        "GET /sign-in": None,
        "POST /sign-out": None,
        "GET /join/{stream}": None,
        "POST /join/{stream}": None,
        "GET /live": _READERS,
        "GET /work": _WORKERS,
        "GET /audit": _ADMIN,
        "GET /new-stream": _ADMIN,
        "GET /archived": _READERS,
        "GET /streams/{stream}": _READERS,
        "GET /streams/{stream}/settings": _READERS,
        "GET /streams/{stream}/what-if": _READERS,
        "GET /streams/{stream}/items": _READERS,
        "GET /streams/{stream}/upload": _PRODUCERS,
        "GET /streams/{stream}/webhooks": _ADMIN,
        "GET /streams/{stream}/export": _READERS - {Role.REVIEWER},
        "GET /streams/{stream}/reviews": _REVIEWERS,
        "GET /streams/{stream}/labelers": _READERS,
        "GET /streams/{stream}/items/{item}": _READERS,
    }
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
    """The owner of a key."""
    return Caller(key.id, key.name, key.role, key.labeler)


def foreign(request: Request) -> bool:
    """Whether a page of another site made the request, by the headers that browsers send."""
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site not in ("same-origin", "none")
    origin = request.headers.get("origin")
    return origin is not None and origin.partition("://")[2] != request.headers.get("host")
