"""The files of an experiment: CSV with exact floats, all files of a set or none."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from venire.errors import InputError

__all__ = ["as_csv", "make_folder", "write_all"]


def make_folder(out: Path) -> None:
    """Make the folder, or say why it cannot be written to."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"cannot make the folder {out} ({error.strerror}): give another one with --out"
        ) from None
    if not os.access(out, os.W_OK):
        raise InputError(f"cannot write to the folder {out}: give another one with --out")


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


def as_csv(rows: Sequence[Mapping[str, Any]], columns: Sequence[str] | None = None) -> str:
    r"""A header and a line for each row; None is empty, floats are exact.

    The columns are those of the first row, unless they are given.

    >>> as_csv([{"a": 0.1, "b": None}])
    'a,b\n0.1,\n'
    """
    names = columns or (list(rows[0]) if rows else [])
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([_plain(row[name]) for name in names] for row in rows)
    return text.getvalue()


def _plain(value: Any) -> Any:
    return json.dumps(float(value)) if isinstance(value, float) else value
