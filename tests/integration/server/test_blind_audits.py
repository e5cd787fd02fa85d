"""Audits are blind: reviewers see neither verdict nor labels of what is due; admins do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.integration.server.harness import InProcess, in_process, until
from tests.integration.server.test_reviews import SETTINGS

STREAM = "/v1/streams/posts"


@pytest.fixture(scope="module")
def served() -> Iterator[InProcess]:
    """`due` and `done` left as ok; only the first is due for an audit."""
    with in_process() as shared:
        shared.make_stream(**SETTINGS, audit_share=1.0, revisions=100)
        shared.add("due", "done", "open")
        rows = [
            {"item": item, "labeler": who, "said": "ok"}
            for item in ("due", "done")
            for who in ("ann", "bob")
        ]
        assert shared.call("POST", f"{STREAM}/labels", json=rows).status_code == 200
        until(lambda: len(shared.call("GET", f"{STREAM}/exits").text.splitlines()) == 2)
        judged = {"item": "done", "label": "ok"}
        assert shared.call("POST", f"{STREAM}/reviews", json=judged).status_code == 200
        yield shared


def read(served: InProcess, path: str, role: str) -> Any:
    answer = served.call("GET", f"{STREAM}/{path}", role)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_the_item(served: InProcess) -> None:
    seen = read(served, "items/due", "reviewer")
    assert (seen["verdict"], seen["confidence"], seen["labels"]) == (None, 0.0, [])
    assert (seen["exit"]["verdict"], seen["exit"]["labels"], seen["notes"]) == (None, 0, [])
    assert seen["payload"] == "text of due"
    for role in ("admin", "viewer", "producer"):
        assert read(served, "items/due", role)["verdict"] == "ok"
    assert read(served, "items/done", "reviewer")["verdict"] == "ok"


def test_the_listing_and_what_is_found_by_its_verdict(served: InProcess) -> None:
    def found(query: str, role: str = "reviewer") -> dict[str, Any]:
        listed = read(served, f"items?{query}", role)["items"]
        return {one["id"]: (one["verdict"], one["confidence"], one["labels"]) for one in listed}

    assert found("status=left")["due"] == (None, None, 0)
    assert found("status=left")["done"][0] == "ok"
    for query in ("verdict=ok", "min_confidence=0.1", "labeler=ann", "reason=overlap"):
        assert set(found(query)) <= {"done"}
        assert "due" in found(query, "admin")
    assert set(found("text=due")) == {"due"}


def test_the_story_the_exits_and_the_log(served: InProcess) -> None:
    refused = served.call("GET", f"{STREAM}/items/due/explain", "reviewer")
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "audit_due")
    assert read(served, "items/done/explain", "reviewer")["exit"]["verdict"] == "ok"
    lines = served.call("GET", f"{STREAM}/exits", "reviewer").text.splitlines()
    assert sum('"verdict":null' in line for line in lines) == 1
    assert '"verdict":null' not in served.call("GET", f"{STREAM}/exits", "admin").text
    assert served.call("GET", f"{STREAM}/events", "reviewer").status_code == 403
    assert served.call("GET", f"{STREAM}/revisions", "reviewer").status_code == 200
    assert read(served, "notes", "reviewer") == []


def test_what_is_asked_is_validated_before_what_is_hidden_is_looked_up(served: InProcess) -> None:
    unknown = served.call("GET", "/v1/streams/nothing/items?limit=0", "reviewer")
    assert unknown.status_code == 422, "not 404: the request is invalid whatever there is"
    assert served.call("GET", "/v1/streams/nothing/items", "reviewer").status_code == 404
    for role in ("reviewer", "admin"):
        invalid = served.call("GET", "/v1/streams/A%20B/insights", role)
        assert (invalid.status_code, len(invalid.json()["error"]["faults"])) == (422, 1)
    asked = served.call("POST", f"{STREAM}/what-if", "reviewer", json={"nothing": 1})
    assert asked.status_code == 422, "the body is read before it is seen whether audits are due"
    asked = served.call("POST", f"{STREAM}/what-if", "reviewer", json={})
    assert (asked.status_code, asked.json()["error"]["code"]) == (409, "audit_due")


def test_the_pages(served: InProcess) -> None:
    html = {"accept": "text/html"}
    for role, shown in (("reviewer", False), ("admin", True)):
        page = served.call("GET", "/streams/posts/items/due", role, headers=html).text
        assert ("<h2>Labels</h2>" in page) is shown
        assert ("hidden from reviewers" in page) is not shown
        told = served.call("GET", "/streams/posts/items/due?story=whole", role, headers=html).text
        assert ('class="story"' in told) is shown
        listed = served.call("GET", "/streams/posts/items?verdict=ok", role, headers=html).text
        assert ("items/due" in listed) is shown


def test_once_it_is_judged_everything_is_told(served: InProcess) -> None:
    judged = served.call(
        "POST", f"{STREAM}/reviews", "reviewer", json={"item": "due", "label": "ok"}
    )
    assert judged.json()["outcome"] == "confirmed"
    assert read(served, "items/due", "reviewer")["verdict"] == "ok"
    assert read(served, "items/due/explain", "reviewer")["exit"]["verdict"] == "ok"
