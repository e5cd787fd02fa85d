"""Annotations as labels: each counted once, or refused with a reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from venire.client import ServerError
from venire.connectors.label_studio.desk import Desk, Key
from venire.connectors.label_studio.people import Person
from venire.connectors.label_studio.tally import Tally
from venire.files.label_config import Control

__all__ = ["Hearing", "annotator"]

Annotation: TypeAlias = Mapping[str, Any]

#: What can be done about a label that the server refused, by the code of the refusal.
HINTS = {
    "not_given": "people label what their tab shows; with the setting unasked_labels, the stream "
    "takes what they label besides",
    "changed": "the first counts",
}


def annotator(annotation: Annotation) -> int:
    """The id of the user who made an annotation; 0 for one who is no longer there.

    >>> annotator({"completed_by": 3}), annotator({"completed_by": {"id": 3}})
    (3, 3)
    """
    who = annotation["completed_by"]
    return int((who["id"] if isinstance(who, Mapping) else who) or 0)


@dataclass
class Hearing:
    """Sends what annotations say to the stream.

    An annotation with a lease answers it. One without goes to the server, which knows whether the
    labeler ever had one, and has the label if it came before: so a restart counts nothing twice.
    """

    desk: Desk
    control: Control
    people: dict[int, Person] = field(default_factory=dict)
    _heard: set[tuple[int, str]] = field(default_factory=set)
    _strange: set[tuple[int, str]] = field(default_factory=set)

    def meet(self, people: Iterable[Person]) -> None:
        """Take the annotations of these people; what somebody new made before is heard again."""
        known = {person.user: person for person in people}
        if known != self.people:
            self.people = known
            self._heard -= self._strange
            self._strange.clear()

    async def hear(self, tasks: Iterable[Mapping[str, Any]], tally: Tally) -> None:
        """Send what is new in these tasks."""
        rows: list[tuple[Annotation, Key, str]] = []
        for task in tasks:
            for user, made in _by_user(task["annotations"]).items():
                person = self.people.get(user)
                if person is None:
                    self._refuse_stranger(made, task["id"], tally)
                else:
                    rows += await self._one(made, (task["id"], person.labeler), tally)
        for k in range(0, len(rows), 1000):
            await self._send(rows[k : k + 1000], tally)

    def _refuse_stranger(self, made: Sequence[Annotation], task: int, tally: Tally) -> None:
        for annotation in made:
            if self._is_new(annotation) and not annotation["was_cancelled"]:
                name = annotation.get("created_username", "").strip()
                self._strange.add(_stamp(annotation))
                self._refuse(annotation, task, f"{name or 'its user'} takes no part", tally)

    async def _one(
        self, made: Sequence[Annotation], key: Key, tally: Tally
    ) -> list[tuple[Annotation, Key, str]]:
        """What one person made of a task; returns what has to be sent without a lease."""
        rows: list[tuple[Annotation, Key, str]] = []
        valid = [annotation for annotation in made if not annotation["was_cancelled"]]
        if not valid and key in self.desk.tokens:
            await self.desk.release(key, bar=True)
            tally.skips += 1
        for annotation in valid:
            if not self._is_new(annotation) and key not in self.desk.tokens:
                continue
            said = self.control.said(annotation["result"])
            if len(said) == 1:
                if key not in self.desk.tokens or not await self._answer(
                    annotation, key, said[0], tally
                ):
                    rows.append((annotation, key, said[0]))
                continue
            if key in self.desk.tokens:
                await self.desk.release(key, bar=True)
            self._refuse(
                annotation, key[0], f"it says {said or 'nothing'}, expected one class of "
                f"{self.control.name}", tally,
            )  # fmt: skip
        return rows

    async def _answer(self, annotation: Annotation, key: Key, said: str, tally: Tally) -> bool:
        """Answer a lease; False if the server does not know it."""
        token = self.desk.tokens[key]
        try:
            await self.desk.panel.label(token, said)
            tally.labels += 1
        except ServerError as error:
            if error.status not in (404, 409, 422):
                raise
            if error.status == 404:
                self.desk.drop(key)
                return False
            self._refuse(annotation, key[0], error.message, tally)
        self.desk.drop(key)
        self._heard.add(_stamp(annotation))
        return True

    async def _send(self, rows: Sequence[tuple[Annotation, Key, str]], tally: Tally) -> None:
        labels = [(self.desk.item(task), labeler, said) for _, (task, labeler), said in rows]
        got = await self.desk.panel.add_labels(self.desk.stream, labels, leased=True)
        tally.labels += got["accepted"] + got["late"]
        refused = {refusal["row"]: refusal for refusal in got["refusals"]}
        for place, (annotation, (task, _), _) in enumerate(rows):
            if place in refused:
                code, why = refused[place]["code"], refused[place]["message"]
                hint = HINTS.get(code, "")
                self._refuse(annotation, task, f"{why}{': ' if hint else ''}{hint}", tally)
            self._heard.add(_stamp(annotation))

    def _is_new(self, annotation: Annotation) -> bool:
        return _stamp(annotation) not in self._heard

    def _refuse(self, annotation: Annotation, task: int, why: str, tally: Tally) -> None:
        if self._is_new(annotation):
            self._heard.add(_stamp(annotation))
            tally.refuse(f"annotation {annotation['id']} of task {task} is not counted: {why}")


def _stamp(annotation: Annotation) -> tuple[int, str]:
    """An annotation as it is now: it may be changed later."""
    return annotation["id"], annotation["updated_at"]


def _by_user(annotations: Sequence[Annotation]) -> dict[int, list[Annotation]]:
    """Annotations by who made them, the earliest first."""
    found: dict[int, list[Annotation]] = {}
    for annotation in sorted(annotations, key=lambda one: one["id"]):
        found.setdefault(annotator(annotation), []).append(annotation)
    return found
