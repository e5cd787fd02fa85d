"""Reviews: what waits, who may judge, what becomes of it; it is there after a kill."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.server.harness import InProcess, in_process, serving, until
from venire.cli import main

SETTINGS: dict[str, Any] = {
    "classes": ["spam", "ok"],
    "panel": [{"id": "ann", "competence": 0.9}, {"id": "bob", "competence": 0.7}],
    "learning": "known",
    "policy": "fixed-overlap:2",
    "slot_seconds": 0.05,
}
REVIEWS = "/v1/streams/posts/reviews"

#: Disputed at 0.79, agreed at 0.95, and a third that is drawn to be audited.
SAID = [
    ("split", "ann", "spam"),
    ("split", "bob", "ok"),
    ("same", "ann", "ok"),
    ("same", "bob", "ok"),
]


@pytest.fixture(scope="module")
def served() -> Iterator[InProcess]:
    with in_process() as shared:
        shared.make_stream(**SETTINGS)
        shared.add("split", "same", "third", "open")
        send(shared, SAID)
        shared.call("PATCH", "/v1/streams/posts", json={"audit_share": 1.0})
        send(shared, [("third", "ann", "ok"), ("third", "bob", "ok")])
        yield shared


def send(shared: InProcess, said: list[tuple[str, str, str]]) -> None:
    before = len(shared.call("GET", "/v1/streams/posts/exits").text.splitlines())
    rows = [
        {"item": item, "labeler": who, "said": what, "rationale": f"{who} saw <b>{what}</b>"}
        for item, who, what in said
    ]
    assert shared.call("POST", "/v1/streams/posts/labels", json=rows).status_code == 200
    left, exits = len({item for item, *_ in said}), "/v1/streams/posts/exits"
    until(lambda: len(shared.call("GET", exits).text.splitlines()) == before + left)


def waiting(shared: InProcess, query: str = "") -> list[tuple[str, str, str | None]]:
    found = shared.call("GET", f"{REVIEWS}?{query}", "reviewer").json()
    return [(one["item"], one["kind"], one["verdict"]) for one in found["items"]]


def test_a_reviewer_sees_what_waits_and_judges_it(served: InProcess) -> None:
    audit, split = ("third", "audit", None), ("split", "disputed", "spam")
    same = ("same", "doubtful", "ok")
    assert waiting(served) == [audit, split, same]
    assert waiting(served, "kind=audit") == [audit]
    assert waiting(served, "kind=disputed") == [split]
    assert waiting(served, "kind=doubtful") == [same]
    first = served.call("GET", f"{REVIEWS}?limit=1", "reviewer").json()
    assert (first["audits_due"], len(first["items"])) == (1, 1)
    rest = served.call("GET", f"{REVIEWS}?limit=1&cursor={first['next']}", "reviewer").json()
    assert [one["item"] for one in rest["items"]] == ["split"]
    assert rest["items"][0]["votes"] == {"spam": 1, "ok": 1}
    whys = [(x["labeler"], x["said"], x["rationale"]) for x in rest["items"][0]["rationales"]]
    assert whys == [("ann", "spam", "ann saw <b>spam</b>"), ("bob", "ok", "bob saw <b>ok</b>")]
    for page in ("reviews", "items/split?story=whole"):
        shown = served.call("GET", f"/streams/posts/{page}", "reviewer").text
        assert "ann saw &lt;b&gt;spam&lt;/b&gt;" in shown
    assert "gave as its reason" in shown
    for page in ("/streams/posts/items/third", "/v1/streams/posts/items/third"):
        assert "saw" not in served.call("GET", page, "reviewer").text, "the audit is blind"

    said = {"item": "split", "label": "ok", "note": "a quotation"}
    done = served.call("POST", REVIEWS, "reviewer", json=said)
    assert done.json() == {
        "item": "split",
        "outcome": "overridden",
        "before": "spam",
        "label": "ok",
    }
    item = served.call("GET", "/v1/streams/posts/items/split").json()
    assert (item["verdict"], item["gold"], item["exit"]["verdict"]) == ("ok", "ok", "spam")
    assert [(r["before"], r["verdict"]) for r in item["revisions"]] == [("spam", "ok")]
    again = served.call("POST", REVIEWS, "reviewer", json=said)
    assert (again.status_code, again.json()["outcome"]) == (200, "confirmed")
    other = served.call("POST", REVIEWS, "reviewer", json={"item": "split", "label": "spam"})
    assert (other.status_code, other.json()["error"]["code"]) == (409, "conflict")

    same_again = served.call("POST", REVIEWS, "admin", json={"item": "same", "label": "ok"})
    assert same_again.json()["outcome"] == "confirmed"
    served.call("POST", REVIEWS, "reviewer", json={"item": "third", "label": "ok"})
    assert waiting(served) == []
    audits = served.call("GET", "/v1/streams/posts/audits").json()
    assert (audits["overall"]["audited"], audits["overall"]["wrong"]) == (1, 0)

    gold = served.call("GET", "/v1/streams/posts/gold", "viewer").text.splitlines()
    assert [('"review"' in line, '"reviewer' in line) for line in gold] == [
        (True, False), (True, True), (True, True)]  # fmt: skip
    trail = served.call("GET", "/v1/audit").json()
    told = [e["details"] for e in trail if e["action"] == "item.review" and e["subject"] == "split"]
    assert told == [{"verdict": "spam", "label": "ok", "note": "a quotation"}]


@pytest.mark.parametrize(
    ("sent", "status", "said"),
    [
        ({"item": "open", "label": "ok"}, 409, "has not left"),
        ({"item": "nothing", "label": "ok"}, 409, "there is no item"),
        ({"item": "same", "label": "what"}, 422, "expected one of"),
        ({"item": "same"}, 422, "label"),
    ],
)
def test_what_cannot_be_judged_is_refused(
    served: InProcess, sent: dict[str, str], status: int, said: str
) -> None:
    answer = served.call("POST", REVIEWS, "reviewer", json=sent)
    assert answer.status_code == status, answer.text
    assert said in answer.json()["error"]["message"]


def test_a_cursor_that_is_none_is_refused(served: InProcess) -> None:
    for cursor in ("x:y", f"0.5:{'9' * 80}"):
        assert served.call("GET", f"{REVIEWS}?cursor={cursor}", "reviewer").status_code == 422


def test_overrides_survive_a_kill(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path}/venire.db"
    with serving(storage, tmp_path) as server:
        with server.client(timeout=200) as client:
            client.create_stream("posts", **SETTINGS)
            client.add_items("posts", [{"id": name} for name in ("split", "same")])
            client.add_labels("posts", SAID)
            until(lambda: client.insights("posts")["exits"] == 2)
            assert client.review("posts", "split", "ok")["outcome"] == "overridden"
            assert client.review("posts", "same", "ok", "fine")["outcome"] == "confirmed"
        server.kill()
        server.start()
        with server.client(timeout=200) as client:
            item = client.item("posts", "split")
            assert (item["verdict"], item["gold"], item["exit"]["verdict"]) == ("ok", "ok", "spam")
            assert [r.verdict for r in client.revisions("posts")] == ["ok"]
            assert client.reviews("posts")["items"] == []
        assert server.stop() == 0
    assert main(["verify", "--storage", storage]) == 0


def test_reviewers_see_the_images_of_a_payload_and_nothing_that_it_names() -> None:
    image = "data:image/png;base64,iVBORw0KGgo="
    payloads = {
        "field": {"scan": image},
        "plain": image,
        "named": {"image": "https://elsewhere.example/a.png"},
        "script": {"image": "data:text/html;base64,AAAA"},
    }
    with in_process() as shared:
        shared.make_stream(**SETTINGS, layout=[{"field": "scan", "show": "image"}])
        rows = [{"id": name, "payload": payload} for name, payload in payloads.items()]
        assert shared.call("POST", "/v1/streams/posts/items", json=rows).status_code == 200
        send(shared, [(item, who, "ok") for item in payloads for who in ("ann", "bob")])
        page = shared.call("GET", "/streams/posts/reviews", "reviewer").text
        assert page.count("<img") == page.count(f'<img class="picture" src="{image}"') == 2
        for item in payloads:
            shown = shared.call("GET", f"/streams/posts/items/{item}", "reviewer").text
            assert shown.count("<img") == (item in ("field", "plain"))


def test_gold_and_what_was_sent_back_survive_a_kill(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path}/venire.db"
    panel = [{"id": name, "competence": 0.9} for name in ("ann", "bob", "cat", "dan")]
    with serving(storage, tmp_path) as server:
        with server.client(timeout=200) as client:
            client.create_stream("posts", **{**SETTINGS, "panel": panel})
            client.add_items("posts", [{"id": name} for name in ("split", "same", "open")])
            client.add_labels("posts", SAID)
            until(lambda: client.insights("posts")["exits"] == 2)
            sent = client.send_back("posts", "split", note="hard")
            assert client.add_gold("posts", [("same", "spam"), ("open", "ok")])
        server.kill()
        server.start()
        with server.client(timeout=200) as client:
            again = client.item("posts", sent["follow_up"])
            assert (again["follows"], again["status"]) == ("split", "open")
            assert client.send_back("posts", "split")["follow_up"] == sent["follow_up"]
            golds = {name: client.item("posts", name)["gold"] for name in ("same", "open")}
            assert golds == {"same": "spam", "open": "ok"}
            assert client.item("posts", "same")["verdict"] == "spam"
            was = client.item("posts", "split")["verdict"]
            other = "ok" if was == "spam" else "spam"
            client.add_labels("posts", [(sent["follow_up"], who, other) for who in ("cat", "dan")])
            until(lambda: client.item("posts", "split")["verdict"] == other)
        server.kill()
        server.start()
        with server.client(timeout=200) as client:
            item = client.item("posts", "split")
            assert (item["verdict"], item["exit"]["verdict"], item["gold"]) == (other, was, None)
            assert [r.item for r in client.revisions("posts")] == ["same", "split"]
            left = [exit.item for exit in client.exits("posts")]
            assert len(left) == len(set(left))
            assert client.archived() == []
        assert server.stop() == 0
    assert main(["verify", "--storage", storage]) == 0
