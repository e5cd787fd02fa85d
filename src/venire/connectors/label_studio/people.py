"""Who takes part: users of Label Studio, as labelers of a stream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from venire.connectors.label_studio.studio import LabelStudio, User, holding
from venire.errors import InputError, UnknownName

__all__ = ["Person", "choose_people", "make_tabs"]


@dataclass(frozen=True, slots=True)
class Person:
    """A user of Label Studio, and the labeler that the user is in the stream."""

    user: int
    email: str
    labeler: str


def choose_people(
    users: Sequence[User], settings: Mapping[str, Any], named: Sequence[str] = ()
) -> list[Person]:
    """The users who are named, as EMAIL or EMAIL=LABELER; else those on the panel; else all.

    Trusted labelers audit verdicts, which is not done here.

    >>> users = [User(1, "owner@example.org"), User(2, "ann@example.org")]
    >>> choose_people(users, {"panel": [{"id": "ann@example.org"}]})
    [Person(user=2, email='ann@example.org', labeler='ann@example.org')]
    >>> choose_people(users, {}, ["ann@example.org=ann"])
    [Person(user=2, email='ann@example.org', labeler='ann')]
    """
    by_email = {user.email.lower(): user for user in users}
    trusted = {member["id"] for member in settings.get("panel", ()) if member.get("trusted")}
    members = {member["id"] for member in settings.get("panel", ())} - trusted
    if named:
        found = [_named(one, by_email) for one in named]
    else:
        found = [Person(user.id, user.email, user.email) for user in users]
        seated = [one for one in found if one.labeler in members]
        if seated or not settings.get("open_panel", True):
            found = seated
    found = [one for one in found if one.labeler not in trusted]
    if not found:
        raise InputError(
            f"no user of Label Studio takes part: got the users {sorted(by_email)} and the panel "
            f"{sorted(members)}: name people with --labeler EMAIL=LABELER"
        )
    _check_once([one.labeler for one in found])
    return found


def _named(text: str, by_email: Mapping[str, User]) -> Person:
    email, _, labeler = text.partition("=")
    user = by_email.get(email.strip().lower())
    if user is None:
        raise UnknownName("user of Label Studio", email, by_email)
    return Person(user.id, user.email, labeler.strip() or user.email)


def _check_once(labelers: Sequence[str]) -> None:
    twice = sorted({name for name in labelers if labelers.count(name) > 1})
    if twice:
        raise InputError(f"got two users for {', '.join(twice)}, expected a labeler for each user")


async def make_tabs(studio: LabelStudio, people: Sequence[Person]) -> int:
    """Make a tab for each person that shows what is theirs; how many there were to make or mend."""
    there = {tab["data"].get("title"): tab for tab in await studio.tabs()}
    done = 0
    for person in people:
        title = f"venire: {person.email}"
        tab = there.get(title, {"id": None, "data": {}})
        filters = {"conjunction": "and", "items": [holding(person.email)]}
        if tab["data"].get("filters") != filters:
            basics = {"title": title, "type": "list", "target": "tasks"}
            await studio.put_tab({**basics, **tab["data"], "filters": filters}, tab["id"])
            done += 1
    return done
