"""The files of a comparison: all of them are written, or none."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from venire_research.common.files import as_csv, write_all
from venire_research.regimes.comparison import COLUMNS, Row
from venire_research.regimes.page import Setting, page
from venire_research.regimes.picture import picture
from venire_research.regimes.summary import summarise

__all__ = ["FILES", "save"]

#: The files in the folder, besides the finished points.
FILES: Final = ("regimes.csv", "summary.csv", "regimes.png", "index.html")


def save(out: Path, rows: Sequence[Row], setting: Setting) -> None:
    """Write `FILES` into the folder; after an error the old files are unchanged."""
    lines = summarise(rows)
    image = picture(rows)
    contents = (
        as_csv(rows, COLUMNS).encode(),
        as_csv(lines).encode(),
        image,
        page(rows, setting, image).encode(),
    )
    write_all(out, dict(zip(FILES, contents, strict=True)))
