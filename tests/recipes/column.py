"""A column of labels is stored, archived, restored, in the API's JSON and on an item's page."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from jinja2 import Environment

import venire.server.pages as pages
from venire.server.reports.event_json import label_view
from venire.server.store import Insert, LabelRow, StreamRow, open_storage
from venire.server.store.maintenance.archive import read_archive, write_archive


def main() -> None:
    values = ["posts", "a", "ann", "ok", 0.0, 0, False, None, "bulk", "key_1"]
    label = LabelRow.load([*values, "phone"])
    assert LabelRow.load(values).device is None  # type: ignore[attr-defined] # an older archive

    with open_storage("sqlite:///one.db") as one, open_storage("sqlite:///other.db") as other:
        one.write([Insert([StreamRow(name="posts", created_at=0.0)]), Insert([label])])
        write_archive(one, Path("archive.ndjson"))
        read_archive(other, Path("archive.ndjson"))
        [found] = other.labels_of("posts", "a")
    assert found == label

    view = label_view(found)
    assert asdict(view)["device"] == "phone"

    page = Path(pages.__file__).parent / "templates" / "item.html"
    table = (
        page.read_text(encoding="utf-8").partition("<h2>Labels</h2>")[2].partition("</table>")[0]
    )
    environment = Environment()
    environment.filters |= {"seconds": str, "times": str}
    assert "phone" in environment.from_string(table).render(item={"labels": [view]})


if __name__ == "__main__":
    main()
