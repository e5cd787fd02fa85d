"""The rules of a stream on its pages: the form of the settings, and the story of an item."""

from __future__ import annotations

from typing import Any

from tests.integration.server.harness import InProcess, until

LABELS = [
    {"item": "post-1", "labeler": "gpt", "said": "ok"},
    {"item": "post-1", "labeler": "ann", "said": "illegal"},
]


def make(server: InProcess, **more: object) -> None:
    sent = {
        "name": "posts", "classes": ["illegal", "ok"], "slot_seconds": 0.05, "min_labels": 3,
        "panel": [{"id": "ann", "kind": "person"}, {"id": "gpt"}, {"id": "llama"}], **more,
    }  # fmt: skip
    assert server.call("POST", "/v1/streams", json=sent).status_code == 201


def test_one_word_is_enough(server: InProcess) -> None:
    make(server, leave_on={"illegal": ["kind:person"]})
    items = [{"id": "post-1", "payload": "one"}]
    assert server.call("POST", "/v1/streams/posts/items", json=items).status_code == 200
    server.call("POST", "/v1/streams/posts/labels", json=LABELS)
    until(lambda: server.call("GET", "/v1/streams/posts/items/post-1").json()["exit"] is not None)
    page = server.call("GET", "/streams/posts/items/post-1?story=whole").text
    assert "<dt>reason for leaving</dt><dd>leave_on</dd>" in page
    assert "The word of ann is enough for illegal (leave_on)" in page
    assert "because ann said illegal, and its word is enough for that (leave_on)." in page
    listed = server.call("GET", "/streams/posts/items?reason=leave_on").text
    assert "post-1" in listed
    form = server.call("GET", "/streams/posts/settings").text
    assert 'name="leave_on"' in form
    assert "kind:person" in form


def test_routes(server: InProcess) -> None:
    experts = {"name": "experts", "classes": ["illegal", "ok"]}
    assert server.call("POST", "/v1/streams", json=experts).status_code == 201
    make(server, min_labels=2, routes=[{"verdict": "ok", "stream": "experts"}])
    loop = {"routes": [{"stream": "posts"}]}
    refused = server.call("PATCH", "/v1/streams/experts", json=loop)
    assert refused.status_code == 422
    assert "experts > posts > experts" in refused.json()["error"]["message"]
    items = [{"id": "post/1", "payload": "one"}]
    assert server.call("POST", "/v1/streams/posts/items", json=items).status_code == 200
    labels = [{"item": "post/1", "labeler": name, "said": "ok"} for name in ("ann", "gpt", "llama")]
    server.call("POST", "/v1/streams/posts/labels", json=labels)

    def routed() -> bool:
        told = server.call("GET", "/v1/streams/posts/items/post%2F1").json()["routed"]
        return bool(told) and told[0]["settled_at"] is not None

    until(routed)
    page = server.call("GET", "/streams/posts/items/post%2F1?story=whole").text
    assert '<dt>routed to</dt><dd><a href="/streams/experts/items/post/1"' in page
    assert "Its verdict sends it to stream experts (routes), where it arrived." in page
    page = server.call("GET", "/streams/experts/items/post%2F1?story=whole").text
    assert '<dt>came from</dt><dd><a href="/streams/posts/items/post/1"' in page
    assert "It came from stream posts, by its verdict there (routes)." in page
    form = server.call("GET", "/streams/posts/settings").text
    assert 'name="routes"' in form


def test_the_same_again(server: InProcess) -> None:
    make(server, min_labels=1, policy="fixed-overlap:1", repeat_share=1.0, repeat_after_slots=1)
    items = [{"id": "post-1", "payload": "one"}]
    assert server.call("POST", "/v1/streams/posts/items", json=items).status_code == 200
    server.call("POST", "/v1/streams/posts/labels", json=LABELS[1:])
    assert "agrees with itself" not in server.call("GET", "/streams/posts/labelers").text
    given: list[Any] = []

    def asked() -> bool:
        answer = server.call("GET", "/v1/streams/posts/next?labeler=ann")
        given.extend([answer.json()] if answer.status_code == 200 else [])
        return bool(given)

    until(asked)
    path = f"/v1/assignments/{given[0]['token']}/label"
    assert server.call("POST", path, json={"said": "ok"}).status_code == 200
    item = server.call("GET", "/v1/streams/posts/items/post-1").json()
    assert (len(item["labels"]), item["verdict"]) == (1, "illegal")
    assert [(one["before"], one["said"]) for one in item["repeats"]] == [("illegal", "ok")]
    page = server.call("GET", "/streams/posts/labelers").text
    assert "<th>agrees with itself</th>" in page
    assert "<td>0 % <small>of 1; 0 % to " in page
    story = server.call("GET", "/streams/posts/items/post-1?story=whole").text
    assert "ann was asked about it again and said ok, where it had said illegal" in story
    [own] = server.call("GET", "/v1/streams/posts/agreement").json()["itself"]
    assert (own["labeler"], own["items"], own["same"]) == ("ann", 1, 0)
