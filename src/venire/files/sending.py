"""Items of a file as a server takes them: CSV or JSON Lines, a row for each.

An object with a `payload` is an item as the API describes it. Otherwise the fields that are not of
the API are the payload: what labelers are shown.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

from venire.errors import FileError, InputError
from venire.labels.sources.files import is_json_lines
from venire.labels.sources.headers import ITEM, role_names
from venire.tools.addresses import PathOrAddress
from venire.tools.csv_rows import number, read_each
from venire.tools.untrusted import parse_json

#: The fields of an item beside its id and payload.
FIELDS: Final = ("weight", "min_confidence", "eligible", "excluded")

#: Items that are sent together.
TOGETHER: Final = 500

#: Sends items, and says how many are new and how many were there; `InputError` if one is refused,
#: and then none is taken.
Post = Callable[[Sequence[dict[str, Any]]], Mapping[str, Any]]

_NUMBERS, _NAMES = FIELDS[:2], FIELDS[2:]


class Sent(NamedTuple):
    """A row of a file: its line, and the item, or why it is none."""

    line: int
    item: dict[str, Any] | None
    why: str = ""


def read_sent(path: PathOrAddress, id: str | None = None, hashed: bool = False) -> Iterator[Sent]:
    r"""The items of a file, in order; a row that is not an item says why.

    `id` names the column of the ids, by default `id`, or else the one that looks like it. With
    `hashed` an id is made of the payload, so that the same payload is the same item.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "posts.csv")
    ...     _ = path.write_text("post_id;text;weight\n7;Buy!;20\n;See you;\n")
    ...     for row in read_sent(path):
    ...         print(row)
    Sent(line=2, item={'id': '7', 'payload': {'text': 'Buy!'}, 'weight': 20.0}, why='')
    Sent(line=3, item=None, why="'post_id' is empty, expected an id in every row")
    """
    named = id
    for line, row in _records(path):
        if isinstance(row, str):
            yield Sent(line, None, row)
            continue
        if named is None and not hashed:
            named = _id_column(path, list(row))
        if named is not None and named not in row and id is not None:
            raise FileError(path, line, f"there is no {named!r}, got {', '.join(map(str, row))}")
        yield _sent(line, row, "" if named is None else named, hashed)


def _records(path: PathOrAddress) -> Iterator[tuple[int, dict[str, Any] | str]]:
    if not is_json_lines(path):
        for line, row in read_each(path):
            named = row if isinstance(row, str) else {k: v for k, v in row.items() if k}
            yield line, named
        return
    try:
        with path.open(encoding="utf-8-sig") as file:
            for line, text in enumerate(file, start=1):
                if text.strip():
                    yield line, _object(text)
    except UnicodeDecodeError:
        raise FileError(path, None, "this is not UTF-8 text: save the file in UTF-8") from None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise FileError(path, None, f"cannot be read ({reason}): check the path") from None


def _object(text: str) -> dict[str, Any] | str:
    try:
        found = parse_json(text)
    except json.JSONDecodeError as error:
        return f"not JSON ({error.msg.lower()}), expected an object a line"
    return found if isinstance(found, dict) else f"a {type(found).__name__}, expected an object"


def _id_column(path: PathOrAddress, names: list[str]) -> str:
    found = ["id"] if "id" in names else role_names(names, ITEM)
    if not found:
        raise FileError(
            path,
            1,
            f"no column of ids among {', '.join(map(str, names))}: name it (--id), or let ids "
            "be made of the content (--hash-ids)",
        )
    return found[0]


def _sent(line: int, row: Mapping[str, Any], named: str, hashed: bool) -> Sent:
    ready = "payload" in row
    more = {name: row[name] for name in FIELDS if row.get(name) not in (None, "")}
    for name in _NUMBERS:
        if isinstance(more.get(name), str):
            value = number(more[name])
            if value is None:
                return Sent(line, None, f"{name} is {more[name]!r}, expected a number")
            more[name] = value
    for name in _NAMES:
        if isinstance(more.get(name), str):
            more[name] = [part.strip() for part in more[name].split("|")]
    rest = {k: v for k, v in row.items() if k not in (named, *FIELDS)}
    payload = row["payload"] if ready else rest
    if hashed:
        text = json.dumps(payload, sort_keys=True, ensure_ascii=False)
        return Sent(
            line, {"id": hashlib.sha256(text.encode()).hexdigest()[:24], "payload": payload} | more
        )
    if row.get(named) in (None, ""):
        return Sent(line, None, f"{named!r} is empty, expected an id in every row")
    return Sent(line, {"id": str(row[named]), "payload": payload} | more)


def send_all(
    rows: Iterator[Sent], post: Post, progress: Callable[[str], object] = str
) -> dict[str, Any]:
    """Send rows some hundred at a time; how many are new, how many were there, which are refused.

    >>> seen = []
    >>> def post(items):
    ...     seen.extend(item["id"] for item in items)
    ...     return {"created": len(items), "exists": 0}
    >>> send_all(iter([Sent(2, {"id": "a"}), Sent(3, None, "no id")]), post)
    {'created': 1, 'exists': 0, 'refused': [{'line': 3, 'id': None, 'why': 'no id'}]}
    """
    done: dict[str, Any] = {"created": 0, "exists": 0, "refused": []}
    while part := list(islice(rows, TOGETHER)):
        done["refused"] += [
            {"line": row.line, "id": None, "why": row.why} for row in part if row.item is None
        ]
        _post([row for row in part if row.item is not None], post, done)
        progress(f"{done['created'] + done['exists']:,} items sent")
    done["refused"].sort(key=lambda row: row["line"])
    return done


def _post(part: Sequence[Sent], post: Post, done: dict[str, Any]) -> None:
    """Send rows together; if they are refused, in halves, until it is known which one it is."""
    if not part:
        return
    try:
        counts = post([row.item for row in part if row.item is not None])
    except InputError as fault:
        if len(part) == 1:
            id = (part[0].item or {}).get("id")
            done["refused"].append({"line": part[0].line, "id": id, "why": str(fault)})
            return
        half = len(part) // 2
        _post(part[:half], post, done)
        _post(part[half:], post, done)
        return
    done["created"] += counts["created"]
    done["exists"] += counts["exists"]
