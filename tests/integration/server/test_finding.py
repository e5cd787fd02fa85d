"""Looking through items: by the API, and on the pages."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import pytest

from tests.integration.server.harness import InProcess, in_process

EVIL = "<script>document.title='owned'</script>"


@pytest.fixture(scope="module")
def filled() -> Iterator[InProcess]:
    """Six items: two left as spam, one was withdrawn, the rest are open."""
    with in_process() as served:
        served.make_stream(slot_seconds=0.05, max_overlap=1)
        served.add("a/b", "two", "three")
        for _ in range(2):
            work = served.take("ann")
            said = {"said": "spam"}
            served.call("POST", f"/v1/assignments/{work['token']}/label", json=said)
        exits = "/v1/streams/posts/exits?after=1&wait=30"
        assert served.call("GET", exits).text
        served.call("POST", "/v1/streams/posts/items", json=[{"id": "evil", "payload": EVIL}])
        served.add("later", "gone")
        served.call("DELETE", "/v1/streams/posts/items/gone")
        yield served


def find(served: InProcess, query: str = "") -> Any:
    answer = served.call("GET", f"/v1/streams/posts/items?{query}", "viewer")
    assert answer.status_code == 200, answer.text
    return answer.json()


def ids(served: InProcess, query: str = "") -> set[str]:
    return {item["id"] for item in find(served, query)["items"]}


def test_filters(filled: InProcess) -> None:
    assert len(ids(filled)) == 6
    left = ids(filled, "status=left")
    assert len(left) == 2
    assert ids(filled, "verdict=spam") == ids(filled, "reason=max_labels") == left
    assert ids(filled, "labeler=ann") == left
    assert ids(filled, "labeler=bob") == set()
    assert ids(filled, "status=withdrawn") == {"gone"}
    assert ids(filled, "text=OF+two") == {"two"}
    assert ids(filled, "text=%3CSCRIPT") == {"evil"}
    assert ids(filled, "min_confidence=0.9") == set()
    assert ids(filled, "max_confidence=0.9&status=left") == left
    assert ids(filled, "since=2001-01-01T00:00&until=2001-01-01T00:00") == set()
    assert len(ids(filled, "since=2001-01-01T00:00&text=&status=&min_confidence=")) == 6
    one = next(item for item in find(filled)["items"] if item["id"] in left)
    assert (one["verdict"], one["labels"], one["reason"]) == ("spam", 1, "max_labels")


def test_pages_follow_each_other(filled: InProcess) -> None:
    first = find(filled, "limit=4")
    second = find(filled, f"limit=4&cursor={first['next']}")
    assert second["next"] is None
    both = [item["id"] for item in first["items"] + second["items"]]
    assert len(both) == len(set(both)) == 6


def test_an_item_is_found_by_its_id_first_and_once(filled: InProcess) -> None:
    assert ids(filled, "text=a/b") == {"a/b"}
    first = find(filled, "text=t&limit=2")
    rest = find(filled, f"text=t&limit=9&cursor={first['next']}")
    every = [item["id"] for item in first["items"] + rest["items"]]
    assert len(every) == len(set(every))
    assert find(filled, "text=two&limit=1")["items"][0]["id"] == "two"
    assert ids(filled, "text=gone&status=open") == set()


def _cursor(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("status=gone", "open"),
        ("min_confidence=2", "less than or equal to 1"),
        ("since=yesterday", "2026-01-31T08:30"),
        ("cursor=x", "expected the `next`"),
        (f"cursor={_cursor(f'[1{0:0400}, 1]')}", "expected the `next`"),
        (f"cursor={_cursor('[' * 1400)}", "expected the `next`"),
        ("limit=0", "greater than or equal to 1"),
    ],
)
def test_what_is_no_search_is_refused(filled: InProcess, query: str, said: str) -> None:
    answer = filled.call("GET", f"/v1/streams/posts/items?{query}")
    assert answer.status_code == 422
    assert said in answer.json()["error"]["message"]


def test_the_pages_show_it_and_execute_nothing(filled: InProcess) -> None:
    listed = filled.call("GET", "/streams/posts/items?text=script").text
    assert EVIL not in listed
    assert "&lt;script&gt;" in listed
    page = filled.call("GET", "/streams/posts/items/evil").text
    assert EVIL not in page
    assert "It arrived in slot" not in page
    left = "a/b" if "a/b" in ids(filled, "status=left") else "two"
    whole = filled.call("GET", f"/streams/posts/items/{left}?story=whole").text
    for told in ("It arrived in slot", "ann was asked", "ann said spam", "belief in spam rose"):
        assert told in whole, told
    assert "It left as spam with one label" in whole
    assert "<polyline" in whole
    assert filled.call("GET", "/streams/posts/items/none").status_code == 404


def test_the_explanation_says_how_the_belief_moved(filled: InProcess) -> None:
    [left, *_] = ids(filled, "status=left")
    told = filled.call("GET", f"/v1/streams/posts/items/{left}/explain?beliefs=true").json()
    assert [belief["why"] for belief in told["beliefs"]] == ["arrived", "label"]
    before, after = (belief["posterior"]["spam"] for belief in told["beliefs"])
    assert before == pytest.approx(0.5)
    assert after == pytest.approx(0.8)
    assert (told["beliefs"][1]["labeler"], told["beliefs"][1]["said"]) == ("ann", "spam")


def test_trends_and_the_page_of_a_stream(filled: InProcess) -> None:
    trends = filled.call("GET", "/v1/streams/posts/trends", "viewer").json()
    assert (trends["exits"], trends["single_label_share"]) == (2, 1.0)
    spam = {"verdicts": 1.0, "votes": 1.0, "called": 2, "kept": 2}
    assert trends["mix"] == {"spam": spam}
    assert trends["accuracy"] == pytest.approx(0.8)
    page = filled.call("GET", "/streams/posts", "viewer").text
    for shown in ("Verdicts against votes", "mix of verdicts", "max_labels", "ann"):
        assert shown in page, shown
    assert "Pause" not in page
    assert "Pause" in filled.call("GET", "/streams/posts", "admin").text
    filled.make_stream("empty")
    assert "Labelers" in filled.call("GET", "/streams/empty").text


def test_an_alarm_is_shown(filled: InProcess) -> None:
    filled.call("PATCH", "/v1/streams/posts", json={"alarms": {"queue": 1}})
    assert filled.http.portal is not None
    filled.http.portal.call(filled.service.check_alarms, "posts")
    view = filled.call("GET", "/v1/streams/posts/alarms", "viewer").json()
    assert [one["rule"] for one in view["active"]] == ["queue"]
    assert [one["n"] for one in view["history"]] == [1]
    assert "items are open, more than 1" in filled.call("GET", "/streams/posts").text
    assert "venire_stream_alarms" in filled.call("GET", "/metrics").text
    wrong = {"alarms": {"queue": -1}}
    assert filled.call("PATCH", "/v1/streams/posts", json=wrong).status_code == 422
