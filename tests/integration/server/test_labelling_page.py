"""What the labelling page asks of the server, as any program may."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.integration.server.harness import InProcess, in_process

ABOUT: dict[str, Any] = {
    "guidelines": "# Rules\n\n<script>x</script> **Look** twice.",
    "descriptions": {"spam": "It *sells*."},
    "layout": [{"field": "text", "show": "markdown"}],
    "practice": [{"payload": {"text": "Buy"}, "answer": "spam", "why": "It **sells**."}],
}


@pytest.fixture
def served() -> Iterator[InProcess]:
    with in_process() as made:
        made.make_stream(**ABOUT)
        rows = [{"id": f"i{n}", "payload": {"text": f"*{n}*"}} for n in range(4)]
        assert made.call("POST", "/v1/streams/posts/items", json=rows).status_code == 200
        yield made


def test_a_labeler_sees_the_guidelines_and_nobody_else_on_the_panel(served: InProcess) -> None:
    seen = served.call("GET", "/v1/streams/posts", "labeler").json()["settings"]
    assert seen["guidelines"] == ABOUT["guidelines"]
    assert set(seen) == {
        "classes", "guidelines", "descriptions", "layout", "ahead", "undo_seconds"
    }  # fmt: skip
    page = served.call("GET", "/work?stream=posts", "labeler").text
    assert "<strong>Look</strong> twice" in page
    assert "&lt;script&gt;x" in page
    assert "It <em>sells</em>." in page


def test_the_settings_of_the_page_are_versioned_and_checked(served: InProcess) -> None:
    changed = served.call("PATCH", "/v1/streams/posts", json={"guidelines": "New."})
    assert changed.status_code == 200
    history = served.call("GET", "/v1/streams/posts/settings").json()
    assert [one["settings"]["guidelines"] for one in history] == [ABOUT["guidelines"], "New."]
    bad = served.call("PATCH", "/v1/streams/posts", json={"descriptions": {"eggs": "x"}})
    assert bad.status_code == 422
    assert "'eggs'" in bad.text


def test_what_is_shown_comes_with_the_work_if_asked_for(served: InProcess) -> None:
    assert served.take()["shown"] is None
    path = "/v1/streams/posts/next?labeler=ann&ahead=1&shown=true"
    work = served.call("GET", path).json()
    assert work["shown"][0]["kind"] == "markdown"
    assert "<em>" in work["shown"][0]["text"]
    held = served.call("POST", "/v1/streams/posts/held?labeler=ann&shown=true").json()
    assert [one["shown"][0]["kind"] for one in held] == ["markdown", "markdown"]


def test_practice_keeps_its_answers_to_itself_until_one_answers(served: InProcess) -> None:
    found = served.call("GET", "/v1/streams/posts/practice", "labeler")
    assert found.json() == [
        {"n": 0, "shown": [{"kind": "markdown", "text": '<p dir="auto">Buy</p>\n'}]}
    ]
    told = served.call("POST", "/v1/streams/posts/practice/0", "labeler", json={"said": "ok"})
    assert told.json() == {
        "right": False,
        "answer": "spam",
        "why": '<p dir="auto">It <strong>sells</strong>.</p>\n',
    }
    for n in ("1", "x", "-1", "9" * 5000):
        path = f"/v1/streams/posts/practice/{n}"
        assert served.call("POST", path, "labeler", json={"said": "ok"}).status_code == 404


def test_a_labeler_abstains_and_comments_and_others_read_it(served: InProcess) -> None:
    work = served.call("GET", "/v1/streams/posts/next", "labeler").json()
    path = f"/v1/assignments/{work['token']}"
    noted = served.call("POST", f"{path}/note", "labeler", json={"kind": "flag", "text": "torn"})
    assert noted.json() == {"status": "noted"}
    assert served.call("POST", f"{path}/abstain", "labeler").json() == {"status": "abstained"}
    bad = served.call("POST", f"{path}/note", "labeler", json={"kind": "unsure"})
    assert bad.status_code == 422
    notes = served.call("GET", "/v1/streams/posts/notes", "viewer").json()
    assert [(note["kind"], note["text"]) for note in notes] == [("flag", "torn"), ("unsure", "")]
    assert all(note["item"] == work["item"] and note["labeler"] == "ann" for note in notes)
    progress = served.call("GET", "/v1/streams/posts/progress", "labeler").json()
    assert (progress["labels"], progress["unsure"]) == (0, 1)
