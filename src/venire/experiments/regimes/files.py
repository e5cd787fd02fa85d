"""The files of a comparison: all of them are written, or none."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from venire.errors import InputError
from venire.experiments.regimes.comparison import COLUMNS, Row
from venire.experiments.regimes.page import Setting, page
from venire.experiments.regimes.picture import picture
from venire.experiments.regimes.summary import summarise

__all__ = ["FILES", "as_csv", "save", "write_all"]

#: What lies in the folder afterwards, beside the finished points.
FILES: Final = ("regimes.csv", "summary.csv", "regimes.png", "index.html")


def save(out: Path, rows: Sequence[Row], setting: Setting) -> None:
    """Write `FILES` into the folder; an error leaves those that were there as they were."""
    lines = summarise(rows)
    image = picture(rows)
    contents = (
        as_csv(rows, COLUMNS).encode(),
        as_csv(lines, list(lines[0])).encode(),
        image,
        page(rows, setting, image).encode(),
    )
    write_all(out, dict(zip(FILES, contents, strict=True)))


def write_all(out: Path, contents: Mapping[str, bytes]) -> None:
    """Write these files into the folder, all of them or none."""
    drafts = {name: out / f".{name}.{os.getpid()}.part" for name in contents}
    try:
        for name, draft in drafts.items():
            draft.write_bytes(contents[name])
        for name, draft in drafts.items():
            draft.replace(out / name)
    except OSError as error:
        raise InputError(
            f"cannot write to the folder {out} ({error.strerror}): give another one with --out"
        ) from None
    finally:
        for draft in drafts.values():
            draft.unlink(missing_ok=True)


def as_csv(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> str:
    r"""A header and a line for each row; nothing where a value is None, floats to the last bit.

    >>> as_csv([{"a": 0.1, "b": None}], ["a", "b"])
    'a,b\n0.1,\n'
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_plain(row[name]) for name in columns] for row in rows)
    return text.getvalue()


def _plain(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, float) else value
