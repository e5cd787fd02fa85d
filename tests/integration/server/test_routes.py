"""Every route as a client sees it, over the real service."""

from __future__ import annotations

import gzip
import json
from typing import Any
from urllib.parse import quote

import pytest

from tests.integration.server.harness import CLASSES, STREAM, InProcess, in_process

ITEMS = "/v1/streams/posts/items"


def code_of(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


@pytest.fixture
def posts(server: InProcess) -> InProcess:
    server.make_stream()
    return server


def test_a_stream_is_made_once(posts: InProcess) -> None:
    again = posts.call("POST", "/v1/streams", json={"name": "posts", **STREAM})
    assert again.status_code == 201
    other = {"name": "posts", **STREAM, "slot_seconds": 5}
    assert code_of(posts.call("POST", "/v1/streams", json=other)) == (409, "conflict")
    assert [stream["name"] for stream in posts.call("GET", "/v1/streams").json()] == ["posts"]


def test_settings_change_live_and_are_versioned(posts: InProcess) -> None:
    changed = posts.call("PATCH", "/v1/streams/posts", json={"max_overlap": 3})
    assert (changed.status_code, changed.json()["settings"]["max_overlap"]) == (200, 3)
    versions = posts.call("GET", "/v1/streams/posts/settings").json()
    assert [version["settings"]["max_overlap"] for version in versions] == [None, 3]
    assert versions[1]["actor"].startswith("first admin (")
    for wrong in ({"max_overlap": "3"}, {"classes": ["a", "b"]}, {"nonsense": 1}, {"rate": None}):
        assert code_of(posts.call("PATCH", "/v1/streams/posts", json=wrong)) == (422, "invalid")


def test_a_policy_that_is_changed_remembers_nothing_of_the_one_before(server: InProcess) -> None:
    server.make_stream(policy="waterfill")
    server.add("a", "b", "c")
    server.take()
    engine = server.service.runtime.loaded()[0].engine
    memory = engine.state.raw.desk.gauges
    server.call("PATCH", "/v1/streams/posts", json={"policy": "waterfill", "max_overlap": 3})
    assert memory.any()
    changed = server.call("PATCH", "/v1/streams/posts", json={"policy": "realised"})
    assert (changed.status_code, engine.policy.name) == (200, "realised")
    assert not memory.any()


def test_pause_resume_close(posts: InProcess) -> None:
    posts.add("a")
    for verb, status in (("pause", "paused"), ("resume", "running"), ("close", "closed")):
        assert posts.call("POST", f"/v1/streams/posts/{verb}").json()["status"] == status
        if verb == "pause":
            nothing = posts.call("GET", "/v1/streams/posts/next?labeler=ann")
            assert (nothing.status_code, nothing.headers["venire-reason"]) == (204, "paused")
    assert posts.call("POST", ITEMS, json=[{"id": "b"}]).status_code == 409


def test_items_are_taken_once(posts: InProcess) -> None:
    rows = [{"id": "a", "payload": {"text": "hi"}}, {"id": "b/c", "weight": 3.5}]
    assert posts.call("POST", ITEMS, json=rows).json()["created"] == 2
    lines = "\n".join(json.dumps(row) for row in rows) + "\n\n"
    headers = {"content-type": "application/x-ndjson"}
    again = posts.call("POST", ITEMS, content=lines, headers=headers).json()
    assert (again["created"], again["exists"]) == (0, 2)
    other = posts.call("POST", ITEMS, json=[{"id": "new"}, {"id": "a", "payload": "other"}])
    assert code_of(other) == (409, "conflict")
    assert posts.call("GET", f"{ITEMS}/new").status_code == 404
    shown = posts.call("GET", f"{ITEMS}/b%2Fc").json()
    assert (shown["id"], shown["weight"], shown["status"]) == ("b/c", 3.5, "open")


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"[{}]", 422),
        (b'[{"id": ""}]', 422),
        (b'[{"id": "a", "weight": "3"}]', 422),
        (b'[{"id": "a", "weight": -1}]', 422),
        (b'[{"id": "a", "nonsense": 1}]', 422),
        (b'{"id": "a"}', 422),
        (b"[", 422),
        (b"\xff\xfe", 422),
        (b"", 422),
    ],
)
def test_items_that_are_not_items(posts: InProcess, body: bytes, status: int) -> None:
    answer = posts.call("POST", ITEMS, content=body, headers={"content-type": "application/json"})
    assert code_of(answer) == (status, "invalid")
    form = posts.call("POST", ITEMS, data={"id": "a"})
    assert code_of(form) == (415, "unsupported_media_type")


def test_a_label_is_answered_once(posts: InProcess) -> None:
    posts.add("a")
    work = posts.take("ann")
    assert (work["item"], work["payload"], work["classes"]) == ("a", "text of a", CLASSES)
    path = f"/v1/assignments/{work['token']}"
    assert posts.call("POST", f"{path}/heartbeat", "labeler").json()["expires_at"] > 0
    first = posts.call("POST", f"{path}/label", "labeler", json={"said": "spam"})
    assert (first.status_code, first.json()["said"]) == (200, "spam")
    assert posts.call("POST", f"{path}/label", json={"said": "spam"}).json() == first.json()
    assert code_of(posts.call("POST", f"{path}/label", json={"said": "ok"})) == (409, "conflict")
    assert code_of(posts.call("POST", f"{path}/heartbeat")) == (409, "invalid_state")
    unknown = posts.call("POST", "/v1/assignments/none/label", json={"said": "ok"})
    assert code_of(unknown) == (404, "not_found")
    item = posts.call("GET", f"{ITEMS}/a").json()
    assert item["posterior"]["spam"] == pytest.approx(0.8)
    assert [label["labeler"] for label in item["labels"]] == ["ann"]


def test_what_is_given_back_goes_to_another(posts: InProcess) -> None:
    posts.add("a")
    work = posts.take("ann")
    release = f"/v1/assignments/{work['token']}/release"
    assert posts.call("POST", release, json={"bar": True}).status_code == 200
    assert posts.call("POST", release, json={"bar": True}).status_code == 200
    nothing = posts.call("GET", "/v1/streams/posts/next?labeler=ann")
    assert (nothing.status_code, nothing.headers["venire-reason"]) == (204, "none_for_you")
    assert posts.take("bob")["item"] == "a"


def test_one_that_lost_its_tokens_gets_new_ones(posts: InProcess) -> None:
    posts.add("a")
    old = posts.take("ann")["token"]
    (again,) = posts.call("POST", "/v1/streams/posts/held", "labeler").json()
    assert again["item"] == "a"
    assert again["token"] != old
    label = f"/v1/assignments/{again['token']}/label"
    assert posts.call("POST", label, json={"said": "ok"}).status_code == 200


def test_labels_in_bulk(posts: InProcess) -> None:
    posts.add("a", "b")
    rows = [{"item": item, "labeler": who, "said": "ok"} for item in "ab" for who in ("ann", "bob")]
    path = "/v1/streams/posts/labels"
    first = posts.call("POST", path, json=rows).json()
    assert (first["accepted"], first["exists"], first["refused"]) == (4, 0, 0)
    rows.append({"item": "none", "labeler": "ann", "said": "ok"})
    again = posts.call("POST", path, json=rows).json()
    assert (again["accepted"], again["exists"], again["refused"]) == (0, 4, 1)
    assert [refusal["row"] for refusal in again["refusals"]] == [4]
    mine = posts.call("POST", path, "labeler", json=[{"item": "a", "said": "ok"}]).json()
    assert mine["exists"] == 1
    nobody = posts.call("POST", path, json=[{"item": "a", "said": "ok"}])
    assert code_of(nobody) == (422, "invalid")


def test_labels_that_are_passed_on_may_be_held_to_leases(server: InProcess) -> None:
    server.make_stream(policy="fixed-overlap:2", slot_seconds=3600.0)
    server.add("a", "b")
    path, work = "/v1/streams/posts/labels", server.take("ann")
    rows = [{"item": item, "labeler": "ann", "said": "ok"} for item in ("a", "b")]
    got = server.call("POST", f"{path}?leased=true", json=rows).json()
    assert (got["accepted"], got["refused"]) == (1, 1)
    [refusal] = got["refusals"]
    assert (refusal["code"], rows[refusal["row"]]["item"] != work["item"]) == ("not_given", True)
    assert server.call("POST", f"{path}?leased=true", json=rows).json()["exists"] == 1
    assert code_of(server.call("POST", f"{path}?leased=maybe", json=rows)) == (422, "invalid")
    assert server.call("POST", f"{path}?leased=false", json=rows).json()["accepted"] == 1


def test_a_labeler_who_guesses_ids_makes_no_verdicts(server: InProcess) -> None:
    server.make_stream(policy="fixed-overlap:1", slot_seconds=3600.0)
    server.add(*(f"i{n}" for n in range(200)))
    rows = [{"item": f"i{n}", "said": "spam"} for n in range(200)]
    path = "/v1/streams/posts/labels"
    got = server.call("POST", path, "labeler", json=rows).json()
    assert (got["accepted"], got["late"], got["refused"]) == (0, 0, 200)
    assert {refusal["code"] for refusal in got["refusals"]} == {"not_given"}
    work = server.call("GET", "/v1/streams/posts/next", "labeler").json()
    got = server.call("POST", path, "labeler", json=rows).json()
    assert (got["accepted"], got["refused"]) == (1, 199)
    (label,) = server.call("GET", f"{ITEMS}/{work['item']}").json()["labels"]
    me = server.call("GET", "/v1/me", "labeler").json()
    assert label["key"] == me["key"]
    server.call("PATCH", "/v1/streams/posts", json={"unasked_labels": True})
    assert server.call("POST", path, "labeler", json=rows).json()["accepted"] == 199


def test_exits_come_by_cursor(server: InProcess) -> None:
    server.make_stream(policy="fixed-overlap:2", slot_seconds=0.05)
    server.add("a", "b", "c")
    for item in "abc":
        rows = [{"item": item, "labeler": who, "said": "ok"} for who in ("ann", "bob")]
        server.call("POST", "/v1/streams/posts/labels", json=rows)
    seen: list[dict[str, Any]] = []
    for _ in range(20):
        after = seen[-1]["n"] if seen else 0
        answer = server.call(
            "GET", f"/v1/streams/posts/exits?after={after}&wait=2&limit=2", "viewer"
        )
        lines = [json.loads(line) for line in answer.text.splitlines()]
        assert len(lines) <= 2
        seen += lines
        assert answer.headers["venire-cursor"] == str(seen[-1]["n"] if seen else 0)
        if len(seen) == 3:
            break
    assert [exit["n"] for exit in seen] == [1, 2, 3]
    assert {exit["item"] for exit in seen} == set("abc")
    assert {exit["verdict"] for exit in seen} == {"ok"}
    shown = server.call("GET", f"{ITEMS}/a").json()
    assert (shown["status"], shown["exit"]["labels"]) == ("left", 2)


def test_explain(posts: InProcess) -> None:
    posts.add("a", "b")
    work = posts.take("ann")
    told = posts.call("GET", f"{ITEMS}/{work['item']}/explain", "viewer").json()
    (given,) = told["given"]
    assert (given["labeler"], given["gain"]) == ("ann", pytest.approx(work["gain"]))
    other = {"a": "b", "b": "a"}[work["item"]]
    assert other in [alternative["item"] for alternative in given["alternatives"]]


def test_reading(posts: InProcess) -> None:
    posts.add("a", "b")
    posts.take("ann")
    figures = posts.call("GET", "/v1/streams/posts/insights", "viewer").json()
    assert (figures["open_items"], figures["leased_items"]) == (2, 1)
    people = {row["id"]: row for row in posts.call("GET", "/v1/streams/posts/labelers").json()}
    assert (people["ann"]["state"], people["ann"]["holds"]) == ("busy", 1)
    metrics = posts.call("GET", "/metrics", "viewer").text
    assert 'venire_stream_open_items{stream="posts"} 2.0' in metrics
    assert 'route="/v1/streams/{stream}/next"' in metrics
    assert posts.call("GET", "/ready", None).json() == {"status": "ready"}


def test_the_panel_is_reported(posts: InProcess) -> None:
    path = "/v1/streams/posts/panel"
    refused = posts.call("GET", path, "viewer")
    assert refused.status_code == 409
    assert "has 0 labels, expected 10 or more" in refused.json()["error"]["message"]
    posts.add(*(f"i{n}" for n in range(12)))
    said = [
        {"item": f"i{n}", "labeler": name, "said": "ok" if (n + k) % 5 else "spam"}
        for n in range(12)
        for k, name in enumerate(("ann", "bob"))
    ]
    assert posts.call("POST", "/v1/streams/posts/labels", json=said).status_code == 200
    report = posts.call("GET", f"{path}?want=0.6", "viewer").json()
    assert (report["labels"], report["cost"], report["want"]) == (24, 24.0, 0.6)
    assert {member["labeler"] for member in report["members"]} == {"ann", "bob"}
    assert posts.call("GET", f"{path}?want=2", "viewer").status_code == 422
    assert posts.call("GET", "/v1/streams/none/panel", "viewer").status_code == 404
    assert posts.call("GET", path, "labeler").status_code == 403


def test_withdraw(posts: InProcess) -> None:
    posts.add("a")
    assert posts.call("DELETE", f"{ITEMS}/a", "producer").json()["status"] == "withdrawn"
    assert posts.call("DELETE", f"{ITEMS}/a").json()["status"] == "withdrawn"
    assert posts.call("DELETE", f"{ITEMS}/none").status_code == 404


def test_webhooks(posts: InProcess) -> None:
    path = "/v1/streams/posts/webhooks"
    private = posts.call("POST", path, json={"url": "http://127.0.0.1:9/x"})
    assert private.status_code == 422
    assert posts.call("GET", path).json() == []
    assert posts.call("DELETE", f"{path}/none").status_code == 404


def test_errors_have_one_shape(posts: InProcess) -> None:
    for method, url, status in (
        ("GET", "/nowhere", 404),
        ("PUT", "/v1/streams", 405),
        ("GET", "/v1/streams/none", 404),
        ("GET", "/v1/streams/posts/exits?after=x", 422),
        ("GET", "/v1/streams/posts/next", 422),
        ("GET", "/v1/streams/posts/next?labeler=ann&wait=nan", 422),
    ):
        answer = posts.call(method, url)
        assert answer.status_code == status
        fault = answer.json()["error"]
        assert set(fault) >= {"code", "message", "hint", "retryable"}
        assert fault["message"]


def test_what_is_too_large_is_refused_before_it_is_read() -> None:
    with in_process(max_body=2000, max_batch=3) as served:
        served.make_stream()
        long = [{"id": "x" * 400, "payload": "x" * 3000}]
        assert code_of(served.call("POST", ITEMS, json=long)) == (413, "body_too_large")
        pieces = served.call(
            "POST",
            ITEMS,
            content=iter([b"x" * 1000] * 10),
            headers={"content-type": "application/json"},
        )
        assert code_of(pieces) == (413, "body_too_large")
        many = [{"id": str(number)} for number in range(4)]
        assert code_of(served.call("POST", ITEMS, json=many)) == (413, "batch_too_large")
        assert served.call("GET", "/v1/streams/posts").json()["open_items"] == 0


def test_a_wrong_method_is_told_all_that_the_path_has(posts: InProcess) -> None:
    for path, methods in (
        ("/v1/streams", "GET, POST"),
        ("/v1/streams/posts", "DELETE, GET, PATCH"),
        ("/v1/streams/posts/next", "GET"),
    ):
        answer = posts.call("PUT", path)
        assert code_of(answer) == (405, "method_not_allowed")
        assert answer.headers["allow"] == methods
        assert answer.json()["error"]["hint"] == f"it supports {methods}"


def test_a_fault_in_lines_of_json_is_told_with_its_line(posts: InProcess) -> None:
    headers = {"content-type": "application/x-ndjson"}
    for third, fault in (
        ('{"id": "c", "weight": }', "body.line 4: Invalid JSON: expected value at column 23"),
        ('{"id": 3}', "body.line 4.id: Input should be a valid string"),
    ):
        lines = f'{{"id": "a"}}\n\n{{"id": "b"}}\n{third}\n{{"id": "d"}}\n'
        answer = posts.call("POST", ITEMS, content=lines, headers=headers)
        assert code_of(answer) == (422, "invalid")
        assert answer.json()["error"]["message"] == f"invalid request: {fault}"
    labels = '{"item": "a", "labeler": "ann", "said": "ok"}\n{"item": "a"}\n'
    answer = posts.call("POST", "/v1/streams/posts/labels", content=labels, headers=headers)
    assert "body.line 2.said" in answer.json()["error"]["message"]


def test_names_and_ids_may_be_as_long_as_is_promised(server: InProcess) -> None:
    schemas = server.call("GET", "/openapi.json").json()["components"]["schemas"]
    longest = schemas["ItemBody"]["properties"]["id"]["maxLength"]
    name = "s" * 64
    server.make_stream(name)
    assert code_of(server.call("POST", "/v1/streams", json={**STREAM, "name": name + "s"})) == (
        422,
        "invalid",
    )
    for more, status in ((0, 200), (1, 422)):
        rows = [{"id": "x" * (longest + more)}]
        assert server.call("POST", f"/v1/streams/{name}/items", json=rows).status_code == status
    assert server.call("GET", f"/v1/streams/{name}/items/{'x' * longest}").status_code == 200


def test_work_that_is_not_the_callers_is_told_so_in_plain_words(posts: InProcess) -> None:
    posts.add("a")
    token = posts.take("bob")["token"]
    for role, path, message in (
        ("labeler", token, "there is no such assignment: the token was not issued to 'ann'"),
        ("admin", "x" * 43, "there is no such assignment: this token is unknown"),
    ):
        url = f"/v1/assignments/{path}/label"
        answer = posts.call("POST", url, role, json={"said": "ok"})
        assert answer.status_code == 404
        assert answer.json()["error"]["message"] == message


def test_somebody_with_a_browser_sees_a_page_when_something_is_wrong(posts: InProcess) -> None:
    browser = {"accept": "text/html,application/xhtml+xml"}
    for role, status in (("labeler", 404), ("viewer", 403)):
        answer = posts.call("GET", "/work?stream=<nope>", role, headers=browser)
        assert answer.status_code == status
        assert answer.headers["content-type"].startswith("text/html")
        assert "Something went wrong" in answer.text
        assert ("&lt;nope&gt;" in answer.text) == (status == 404)
        assert "<nope>" not in answer.text
    assert "it needs the role admin or labeler" in answer.text
    nowhere = posts.call("GET", "/nowhere", headers=browser)
    assert nowhere.status_code == 404
    assert "there is nothing at /nowhere" in nowhere.text
    assert posts.call("GET", "/nowhere").json()["error"]["code"] == "not_found"
    assert posts.call("GET", "/v1/streams/nope", headers=browser).json()["error"]
    assert posts.call("GET", "/work?stream=nope", "labeler").json()["error"]


def test_too_many_requests_are_told_when_to_come_back() -> None:
    with in_process(rate=0.001, burst=3) as served:
        answers = [served.call("GET", "/v1/me") for _ in range(5)]
        assert [answer.status_code for answer in answers] == [200, 200, 200, 429, 429]
        assert int(answers[-1].headers["retry-after"]) >= 1
        assert answers[-1].json()["error"]["retryable"] is True
        assert served.call("GET", "/v1/me", "viewer").status_code == 200


def test_too_many_who_wait_are_told_so() -> None:
    with in_process(max_waiting=1) as served:
        served.make_stream()
        gate = served.http.app.state.gate  # type: ignore[attr-defined]
        gate.waiting.now = 1
        answer = served.call("GET", "/v1/streams/posts/next?labeler=ann&wait=5")
        assert code_of(answer) == (429, "too_many_waiting")
        gate.waiting.now = 0
        answer = served.call("GET", "/v1/streams/posts/next?labeler=ann&wait=0.05")
        assert (answer.status_code, answer.headers["venire-reason"]) == (204, "empty")


def test_the_documentation_needs_nothing_from_elsewhere(posts: InProcess) -> None:
    page = posts.call("GET", "/docs").text
    assert "/v1/streams/{stream}/next" in page
    assert "http://" not in page
    assert "https://example.org" in page
    assert page.count("https://") == page.count("https://example.org")
    assert "<script>" not in page
    described = posts.call("GET", "/openapi.json").json()
    for path, methods in described["paths"].items():
        for operation in methods.values():
            assert "200" in operation["responses"] or {"201", "204"} & set(operation["responses"])
            if path.startswith("/v1"):
                assert {"401", "403", "429", "500", "503"} <= set(operation["responses"])


def test_payloads_and_names_are_shown_as_text(server: InProcess) -> None:
    name = "<script>alert(1)</script>"
    server.make_stream(panel=[{"id": name, "competence": 0.8}])
    server.http.post("/sign-in", data={"key": server.keys["admin"]})
    assert name not in server.http.get("/").text
    page = server.http.get("/streams/posts").text
    assert name not in page
    assert "&lt;script&gt;" in page
    assert "script-src 'self'" in server.http.get("/").headers["content-security-policy"]


def test_an_id_may_end_as_a_path_does(posts: InProcess) -> None:
    posts.add("a", "a/explain", "a/b")
    for item in ("a", "a/explain", "a/b"):
        at = f"/v1/streams/posts/items/{quote(item, safe='')}"
        assert posts.call("GET", at).json()["id"] == item
        assert posts.call("GET", f"{at}/explain").json()["item"] == item
    assert posts.call("GET", "/v1/streams/posts/items/a/b/explain").json()["item"] == "a/b"


@pytest.mark.parametrize(
    ("method", "path", "body", "told"),
    [
        ("POST", "/v1/streams", {"name": "x", "classes": ["a"]}, "List should have at least 2"),
        ("POST", "/v1/streams", {"name": "x", "classes": ["a", "a"]}, "body: got the classes"),
        ("PATCH", "/v1/streams/posts", {"overlap": 3}, "body.overlap: unknown field"),
        ("POST", "/v1/streams/posts/labels", [{"item": "a", "said": "ok", "labler": "bob"}],
         "body.0.labler: unknown field"),
        ("POST", "/v1/assignments/none/heartbeat", None, "this token is unknown"),
    ],
)  # fmt: skip
def test_refusals_are_in_plain_words(
    posts: InProcess, method: str, path: str, body: Any, told: str
) -> None:
    error = posts.call(method, path, json=body).json()["error"]
    assert told in error["message"]
    assert "Value error" not in str(error)
    assert "name of the assignment" not in error["hint"]


@pytest.mark.parametrize(("method", "tail"), [("GET", ""), ("GET", "/explain"), ("DELETE", "")])
def test_an_id_that_no_item_can_have_does_not_reach_the_store(
    posts: InProcess, method: str, tail: str
) -> None:
    """PostgreSQL holds no text with a zero in it, and says so by an error of its own."""
    answer = posts.call(method, f"/v1/streams/posts/items/a%00b{tail}")
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "invalid")


def test_a_packed_body_is_refused_by_its_name(posts: InProcess) -> None:
    answer = posts.call(
        "POST",
        "/v1/streams/posts/items",
        content=gzip.compress(b'[{"id": "a"}]'),
        headers={"content-type": "application/json", "content-encoding": "gzip"},
    )
    assert answer.status_code == 415
    assert "gzip" in answer.json()["error"]["message"]


def test_who_has_to_sign_in_first_then_goes_where_the_link_led(posts: InProcess) -> None:
    browser = {"accept": "text/html"}
    sent = posts.http.get("/work?stream=posts", headers=browser, follow_redirects=False)
    assert sent.headers["location"] == "/?to=%2Fwork%3Fstream%3Dposts"
    page = posts.http.get(sent.headers["location"])
    assert '<input type="hidden" name="to" value="/work?stream=posts">' in page.text
    key = posts.keys["labeler"]
    for to, led in (
        ("/work?stream=posts", "/work?stream=posts"),
        ("//evil.example", "/work"),
        ("https://evil.example/work?", "/work"),
        ("", "/work"),
    ):
        form = {"key": key, "to": to}
        answer = posts.http.post("/sign-in", data=form, follow_redirects=False)
        assert (answer.status_code, answer.headers["location"]) == (303, led)


def test_images_come_from_where_the_operator_says_and_from_nowhere_else() -> None:
    with in_process(image_hosts="images.example.org, http://127.0.0.1:9000") as served:
        policy = served.http.get("/").headers["content-security-policy"]
    assert "img-src data: https://images.example.org http://127.0.0.1:9000;" in policy


def test_a_closed_stream_can_be_chosen_until_it_is_empty(posts: InProcess) -> None:
    posts.add("last")
    posts.call("POST", "/v1/streams/posts/close")
    assert "posts (1 open, closed)" in posts.call("GET", "/work", "labeler").text
    assert posts.call("DELETE", "/v1/streams/posts/items/last").status_code == 200
    assert "There are no streams to label." in posts.call("GET", "/work", "labeler").text


def test_the_page_of_a_stream_shows_undecided_and_revised_verdicts(
    server: InProcess,
) -> None:
    server.make_stream(min_confidence=0.99, revisions=5)
    server.http.post("/sign-in", data={"key": server.keys["admin"]}, follow_redirects=False)
    page = server.http.get("/streams/posts").text
    assert 'data-figure="undecided">0<' in page
    assert 'data-figure="revised">0<' in page
    server.call("PATCH", "/v1/streams/posts", json={"min_confidence": None, "revisions": 0})
    lines = server.call("GET", "/v1/streams/posts/revisions?after=3")
    assert (lines.text, lines.headers["venire-cursor"]) == ("", "3")
