"""`venire keys`: who may use the service."""

from __future__ import annotations

import getpass
import json
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from venire.cli.stores import StorageUrl, open_guest
from venire.errors import InputError, UnknownName

if TYPE_CHECKING:
    from venire.storage import AddAudit, KeyRow, Storage

__all__ = ["keys"]

ROLES = ("admin", "producer", "labeler", "viewer")

ACTION = "list, create or revoke."
ID = "With revoke: the id of the key, as in the list."
ROLE = "With create: admin, producer, labeler or viewer."
LABELER = "With create --role labeler: who labels by this key."
NAME = "With create: what the key is for."


def keys(
    action: Annotated[str, typer.Argument(metavar="ACTION", help=ACTION)],
    id: Annotated[str | None, typer.Argument(metavar="ID", help=ID)] = None,
    storage: StorageUrl = "sqlite:///venire.db",
    role: Annotated[str | None, typer.Option(metavar="ROLE", help=ROLE)] = None,
    labeler: Annotated[str | None, typer.Option(metavar="NAME", help=LABELER)] = None,
    name: Annotated[str | None, typer.Option(metavar="TEXT", help=NAME)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the keys to the service, make one, or revoke one.

    The store keeps only a hash: a new key is printed once, and cannot be shown again. A server
    that is running notices within seconds.
    """
    _check(action, id, role, labeler, name)
    with open_guest(storage) as opened:
        known = opened.keys()
        if action == "create":
            found = [_create(opened, role or "", labeler, name or "")]
        elif action == "revoke":
            found = [_revoke(opened, known, id or "")]
        else:
            found = [_shown(row) for row in known]
    if as_json:
        print(json.dumps(found if action == "list" else found[0], indent=2))
    elif action == "create":
        print(found[0]["key"])
    elif action == "revoke":
        print(f"{found[0]['id']} is revoked")
    else:
        _print_table(found)


def _check(
    action: str, id: str | None, role: str | None, labeler: str | None, name: str | None
) -> None:
    if action not in ("list", "create", "revoke"):
        raise UnknownName("action", action, ("list", "create", "revoke"))
    if (id is not None) != (action == "revoke"):
        raise InputError("revoke needs the id of a key, and only revoke: see venire keys list")
    if action != "create":
        if role is not None or labeler is not None or name is not None:
            raise InputError(f"--role, --labeler and --name go with create, not with {action}")
        return
    if role is None:
        raise InputError(f"create needs --role: {', '.join(ROLES)}")
    if role not in ROLES:
        raise UnknownName("role", role, ROLES)
    if (role == "labeler") != bool(labeler):
        raise InputError("a key for a labeler needs --labeler NAME, and only such a key has one")


def _create(storage: Storage, role: str, labeler: str | None, name: str) -> dict[str, Any]:
    from venire.service.tokens import hashed, new_id, new_key
    from venire.storage import AddKey, KeyRow

    token = new_key()
    row = KeyRow(new_id("key"), hashed(token), role, labeler, name, time.time())
    storage.write([AddKey(row), _told("key.create", row.id, role=role, labeler=labeler)])
    return {**_shown(row), "key": token}


def _revoke(storage: Storage, known: list[KeyRow], id: str) -> dict[str, Any]:
    from venire.storage import RevokeKey

    row = next((row for row in known if row.id == id), None)
    if row is None:
        raise InputError(f"there is no key {id!r}: see venire keys list")
    now = time.time()
    storage.write([RevokeKey(id, now), _told("key.revoke", id)])
    return _shown(row._replace(revoked_at=row.revoked_at or now))


def _told(action: str, key: str, **details: Any) -> AddAudit:
    """A line of the audit trail: somebody with access to the store has no key."""
    from venire.service.actors import done_by
    from venire.storage import AddAudit

    try:
        user = getpass.getuser()
    except (OSError, KeyError):  # a container may have no name for it
        user = "somebody"
    return AddAudit([done_by(f"{user}, by venire keys", time.time(), action, None, key, **details)])


def _shown(row: KeyRow) -> dict[str, Any]:
    shown = row._asdict()
    del shown["hash"]
    return {name: _when(value) if name.endswith("_at") else value for name, value in shown.items()}


def _when(at: float | None) -> str | None:
    return None if at is None else datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")


def _print_table(found: list[dict[str, Any]]) -> None:
    print(f"{'id':21}{'role':9}{'labeler':16}{'created':26}{'last used':26}{'revoked':26}name")
    for key in found:
        times = (key["created_at"], key["last_used_at"], key["revoked_at"])
        shown = "".join(f"{when or '-':26}" for when in times)
        print(f"{key['id']:21}{key['role']:9}{key['labeler'] or '-':16}{shown}{key['name']}")
