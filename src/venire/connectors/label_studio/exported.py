"""Labels from an export of Label Studio: JSON, or JSON-MIN."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from venire.errors import FileError
from venire.files.label_config import Control
from venire.tools.untrusted import parse_json


class Exported(NamedTuple):
    """The labels of an export, (task, worker, label), and what could not be taken, by reason."""

    labels: list[tuple[str, str, str]]
    left_out: dict[str, int]
    control: Control


def read_export(path: Path, control: str | None = None) -> Exported:
    """The labels of a file that Label Studio exported as JSON or JSON-MIN.

    `control` is the name of the control that says the class (`from_name`), by default the only one.
    A worker is the e-mail address, or the number of the user where that is all the file has. Of
    somebody who annotated a task twice the first counts; skipped tasks have no label.

    >>> import json, tempfile
    >>> rows = [{"id": 7, "kind": "cat", "annotator": 2, "annotation_id": 1}]  # JSON-MIN
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "export.json")
    ...     _ = path.write_text(json.dumps(rows))
    ...     read_export(path).labels
    [('7', '2', 'cat')]
    """
    tasks = _read(path)
    with _as_exported(path):
        kinds = _controls(tasks)
    if control is None and len(kinds) != 1:
        names = ", ".join(sorted(kinds)) or "none"
        raise FileError(path, None, f"it has the controls {names}: name one with --control")
    if control is not None and control not in kinds:
        raise FileError(
            path, None, f"got --control {control}, expected one of {', '.join(sorted(kinds))}"
        )
    chosen = kinds[control or next(iter(kinds))]
    left_out: dict[str, int] = {}
    found: dict[tuple[str, str], str] = {}
    with _as_exported(path):
        annotations = list(_annotations(tasks, chosen))
    for task, worker, said, skipped in annotations:
        why = ""
        if skipped:
            why = "skipped"
        elif len(said) != 1:
            why = "several classes" if said else "no class"
        elif found.setdefault((task, worker), said[0]) != said[0]:
            why = "changed"
        if why:
            left_out[why] = left_out.get(why, 0) + 1
    return Exported([(*pair, said) for pair, said in found.items()], left_out, chosen)


def with_verdicts(
    path: Path, verdicts: Mapping[str, tuple[str, float | None]], control: Control | None = None
) -> Iterator[dict[str, Any]]:
    """The tasks of a JSON export with verdicts, (class, confidence), as predictions.

    `control` is that of the labelling config; without it, the only one of the annotations.
    """
    tasks = _read(path)
    if any(_is_min(task) for task in tasks):
        raise FileError(path, None, "got JSON-MIN, which has no tasks: export as JSON")
    chosen = control or read_export(path).control
    unknown = sorted(set(verdicts) - {str(task["id"]) for task in tasks})
    if unknown:
        raise FileError(path, None, f"it has no task {unknown[0]}, which has a verdict")
    for task in tasks:
        with _as_exported(path):
            made: dict[str, Any] = {"data": task["data"], "meta": {"task": task["id"]}}
        if str(task["id"]) in verdicts:
            label, confidence = verdicts[str(task["id"])]
            found = {"model_version": "venire", "result": chosen.result(label)}
            made["predictions"] = [found if confidence is None else {**found, "score": confidence}]
        yield made


def _read(path: Path) -> list[Mapping[str, Any]]:
    try:
        tasks = parse_json(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise FileError(path, None, f"cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise FileError(
            path, None, f"it is not JSON ({error}): export as JSON or JSON-MIN from Label Studio"
        ) from None
    if not isinstance(tasks, list) or not all(
        isinstance(task, Mapping) and "id" in task for task in tasks
    ):
        raise FileError(path, None, "expected a list of tasks with ids, as Label Studio exports it")
    return tasks


@contextmanager
def _as_exported(path: Path) -> Iterator[None]:
    try:
        yield
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise FileError(
            path,
            None,
            f"its annotations are not what Label Studio exports ({str(error)[:100]}): export as "
            "JSON or JSON-MIN",
        ) from None


def _is_min(task: Mapping[str, Any]) -> bool:
    """Whether it is a row of JSON-MIN: one for each annotation, its controls beside its data."""
    return "annotation_id" in task


def _controls(tasks: list[Mapping[str, Any]]) -> dict[str, Control]:
    """The controls by name that an export has annotations of."""
    found: dict[str, Control] = {}
    for task in tasks:
        if _is_min(task):
            about = {"id", "annotator", "annotation_id", "created_at", "updated_at", "lead_time"}
            names = list(task)
            after = names[names.index("id") + 1 :] if "id" in names else []
            for name in after:  # the data stands before the id, the controls after it
                if name not in about:
                    found.setdefault(name, Control(name, ""))
            continue
        for part in (part for made in _made(task) for part in made.get("result") or ()):
            kind = part.get("type")
            if kind in ("choices", "rating"):
                name = part["from_name"]
                found.setdefault(name, Control(name, part.get("to_name", ""), kind))
    return found


def _made(task: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The annotations of a task, the earliest first; older exports call them completions."""
    made = task.get("annotations", task.get("completions")) or []
    return sorted(made, key=lambda one: one.get("id") or 0)


def _annotations(
    tasks: list[Mapping[str, Any]], control: Control
) -> Iterator[tuple[str, str, list[str], bool]]:
    ordered = sorted(tasks, key=lambda task: task.get("annotation_id") or 0)
    for task in ordered:
        id = task["id"]
        if _is_min(task):
            yield str(id), _worker(task.get("annotator")), _choices(task.get(control.name)), False
            continue
        for made in _made(task):
            skipped = bool(made.get("was_cancelled"))
            yield str(id), _worker(made.get("completed_by")), control.said(made["result"]), skipped


def _choices(said: Any) -> list[str]:
    """The classes in a cell of JSON-MIN: one, or several in `choices`."""
    if isinstance(said, Mapping):
        said = said.get("choices", [])
    if said is None:
        return []
    return [str(one) for one in said] if isinstance(said, list) else [str(said)]


def _worker(who: Any) -> str:
    if isinstance(who, Mapping):
        return str(who.get("email") or who.get("id"))
    return str(who)
