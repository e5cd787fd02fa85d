"""Gold and accuracy audits over HTTP: formats, roles, the page, the metrics, the client."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.integration.server.harness import InProcess, in_process

PANEL = [
    {"id": "bob", "competence": 0.9},
    {"id": "cec", "competence": 0.8},
    {"id": "ann", "trusted": True},
]
STREAM: dict[str, Any] = {
    "panel": PANEL,
    "learning": "known",
    "policy": "fixed-overlap:1",
    "audit_share": 1.0,
    "slot_seconds": 0.01,
}
GOLD, AUDITS = "/v1/streams/posts/gold", "/v1/streams/posts/audits"


@pytest.fixture(scope="module")
def served() -> Iterator[InProcess]:
    with in_process() as shared:
        shared.make_stream(**STREAM)
        shared.make_stream("open")
        names = [f"p{k}" for k in range(12)]
        shared.add(*names)
        labels = [{"item": n, "labeler": "bob", "said": "spam"} for n in names]
        assert shared.call("POST", "/v1/streams/posts/labels", json=labels).status_code == 200
        answer = shared.call("GET", "/v1/streams/posts/exits?wait=20&limit=12")
        while len(answer.text.splitlines()) < 12:
            answer = shared.call("GET", "/v1/streams/posts/exits?wait=1&limit=12")
        yield shared


def test_gold_in_every_format(served: InProcess) -> None:
    one = served.call("POST", GOLD, json={"item": "p0", "label": "ok"})
    counts = {"accepted": 1, "exists": 0, "corrected": 0, "refused": 0}
    assert one.json() == {**counts, "refusals": [], "notes": []}
    listed = served.call("POST", GOLD, json=[{"item": "p0", "label": "ok"}])
    assert listed.json()["exists"] == 1
    csv = "item,label\r\np1,spam\r\np2,ok\r\n"
    sent = served.call("POST", GOLD, content=csv, headers={"content-type": "text/csv"})
    assert sent.json()["accepted"] == 2
    lines = '{"item":"p3","label":"spam"}\n{"item":"p0","label":"spam"}\n'
    kind = {"content-type": "application/x-ndjson"}
    found = served.call("POST", GOLD, content=lines, headers=kind).json()
    assert (found["accepted"], found["refused"]) == (1, 1)
    assert (found["refusals"][0]["row"], found["refusals"][0]["code"]) == (1, "changed")
    item = served.call("GET", "/v1/streams/posts/items/p0").json()
    assert (item["verdict"], item["gold"], item["exit"]["verdict"]) == ("ok", "ok", "spam")


def test_gold_is_corrected_by_file_by_review_and_on_the_page(served: InProcess) -> None:
    kind = {"content-type": "text/csv"}
    served.call("POST", GOLD, content="item,label\r\np10,ok\r\n", headers=kind)
    csv = "item,label\r\np10,spam\r\np11,ok\r\n"
    found = served.call("POST", f"{GOLD}?correct=true", content=csv, headers=kind).json()
    assert (found["accepted"], found["corrected"], found["refused"]) == (1, 1, 0)
    assert (
        served.call("POST", f"{GOLD}?correct=maybe", content=csv, headers=kind).status_code == 422
    )
    page = served.call("GET", "/streams/posts/items/p10").text
    assert "Correct the gold" in page
    assert page.count('<span class="state">corrected</span>') == 1
    review = {"item": "p10", "label": "ok"}
    again = served.call("POST", "/v1/streams/posts/reviews", json=review)
    assert (again.status_code, again.json()["error"]["code"]) == (409, "conflict")
    done = served.call("POST", "/v1/streams/posts/reviews", json={**review, "correct": True})
    assert done.json()["outcome"] == "corrected"
    listed = [json.loads(line) for line in served.call("GET", GOLD).text.splitlines()]
    [row] = [row for row in listed if row["item"] == "p10"]
    assert (row["label"], [was["label"] for was in row["earlier"]]) == ("ok", ["ok", "spam"])


@pytest.mark.parametrize(
    ("body", "kind", "code"),
    [
        ("item\r\np1\r\n", "text/csv", 422),
        (b"item,label\r\n\xff,ok\r\n", "text/csv", 422),
        ('{"item": "p1"}', "application/json", 422),
        ("[]", "text/plain", 415),
    ],
)
def test_bad_gold_is_refused(served: InProcess, body: Any, kind: str, code: int) -> None:
    answer = served.call("POST", GOLD, content=body, headers={"content-type": kind})
    assert answer.status_code == code, answer.text
    assert answer.json()["error"]["hint"]


def test_who_may_see_and_send_what(served: InProcess) -> None:
    trusted = served.call("GET", AUDITS, "labeler").json()
    assert trusted["due_items"]
    reader = served.call("GET", AUDITS, "viewer").json()
    assert reader["due_items"] is None
    assert reader["overall"]["upper"] <= 1.0
    assert set(reader["classes"]) == {"spam", "ok"}
    gold = [{"item": "p4", "label": "spam"}]
    assert served.call("POST", GOLD, "labeler", json=gold).json()["accepted"] == 1
    assert served.call("POST", GOLD, "producer", json=gold).status_code == 403
    other = served.call("POST", "/v1/streams/open/gold", "labeler", json=gold)
    assert (other.status_code, other.json()["error"]["code"]) == (403, "not_trusted")
    assert served.call("GET", "/v1/streams/open/audits", "labeler").status_code == 403
    assert served.call("GET", f"{AUDITS}?level=1.5").status_code == 422


def test_a_trusted_labeler_works_as_any_other(served: InProcess) -> None:
    work = served.call("GET", "/v1/streams/posts/next", "labeler").json()
    assert work["payload"] == f"text of {work['item']}"
    said = {"said": "spam"}
    done = served.call("POST", f"/v1/assignments/{work['token']}/label", "labeler", json=said)
    assert done.status_code == 200, done.text
    assert served.call("GET", f"/v1/streams/posts/items/{work['item']}").json()["gold"] == "spam"


def test_page_and_metrics_say_the_bound(served: InProcess) -> None:
    served.call("POST", GOLD, json=[{"item": "p5", "label": "spam"}])
    bound = served.call("GET", AUDITS).json()["overall"]["upper"]
    metrics = served.call("GET", "/metrics").text
    line = next(x for x in metrics.splitlines() if x.startswith("venire_stream_error_upper{"))
    assert float(line.rpartition(" ")[2]) == pytest.approx(bound)
    served.http.post("/sign-in", data={"key": served.keys["viewer"]})
    assert "audited: errors at most" in served.http.get("/").text
    page = served.http.get("/streams/posts").text
    assert 'data-figure="error-upper"' in page
    assert ">trusted<" in page
