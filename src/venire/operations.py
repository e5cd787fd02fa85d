"""What a client may do with a server: one entry for each operation.

Everything else about an operation is derived from its entry, or refers to it by name: the route and
its check of roles (`server/routes`), the OpenAPI document, the methods of both clients
(`client/calls.py`), the tools of agents (`connectors/mcp.py`) and the table in docs/operations.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final
from urllib.parse import quote

from venire.model import Role

__all__ = [
    "ADMIN",
    "EVERYBODY",
    "OPERATIONS",
    "PRODUCERS",
    "READERS",
    "REVIEWERS",
    "WORKERS",
    "Operation",
]

ADMIN: Final = frozenset({Role.ADMIN})
READERS: Final = frozenset({Role.ADMIN, Role.PRODUCER, Role.VIEWER, Role.REVIEWER})
PRODUCERS: Final = frozenset({Role.ADMIN, Role.PRODUCER})
WORKERS: Final = frozenset({Role.ADMIN, Role.LABELER})
REVIEWERS: Final = frozenset({Role.ADMIN, Role.REVIEWER})
EVERYBODY: Final = frozenset(Role)
_NOT_BLIND: Final = READERS - {Role.REVIEWER}  # audits are blind: a reviewer may not see verdicts


@dataclass(frozen=True, slots=True)
class Operation:
    """One thing that a client may do.

    `name` is the method of the clients. `roles` is None where no key is needed. `tool` is the name
    under which agents may use it, if they may. What is not `idempotent` is not sent again where it
    is unknown whether it arrived.
    """

    name: str
    method: str
    path: str
    roles: frozenset[Role] | None
    tool: str | None = None
    idempotent: bool = True

    @property
    def route(self) -> str:
        """Method and path, such as "GET /v1/streams"."""
        return f"{self.method} {self.path}"

    def path_of(self, **names: str) -> str:
        """The path with names in it, which may contain any character.

        >>> OPERATIONS["item"].path_of(stream="posts", item="a/b")
        '/v1/streams/posts/items/a%2Fb'
        >>> OPERATIONS["item"].path_of(stream="posts", item="..")
        '/v1/streams/posts/items/%2E%2E'
        """
        return self.path.format(**{name: _quoted(part) for name, part in names.items()})


def _quoted(part: str) -> str:
    """One segment of a path; "." and ".." would be resolved if they were not quoted."""
    return part.replace(".", "%2E") if part in (".", "..") else quote(part, safe="")


_ONE: Final = "/v1/streams/{stream}"
_ITEM: Final = f"{_ONE}/items/{{item}}"
_HOOK: Final = f"{_ONE}/webhooks/{{webhook}}"
_LEASE: Final = "/v1/assignments/{token}"

_ALL: Final = (
    # streams
    Operation("streams", "GET", "/v1/streams", EVERYBODY, tool="streams"),
    Operation("create_stream", "POST", "/v1/streams", ADMIN),
    Operation("stream", "GET", _ONE, EVERYBODY),
    Operation("change_stream", "PATCH", _ONE, ADMIN),
    Operation("delete_stream", "DELETE", _ONE, ADMIN),
    Operation("settings_history", "GET", f"{_ONE}/settings", READERS),
    Operation("pause", "POST", f"{_ONE}/pause", ADMIN),
    Operation("resume", "POST", f"{_ONE}/resume", ADMIN),
    Operation("close_stream", "POST", f"{_ONE}/close", ADMIN),
    Operation("archive_stream", "POST", f"{_ONE}/archive", ADMIN),
    Operation("restore_stream", "POST", f"{_ONE}/restore", ADMIN),
    Operation("archived", "GET", "/v1/archived", READERS),
    # items
    Operation("add_items", "POST", f"{_ONE}/items", PRODUCERS, tool="add_items"),
    Operation("upload", "POST", f"{_ONE}/upload", PRODUCERS),
    Operation("find_items", "GET", f"{_ONE}/items", READERS),
    Operation("item", "GET", _ITEM, READERS, tool="verdict"),
    Operation("explain", "GET", f"{_ITEM}/explain", READERS, tool="explain"),
    Operation("withdraw", "DELETE", _ITEM, PRODUCERS),
    Operation("erase_payload", "DELETE", f"{_ONE}/payloads/{{item}}", ADMIN),
    # work
    Operation("next", "GET", f"{_ONE}/next", WORKERS, tool="next_item"),
    Operation("held", "POST", f"{_ONE}/held", WORKERS, tool="held"),
    Operation("label", "POST", f"{_LEASE}/label", WORKERS, tool="label"),
    Operation("heartbeat", "POST", f"{_LEASE}/heartbeat", WORKERS, tool="renew"),
    Operation("release", "POST", f"{_LEASE}/release", WORKERS, tool="release"),
    Operation("abstain", "POST", f"{_LEASE}/abstain", WORKERS, tool="not_sure"),
    Operation("note", "POST", f"{_LEASE}/note", WORKERS),
    Operation("notes", "GET", f"{_ONE}/notes", READERS),
    Operation("progress", "GET", f"{_ONE}/progress", WORKERS),
    Operation("practice", "GET", f"{_ONE}/practice", WORKERS),
    Operation("check_practice", "POST", f"{_ONE}/practice/{{n}}", WORKERS),
    Operation("add_labels", "POST", f"{_ONE}/labels", PRODUCERS | WORKERS),
    # gold and reviews
    Operation("add_gold", "POST", f"{_ONE}/gold", WORKERS | REVIEWERS),
    Operation("gold", "GET", f"{_ONE}/gold", READERS),
    Operation("audits", "GET", f"{_ONE}/audits", EVERYBODY),
    Operation("reviews", "GET", f"{_ONE}/reviews", REVIEWERS),
    Operation("review", "POST", f"{_ONE}/reviews", REVIEWERS),
    Operation("send_back", "POST", f"{_ONE}/send-back", REVIEWERS),
    # what came out
    Operation("exits", "GET", f"{_ONE}/exits", READERS, tool="verdicts"),
    Operation("revisions", "GET", f"{_ONE}/revisions", READERS),
    Operation("events", "GET", f"{_ONE}/events", _NOT_BLIND),
    Operation("export", "GET", f"{_ONE}/export", _NOT_BLIND),
    Operation("insights", "GET", f"{_ONE}/insights", READERS, tool="insights"),
    Operation("trends", "GET", f"{_ONE}/trends", READERS),
    Operation("alarms", "GET", f"{_ONE}/alarms", READERS),
    Operation("rates", "GET", f"{_ONE}/rates", READERS),
    Operation("lessons", "GET", f"{_ONE}/lessons", READERS),
    Operation("what_if", "POST", f"{_ONE}/what-if", READERS),
    # labelers
    Operation("labelers", "GET", f"{_ONE}/labelers", READERS, tool="labelers"),
    Operation("add_labeler", "POST", f"{_ONE}/labelers", ADMIN),
    Operation("retire_labeler", "POST", f"{_ONE}/labelers/retire", ADMIN),
    Operation("restore_labeler", "POST", f"{_ONE}/labelers/restore", ADMIN),
    Operation("agreement", "GET", f"{_ONE}/agreement", READERS),
    Operation("panel", "GET", f"{_ONE}/panel", READERS),
    Operation("confusion", "GET", f"{_ONE}/confusion", READERS),
    Operation("invitations", "GET", f"{_ONE}/invitations", ADMIN),
    Operation("invite", "POST", f"{_ONE}/invitations", ADMIN, idempotent=False),
    Operation("revoke_invitation", "DELETE", f"{_ONE}/invitations/{{invitation}}", ADMIN),
    # webhooks
    Operation("webhooks", "GET", f"{_ONE}/webhooks", ADMIN),
    Operation("add_webhook", "POST", f"{_ONE}/webhooks", ADMIN, idempotent=False),
    Operation("remove_webhook", "DELETE", _HOOK, ADMIN),
    Operation("ping_webhook", "POST", f"{_HOOK}/ping", ADMIN, idempotent=False),
    Operation("rotate_webhook", "POST", f"{_HOOK}/rotate", ADMIN, idempotent=False),
    Operation("dead_letters", "GET", f"{_HOOK}/dead", ADMIN),
    Operation("redeliver", "POST", f"{_HOOK}/redeliver", ADMIN, idempotent=False),
    # keys, the audit trail, the server
    Operation("me", "GET", "/v1/me", EVERYBODY),
    Operation("keys", "GET", "/v1/keys", ADMIN),
    Operation("create_key", "POST", "/v1/keys", ADMIN, idempotent=False),
    Operation("rotate_key", "POST", "/v1/keys/{key}/rotate", ADMIN, idempotent=False),
    Operation("revoke_key", "DELETE", "/v1/keys/{key}", ADMIN),
    Operation("audit", "GET", "/v1/audit", ADMIN),
    Operation("export_audit", "GET", "/v1/audit/export", ADMIN),
    Operation("health", "GET", "/health", None),
    Operation("ready", "GET", "/ready", None),
    Operation("version", "GET", "/version", EVERYBODY),
    Operation("metrics", "GET", "/metrics", frozenset({Role.ADMIN, Role.VIEWER})),
    Operation("openapi", "GET", "/openapi.json", EVERYBODY),
)

#: Every operation, by name.
OPERATIONS: Final[Mapping[str, Operation]] = MappingProxyType({one.name: one for one in _ALL})
