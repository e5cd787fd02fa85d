"""`venire keys`: manage the API keys of a server."""

from __future__ import annotations

import getpass
import json
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from venire.cli.shared import AsJson
from venire.cli.shared.stores import STORE, StorageUrl, open_guest
from venire.errors import InputError, UnknownName
from venire.model import Role

if TYPE_CHECKING:
    from venire.server.store import Insert, KeyRow, Storage


ACTIONS = ("list", "create", "rotate", "revoke")
ROLES = tuple(Role)

ACTION = "list, create, rotate or revoke."
ID = "With rotate and revoke: the id of the key, as in the list."
ROLE = f"With create: {', '.join(ROLES[:-1])} or {ROLES[-1]}."
LABELER = "With create --role labeler: the labeler who uses this key."
NAME = "With create: what the key is for."
DAYS = "With create: days until the key expires. [default: never]"
OVERLAP = "With rotate: hours for which the old key stays valid. [default: 24]"


def keys(
    action: Annotated[str, typer.Argument(metavar="ACTION", help=ACTION)],
    id: Annotated[str | None, typer.Argument(metavar="ID", help=ID)] = None,
    storage: StorageUrl = STORE,
    role: Annotated[str | None, typer.Option(metavar="ROLE", help=ROLE)] = None,
    labeler: Annotated[str | None, typer.Option(metavar="NAME", help=LABELER)] = None,
    name: Annotated[str | None, typer.Option(metavar="TEXT", help=NAME)] = None,
    days: Annotated[float | None, typer.Option(metavar="DAYS", help=DAYS)] = None,
    overlap: Annotated[float | None, typer.Option(metavar="HOURS", help=OVERLAP)] = None,
    as_json: AsJson = False,
) -> None:
    """List the API keys of a server, or create, rotate or revoke one.

    The store keeps only a hash: a new key is printed once and cannot be shown again. A running
    server picks up changes within seconds.
    """
    _check(action, id, role, labeler, name)
    _check_times(action, days, overlap)
    with open_guest(storage) as opened:
        known = opened.keys()
        if action == "create":
            found = [_create(opened, role or "", labeler, name or "", days)]
        elif action == "rotate":
            hours = 24.0 if overlap is None else overlap
            found = [_rotate(opened, _known(known, id), hours)]
        elif action == "revoke":
            found = [_revoke(opened, _known(known, id))]
        else:
            found = [_shown(row) for row in known]
    if as_json:
        print(json.dumps(found if action == "list" else found[0], indent=2))
    elif action in ("create", "rotate"):
        print(found[0]["key"])
    elif action == "revoke":
        print(f"{found[0]['id']} is revoked")
    else:
        _print_table(found)


def _check(
    action: str, id: str | None, role: str | None, labeler: str | None, name: str | None
) -> None:
    if action not in ACTIONS:
        raise UnknownName("action", action, ACTIONS)
    if (id is not None) != (action in ("rotate", "revoke")):
        raise InputError(
            "rotate and revoke need the id of a key, other actions do not: see venire keys list"
        )
    if action != "create":
        if role is not None or labeler is not None or name is not None:
            raise InputError(f"--role, --labeler and --name are options of create, not of {action}")
        return
    if role is None:
        raise InputError(f"create needs --role: {', '.join(ROLES)}")
    if role not in ROLES:
        raise UnknownName("role", role, ROLES)
    if (role == Role.LABELER) != bool(labeler):
        raise InputError("--labeler NAME is required for the role labeler, and only for that role")


def _check_times(action: str, days: float | None, overlap: float | None) -> None:
    if days is not None and action != "create":
        raise InputError(f"--days is an option of create, not of {action}")
    if overlap is not None and action != "rotate":
        raise InputError(f"--overlap is an option of rotate, not of {action}")
    if days is not None and not 0 < days <= 36_500:
        raise InputError(f"got --days {days:g}, expected more than 0, at most 36,500")
    if overlap is not None and not 0 <= overlap <= 8_760:
        raise InputError(f"got --overlap {overlap:g}, expected hours from 0 to 8,760")


def _known(known: list[KeyRow], id: str | None) -> KeyRow:
    row = next((row for row in known if row.id == id), None)
    if row is None:
        raise InputError(f"there is no key {id!r}: see venire keys list")
    return row


def _create(
    storage: Storage, role: str, labeler: str | None, name: str, days: float | None
) -> dict[str, Any]:
    from venire.server.keys.keyring import new_row
    from venire.server.store import Insert

    token, row = new_row(name, role, labeler, time.time(), days)
    storage.write([Insert([row]), _audit("key.create", row.id, role=role, labeler=labeler)])
    return {**_shown(row), "key": token}


def _rotate(storage: Storage, old: KeyRow, hours: float) -> dict[str, Any]:
    from venire.server.keys.keyring import DAY, new_row
    from venire.server.store import ExpireKey, Insert

    now = time.time()
    if old.revoked_at is not None or (old.expires_at is not None and old.expires_at <= now):
        raise InputError(f"key {old.id!r} is no longer valid: create one with venire keys create")
    days = None if old.expires_at is None else (old.expires_at - old.created_at) / DAY
    token, row = new_row(old.name, old.role, old.labeler, now, days)
    entry = _audit("key.rotate", old.id, new=row.id)
    storage.write([Insert([row]), ExpireKey(old.id, now + hours * 3600), entry])
    return {**_shown(row), "key": token}


def _revoke(storage: Storage, row: KeyRow) -> dict[str, Any]:
    from venire.server.store import RevokeKey

    now = time.time()
    storage.write([RevokeKey(row.id, now), _audit("key.revoke", row.id)])
    return _shown(row._replace(revoked_at=row.revoked_at or now))


def _audit(action: str, key: str, **details: Any) -> Insert:
    """An audit entry without a key: the actor has direct access to the store."""
    from venire.server.actors import audit_row
    from venire.server.store import Insert

    try:
        user = getpass.getuser()
    except (OSError, KeyError):  # a container may have no name for the user
        user = "somebody"
    return Insert([audit_row(f"{user}, by venire keys", time.time(), action, None, key, **details)])


def _shown(row: KeyRow) -> dict[str, Any]:
    shown = row._asdict()
    del shown["hash"]
    times = {name: _when(value) if name.endswith("_at") else value for name, value in shown.items()}
    return {**times, "state": _state(row, time.time())}


def _state(row: KeyRow, now: float) -> str:
    if row.revoked_at is not None:
        return "revoked"
    return "expired" if row.expires_at is not None and row.expires_at <= now else "valid"


def _when(at: float | None) -> str | None:
    return None if at is None else datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")


def _print_table(found: list[dict[str, Any]]) -> None:
    print(
        f"{'id':21}{'state':9}{'role':9}{'labeler':16}{'created':26}{'last used':26}{'revoked':26}"
        f"{'expires':26}name"
    )
    for key in found:
        times = (key["created_at"], key["last_used_at"], key["revoked_at"], key["expires_at"])
        shown = "".join(f"{when or '-':26}" for when in times)
        who = f"{key['id']:21}{key['state']:9}{key['role']:9}{key['labeler'] or '-':16}"
        print(f"{who}{shown}{key['name']}")
