"""Tasks as they should be: in whose tab, open or closed, with which verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from venire.connectors.label_studio.hearing import annotator
from venire.connectors.label_studio.studio import FIELD, LabelStudio
from venire.connectors.rounds import Verdict
from venire.files.label_config import Control

__all__ = ["VERSION", "changes", "put"]

#: The model version of the predictions.
VERSION: Final = "venire"


def changes(
    task: Mapping[str, Any], holders: Sequence[str], verdict: Verdict | None
) -> dict[str, Any]:
    """The fields of a task to change; none if it is as it should be.

    Label Studio closes a task when `overlap` people have annotated it, and looks at that again
    after each annotation. So an open task has a greater overlap, and a closed one no greater.

    >>> task = {"data": {"text": "a"}, "overlap": 1, "is_labeled": False, "annotations": []}
    >>> changes(task, ["ann@example.org"], None)
    {'data': {'text': 'a', 'venire_for': '|ann@example.org|'}, 'overlap': 2, 'is_labeled': False}
    >>> changes(task, [], Verdict("spam", 0.9))
    {'overlap': 1, 'is_labeled': True}
    """
    everyone = {annotator(one) for one in task["annotations"]}
    people = {annotator(one) for one in task["annotations"] if not one["was_cancelled"]}
    found: dict[str, Any] = {}
    wanted = "" if verdict else "".join(f"|{email}|" for email in holders)
    if task["data"].get(FIELD, "") != wanted:
        found["data"] = {**task["data"], FIELD: wanted}
    if verdict is not None:
        enough = max(1, len(people))
        if not task["is_labeled"] or task["overlap"] > enough:
            found |= {"overlap": enough, "is_labeled": True}
    elif task["is_labeled"] or task["overlap"] <= len(everyone) + len(holders):
        found |= {"overlap": len(everyone) + len(holders) + 1, "is_labeled": False}
    return found


async def put(
    studio: LabelStudio,
    control: Control,
    task: Mapping[str, Any],
    holders: Sequence[str],
    verdict: Verdict | None,
) -> bool:
    """Make a task what it should be; whether that closed it."""
    fields = changes(task, holders, verdict)
    if fields:
        await studio.change_task(task["id"], **fields)
    if verdict is not None:
        await _predict(studio, control, task, verdict)
    return bool(fields.get("is_labeled"))


async def _predict(
    studio: LabelStudio, control: Control, task: Mapping[str, Any], verdict: Verdict
) -> None:
    """Leave the verdict as the only prediction of ours, whatever an earlier attempt left."""
    ours = [one for one in task["predictions"] if one["model_version"] == VERSION]
    right = [one for one in ours if control.said(one["result"]) == [verdict.label]]
    if verdict.label is not None and not right:
        result = control.result(verdict.label)
        await studio.predict(task["id"], result, verdict.confidence, VERSION)
    for one in ours:
        if one not in right[:1]:
            await studio.remove_prediction(one["id"])
