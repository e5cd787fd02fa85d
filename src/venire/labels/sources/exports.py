"""Labels in what other programs write: Prodigy, Argilla, promptfoo and Inspect.

Each is known by its fields. What it says becomes (task, worker, label) records; what has no single
class is left out and counted. Exports that do not say who gave a label, or are read by a command of
their own, are refused with what to do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from venire.errors import FileError
from venire.tools.addresses import PathOrAddress

Record = Mapping[str, Any]

#: How the column of those who answered a question of Argilla ends.
_USERS: Final = ".responses.users"

#: A task, a worker and a label; None for a label that is left out.
Said = tuple[Any, Any, Any]


class Export(NamedTuple):
    """The labels of an export as records, and what they were taken from."""

    records: list[dict[str, Any]]
    said: str


def export_of(path: PathOrAddress, records: Sequence[Any]) -> Export | None:
    """The labels, if the records are those of a known program; None if they are not.

    >>> from pathlib import Path
    >>> one = {"text": "x", "_input_hash": 7, "_session_id": "t-ann", "answer": "accept"}
    >>> made = export_of(Path("t.jsonl"), [{**one, "accept": ["spam"]}])
    >>> made.records
    [{'task': 7, 'worker': 't-ann', 'label': 'spam'}]
    """
    found = [record for record in records if isinstance(record, Mapping)]
    if not found or len(found) < len(records) or not is_export(path, found[0]):
        return None
    program = _program(found[0])
    try:
        rows = list(_PROGRAMS[program][1](path, found))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        if isinstance(error, FileError):
            raise
        message = f"this is not as {program} writes it ({error!r}): write task,worker,label"
        raise FileError(path, None, message) from None
    kept = [row for row in rows if row[2] is not None]
    if not kept:
        raise FileError(path, None, f"this export of {program} has no label of one class")
    left = len(rows) - len(kept)
    said = f"read {len(kept):,} labels from an export of {program}"
    return Export(
        [dict(zip(("task", "worker", "label"), row, strict=True)) for row in kept],
        said + (f"; left out {left:,} without a single class" if left else ""),
    )


def is_export(path: PathOrAddress, record: Any) -> bool:
    """Whether a record is of a known program; an error if it is one that is not read."""
    if not isinstance(record, Mapping):
        return False
    _refuse(path, record)
    return bool(_program(record))


def _program(record: Record) -> str:
    known = (
        name for name, (fields, _) in _PROGRAMS.items() if all(_has(record, f) for f in fields)
    )
    flat = any(str(name).endswith(_USERS) for name in record)
    return "Argilla on the Hugging Face Hub" if flat else next(known, "")


def _has(record: Record, field: str) -> bool:
    place: Any = record
    for part in field.split("/"):
        if not isinstance(place, Mapping) or part not in place:
            return False
        place = place[part]
    return True


def _refuse(path: PathOrAddress, first: Record) -> None:
    if "annotation_id" in first or "completions" in first or {"data", "annotations"} <= set(first):
        message = "this is an export of Label Studio: run `venire import label-studio {0}`, then"
        message = message.format(path) + " give labels.csv, which it writes"
        raise FileError(path, None, message)
    if {"id", "text", "label"} <= set(first) and isinstance(first["label"], list):
        raise FileError(
            path,
            None,
            "this looks like an export of doccano, which does not say who labelled: it writes a "
            "file for each annotator; add the name to each, as in `jq -c "
            "'{task: .id, worker: \"ann\", label: .label[0]}' ann.jsonl >> labels.jsonl`",
        )


def _one(values: Any) -> Any:
    """The only one of several classes."""
    if isinstance(values, list):
        return values[0] if len(values) == 1 else None
    return None if isinstance(values, dict) else values


def _prodigy(path: PathOrAddress, records: Sequence[Record]) -> Iterator[Said]:
    """A choice is about an input; yes or no about an input with its label, which is the task."""
    for record in records:
        who = record.get("_annotator_id") or record.get("_session_id")
        if who is None:
            raise FileError(
                path,
                None,
                "this export of Prodigy does not say who annotated: open it with ?session=NAME in "
                "the address, or add _annotator_id to each line",
            )
        if record.get("answer") == "ignore":
            yield record["_input_hash"], who, None
        elif "accept" in record:
            wrong = record.get("answer") == "reject"
            yield record["_input_hash"], who, None if wrong else _one(record["accept"])
        else:
            yield record.get("_task_hash", record["_input_hash"]), who, record["answer"]


def _argilla(path: PathOrAddress, records: Sequence[Record]) -> Iterator[Said]:
    """The answers to the only question, each with its user."""
    questions = dict.fromkeys(name for one in records for name in one["responses"] or ())
    if len(questions) != 1:
        raise FileError(
            path,
            None,
            f"this export of Argilla has the questions {', '.join(questions) or '(none)'}: export "
            "one question, or write task,worker,label",
        )
    (question,) = questions
    for number, record in enumerate(records):
        for answer in (record["responses"] or {}).get(question) or ():
            yield record.get("id", number), answer.get("user_id"), _one(answer.get("value"))


def _argilla_flat(path: PathOrAddress, records: Sequence[Record]) -> Iterator[Said]:
    """As Argilla writes to the Hugging Face Hub: lists of answers and of their users."""
    names = [name.removesuffix(_USERS) for name in records[0] if name.endswith(_USERS)]
    if len(names) != 1:
        raise FileError(path, None, f"it has the questions {', '.join(names)}, expected one")
    for number, record in enumerate(records):
        said, users = record.get(f"{names[0]}.responses"), record.get(f"{names[0]}{_USERS}")
        for user, value in zip(users or (), said or (), strict=True):
            yield record.get("id", number), user, _one(value)


def _promptfoo(path: PathOrAddress, records: Sequence[Record]) -> Iterator[Said]:
    """Each output is an item, each assertion a judge of it."""
    results = records[0]["results"]["results"]
    for number, result in enumerate(results):
        provider = result.get("provider") or {}
        name = provider.get("id", number) if isinstance(provider, Mapping) else provider
        item = f"{result.get('testIdx', number)}/{result.get('promptIdx', 0)}/{name}"
        seen: dict[str, int] = {}
        for part in (result.get("gradingResult") or {}).get("componentResults") or ():
            about = part.get("assertion") or {}
            judge = str(about.get("metric") or about.get("provider") or about.get("type"))
            seen[judge] = seen.get(judge, 0) + 1
            judge = judge if seen[judge] == 1 else f"{judge} {seen[judge]}"
            yield item, judge, "pass" if part.get("pass") else "fail"


def _inspect(path: PathOrAddress, records: Sequence[Record]) -> Iterator[Said]:
    for sample in records[0]["samples"]:
        epoch = sample.get("epoch", 1)
        item = sample["id"] if epoch == 1 else f"{sample['id']}/{epoch}"
        for scorer, score in (sample.get("scores") or {}).items():
            yield str(item), scorer, _one(score.get("value"))


#: The fields by which a program is known, and what reads its records.
_PROGRAMS: Final[dict[str, tuple[tuple[str, ...], Callable[..., Iterator[Said]]]]] = {
    "Prodigy": (("_input_hash", "answer"), _prodigy),
    "Argilla": (("responses", "fields"), _argilla),
    "Argilla on the Hugging Face Hub": ((_USERS,), _argilla_flat),
    "promptfoo": (("results/results",), _promptfoo),
    "Inspect": (("eval", "samples"), _inspect),
}
