"""The words of closed lists are written once, in `venire.model`; whatever lists them agrees."""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest

from venire import model
from venire.scheduling.kernel import desk
from venire.server.store import records as rows
from venire.server.store.sql import tables

ROOT = Path(__file__).parent.parent.parent
SERVE = (ROOT / "docs" / "serve.md").read_text()
WORDS = [
    model.DeliveryStatus,
    model.ExitReason,
    model.ItemStatus,
    model.LeaseStatus,
    model.NoWork,
    model.Role,
    model.StreamStatus,
]

#: The codes that snapshots hold, as they were when the first ones were written.
CODES = {
    "no_gain": 1,
    "exhausted": 2,
    "overlap": 3,
    "learning": 4,
    "dropped": 5,
    "horizon": 6,
    "max_labels": 7,
    "confident": 8,
    "deadline": 9,
    "budget": 10,
    "undecided": 11,
}


@pytest.mark.parametrize("words", WORDS)
def test_a_word_is_its_text(words: type[StrEnum]) -> None:
    for word in words:
        text = word.value
        assert (word == text, str(word), repr(word)) == (True, text, repr(text))
        assert json.dumps([word]) == json.dumps([text])
        assert pickle.loads(pickle.dumps(word)) is word is words(text)


@pytest.mark.parametrize(("text", "code"), CODES.items())
def test_the_codes_of_reasons_stay_what_is_in_snapshots(text: str, code: int) -> None:
    assert desk.REASONS[code] == text
    assert getattr(desk, text.upper()) == code


def test_every_reason_says_what_it_means() -> None:
    assert all(reason.meaning for reason in model.ExitReason)
    assert len({reason.meaning for reason in model.ExitReason}) == len(model.ExitReason)


def first_cells(head: str) -> list[str]:
    """The first column of the table in docs/serve.md that begins with this."""
    lines = SERVE[SERVE.index(head) :].splitlines()[2:]
    rows = lines[: next(n for n, line in enumerate(lines) if not line.startswith("|"))]
    return [row.split("|")[1].strip(" `") for row in rows]


def listed(start: str) -> list[str]:
    """The words in backquotes after this in docs/serve.md, to the end of the sentence or row."""
    return re.findall(r"`(\w+)`", re.split(r"[.|]\s", SERVE.partition(start)[2])[0])


def test_the_documentation_lists_every_word() -> None:
    assert first_cells("| reason |") == list(model.ExitReason)
    assert first_cells("| role |") == list(model.Role)
    assert listed("the `status` of an item |") == list(model.ItemStatus)
    assert listed("the `status` of a stream |") == list(model.StreamStatus)
    assert listed("the `status` of a message to a webhook |") == list(model.DeliveryStatus)
    assert listed("the `kind` of a note |") == list(model.NoteKind)
    assert listed("`Venire-Reason` where there is none:") == list(model.NoWork)


def test_the_page_of_labelers_has_words_for_every_reason() -> None:
    script = (ROOT / "src/venire/server/pages/static/work.js").read_text()
    block = script.partition("const REASONS = {")[2].partition("}")[0]
    assert re.findall(r"^  (\w+):", block, re.MULTILINE) == list(model.NoWork)


def test_the_store_takes_exactly_these_words() -> None:
    kept: list[tuple[Any, Iterable[str]]] = [
        (tables.items, model.ItemStatus),
        (tables.streams, rows.STREAM_STATUSES),  # that of an archived one is closed
        (tables.leases, model.LeaseStatus),
        (tables.deliveries, model.DeliveryStatus),
    ]
    for table, words in kept:
        checks = [str(c.sqltext) for c in table.constraints if hasattr(c, "sqltext")]
        status = next(text for text in checks if text.startswith("status IN"))
        assert re.findall(r"'(\w+)'", status) == list(words)
