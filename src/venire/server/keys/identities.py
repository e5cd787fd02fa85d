"""People who sign in with an identity provider: what they are here, by issuer and subject.

Each has a key whose token nobody knows, as who came by an invitation has. Its role is what the
provider said at the last sign-in: where it says another one, the key is replaced, and the sessions
of the old one end. The name of a labeler is bound to the subject when it first signs in as one, and
stays whatever the provider calls it later.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Final

from pydantic import TypeAdapter, ValidationError

from venire.errors import Conflict, InputError
from venire.model import Role
from venire.server.actors import Actor, audit_row
from venire.server.settings import Name
from venire.server.store import AuditRow, Change, DropMeta, Insert, SetMeta
from venire.server.store.contents import compact
from venire.server.tokens import hashed

if TYPE_CHECKING:
    from venire.server.admin_messages import KeyView
    from venire.server.keys.keyring import Keyring, Sessions
    from venire.server.runtime.runtime import Runtime

#: How the names begin under which the store keeps identities, and sign-ins that were finished.
PREFIX: Final = "identity "
FINISHED: Final = "finished sign-in "

#: Who replaces keys here, in the audit trail.
ACTOR: Final = Actor("single sign-on")

#: How many groups of somebody the audit trail names.
MOST_GROUPS: Final = 50

_NAME: Final[TypeAdapter[str]] = TypeAdapter(Name)


@dataclass(frozen=True, slots=True)
class Person:
    """What the provider says of somebody; `group` is the one that gives the role, if one does."""

    issuer: str
    subject: str
    name: str
    groups: tuple[str, ...]
    group: str | None
    role: Role | None
    labeler: str | None


@dataclass(frozen=True, slots=True)
class Identity:
    """What is kept of somebody: the name, the key, and the labeler that is bound to the subject."""

    issuer: str
    subject: str
    name: str
    key: str | None = None
    labeler: str | None = None


class Identities:
    """The people of a service who sign in with a provider."""

    def __init__(self, runtime: Runtime, keys: Keyring, sessions: Sessions) -> None:
        self._runtime, self._keys, self._sessions = runtime, keys, sessions
        self._lock = asyncio.Lock()  # one signs in at a time

    @property
    def secret(self) -> bytes:
        """What signs the sign-ins that browsers keep; the same for all servers on the store."""
        return self._runtime.secret_for("sign-in")

    async def is_finished(self, state: str) -> bool:
        name = f"{FINISHED}{hashed(state)}"
        found = await self._runtime.read_committed(self._runtime.storage.meta, name)
        return found is not None

    async def sign_in(self, person: Person, seconds: float, state: str, until: float) -> str | None:
        """Begin a session of somebody; None if that has no role here, or has signed in by `state`.

        `until` is when the sign-in expires: as long it is kept that it was finished.
        """
        async with self._lock:
            if await self.is_finished(state):
                return None
            await self._keys.refresh()  # another server may have changed the key
            known = await self._all()
            place = f"{PREFIX}{hashed(compact([person.issuer, person.subject]))}"
            identity = known.pop(place, Identity(person.issuer, person.subject, person.name))
            if person.role == Role.LABELER and identity.labeler is None:
                identity = replace(identity, labeler=_labeler(person, known.values()))
            key = await self._key_of(person, identity)
            identity = replace(identity, name=person.name, key=None if key is None else key.id)
            changes = [*await self._finish(state, until), _change(place, identity)]
            await self._runtime.write([*changes, Insert([self._entry(person, identity)])])
            return None if key is None else await self._sessions.begin(key, seconds)

    async def _key_of(self, person: Person, identity: Identity) -> KeyView | None:
        """The key of somebody, with the role of today; another one is revoked."""
        role, key = person.role, None if identity.key is None else self._keys.valid(identity.key)
        labeler = identity.labeler if role == Role.LABELER else None
        if key is not None and (key.role, key.labeler) != (role, labeler):
            await self._keys.revoke(key.id, ACTOR)
            key = None
        if key is None and role is not None:
            key = (await self._keys.create(person.name, role, labeler, ACTOR)).key
        return key

    async def _finish(self, state: str, until: float) -> list[Change]:
        """Note that a sign-in was finished, and forget those that have expired since."""
        runtime = self._runtime
        kept = await runtime.read_committed(runtime.storage.metas, FINISHED)
        over = [name for name, end in kept.items() if float(end) <= runtime.clock.wall()]
        return [*map(DropMeta, over), SetMeta(f"{FINISHED}{hashed(state)}", str(until))]

    def _entry(self, person: Person, identity: Identity) -> AuditRow:
        at, who = self._runtime.clock.wall(), Actor(person.name, identity.key)
        if person.role is None:
            groups = list(person.groups[:MOST_GROUPS])
            return audit_row(
                who, at, "sign_in.refuse", None, person.subject, issuer=person.issuer, groups=groups
            )
        labeler = identity.labeler if person.role == Role.LABELER else None
        return audit_row(
            who, at, "sign_in", None, person.subject,
            issuer=person.issuer, group=person.group, role=person.role, labeler=labeler,
        )  # fmt: skip

    async def _all(self) -> dict[str, Identity]:
        rows = await self._runtime.read_committed(self._runtime.storage.metas, PREFIX)
        return {name: Identity(**json.loads(one)) for name, one in rows.items()}


def _labeler(person: Person, others: Iterable[Identity]) -> str:
    """The labeler that somebody is to be: nobody else who signed in may be that one."""
    try:
        name = _NAME.validate_python(person.labeler)
    except ValidationError:
        raise InputError(
            f"the provider names you {person.labeler!r}, and a labeler needs a name of 1 to 200 "
            "characters: ask whoever runs this server to set oidc_labeler_claim to a claim of yours"
        ) from None
    if name.casefold() in {one.labeler.casefold() for one in others if one.labeler is not None}:
        raise Conflict(
            f"somebody else has signed in as the labeler {name!r}: ask whoever runs this server to "
            "set oidc_labeler_claim to a claim in which no two people are alike"
        )
    return name


def _change(name: str, identity: Identity) -> SetMeta:
    return SetMeta(name, compact(asdict(identity)))
