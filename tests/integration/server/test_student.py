"""A student over HTTP: in the settings of a stream, and in what is shown of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.server.harness import InProcess, in_process, until

ONE = "/v1/streams/posts"


@pytest.fixture(scope="module")
def served() -> Iterator[InProcess]:
    with in_process() as shared:
        shared.make_stream(
            panel=[{"id": "ann"}, {"id": "bob"}, {"id": "cec"}],
            slot_seconds=0.01,
            learning="while-serving",
            student={"field": "text"},
        )
        yield shared


def test_it_learns_labels_and_is_shown(served: InProcess) -> None:
    shown = served.call("GET", ONE).json()
    assert shown["settings"]["student"] == {"id": "student", "field": "text", "bins": 5}
    assert shown["student"]["version"] == 0
    kinds = {True: ("spam", "buy cheap pills now"), False: ("ok", "dear friend, many thanks")}
    items = [
        {"id": f"p{n}", "payload": {"text": f"{kinds[n % 2 == 0][1]} {n}"}} for n in range(120)
    ]
    assert served.call("POST", f"{ONE}/items", json=items).status_code in (200, 201)
    labels = [
        {"item": f"p{n}", "labeler": labeler, "said": kinds[(n % 2 == 0) != (n % 9 == 0)][0]}
        for n in range(120)
        for labeler in ("ann", "bob", "cec")
    ]
    assert served.call("POST", f"{ONE}/labels", json=labels).status_code == 200
    until(lambda: served.call("GET", ONE).json()["student"]["version"] > 0)
    learned = served.call("GET", ONE).json()["student"]
    assert learned["ready"]
    assert learned["agreement"] > 0.7
    new = {"id": "new", "payload": {"text": "buy pills"}}
    assert served.call("POST", f"{ONE}/items", json=[new]).status_code in (200, 201)
    until(lambda: served.call("GET", f"{ONE}/items/new").json()["labels"])
    said = served.call("GET", f"{ONE}/items/new").json()["labels"]
    assert [one["said"] for one in said] == ["spam"]
    assert said[0]["labeler"].startswith("student (")


def test_bad_settings_are_refused(served: InProcess) -> None:
    for wrong in ({"bins": 0}, {"bins": "5"}, {"layers": 3}, "text"):
        answer = served.call("PATCH", ONE, json={"student": wrong})
        assert answer.status_code == 422, wrong
    answer = served.call("PATCH", ONE, json={"label_budget": 5})
    assert answer.status_code == 422
    assert "budget in money" in answer.text


def test_it_can_be_dismissed(served: InProcess) -> None:
    assert served.call("PATCH", ONE, json={"student": None}).json()["student"] is None
