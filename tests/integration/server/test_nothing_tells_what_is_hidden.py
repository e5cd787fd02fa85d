"""Two servers that differ in the verdict of an item that is due: no reviewer can tell them apart.

Every route, page and search that a reviewer may use is asked of both; so are the tools of agents,
which ask the same routes with the same key. What is random is drawn alike in both.
"""

from __future__ import annotations

import json
import random
import re
import secrets
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any

import pytest

from tests.integration.server.harness import InProcess, in_process, until
from tests.integration.server.test_reviews import SETTINGS
from venire.model import Role
from venire.server import ManualClock
from venire.server.edge.guard import ROLES

API, PAGE = "/v1/streams/posts", "/streams/posts"
HTML = {"accept": "text/html"}

#: Searches and options beside the bare routes.
ASKED = [
    *(f"items?verdict={name}&limit={n}" for name in ("spam", "ok") for n in (1, 2, 50)),
    *(f"items?verdict={name}&text=i&limit=1" for name in ("spam", "ok")),
    *(f"items?text=i1&verdict={name}" for name in ("spam", "ok")),
    *(f"items?reason=overlap&limit={n}" for n in (1, 2, 3)),
    *(f"items?{bound}_confidence=0.9&limit=1" for bound in ("min", "max")),
    *(f"items?labeler={name}&limit=1" for name in ("ann", "bob")),
    *("items?limit=1", "items?status=left&limit=1", "items?text=text"),
    *("reviews?order=telling", "reviews?order=telling&kind=disputed", "rates?level=0.9"),
    *("reviews?limit=1", "reviews?kind=doubtful&limit=1", "reviews?kind=disputed", "exits?after=1"),
    *("items/i1", "items/i2", "items/i0", "items/i2/explain?beliefs=true", "items/i1/explain"),
    *(
        "confusion?labeler=ann",
        "panel?want=0.5",
        "gold?after=i0",
        "alarms?after=0",
        "notes?item=i1",
    ),
]


def build(stack: ExitStack, verdict: str, monkeypatch: pytest.MonkeyPatch) -> InProcess:
    """`i1` left with the verdict and is due; `i2` was judged; `i0` is disputed; `i3` is open."""
    draw, clock = random.Random(7), ManualClock()
    monkeypatch.setattr(secrets, "token_hex", lambda n=32: draw.randbytes(n).hex())
    monkeypatch.setattr(secrets, "token_urlsafe", lambda n=32: draw.randbytes(n).hex())
    monkeypatch.setattr(secrets, "token_bytes", lambda n=32: draw.randbytes(n))
    served = stack.enter_context(in_process(clock))
    alarms = {"mix_shift": 0.01, "kept_share": 0.99, "accuracy": 0.99}
    served.make_stream(**SETTINGS, alarms=alarms, revisions=100)
    said = {"i0": ("spam", "ok"), "i1": (verdict, verdict), "i2": ("ok", "ok")}
    for item, (ann, bob) in said.items():
        share = {"audit_share": 1.0 if item == "i1" else 1e-12}
        assert served.call("PATCH", API, json=share).status_code == 200
        served.add(item)
        rows = [
            {"item": item, "labeler": who, "said": x} for who, x in (("ann", ann), ("bob", bob))
        ]
        assert served.call("POST", f"{API}/labels", json=rows).status_code == 200
        clock.advance(1.0)
        until(partial(_has_left, served, item))
        clock.advance(1.0)
    judged = {"item": "i2", "label": "ok"}
    assert served.call("POST", f"{API}/reviews", "reviewer", json=judged).status_code == 200
    served.add("i3")
    return served


def _has_left(served: InProcess, item: str) -> bool:
    return f'"{item}"' in served.call("GET", f"{API}/exits").text


@pytest.fixture(scope="module")
def two() -> Iterator[tuple[InProcess, InProcess]]:
    with pytest.MonkeyPatch.context() as monkeypatch, ExitStack() as stack:
        yield build(stack, "ok", monkeypatch), build(stack, "spam", monkeypatch)


def seen(served: InProcess, path: str, role: str, **more: Any) -> tuple[int, str, dict[str, str]]:
    method = "POST" if "json" in more else "GET"
    answer = served.call(method, path, role, **more)
    assert answer.status_code < 500, (path, answer.text)
    headers = {name: answer.headers[name] for name in answer.headers if name.startswith("venire")}
    return answer.status_code, _still(answer.text), headers


def _still(text: str) -> str:
    """Without what goes on with the clocks of the two: the number of the slot."""
    return re.sub(r'"(slot|seconds|slots_skipped)":[^,}]*', "", text)


def test_the_two_differ_for_who_may_see_it(two: tuple[InProcess, InProcess]) -> None:
    for path in ("items/i1", "items?verdict=ok", "exits", "insights", "trends"):
        one, other = (seen(served, f"{API}/{path}", "admin") for served in two)
        assert one != other, path


def test_no_route_tells_a_reviewer_what_is_hidden(two: tuple[InProcess, InProcess]) -> None:
    paths = {
        re.sub(r"\{stream\}", "posts", re.sub(r"\{item\}", "i1", route.removeprefix("GET ")))
        for route, roles in ROLES.items()
        if route.startswith("GET ") and roles is not None and Role.REVIEWER in roles
    } - {"/live"}
    paths |= {f"{API}/{asked}" for asked in ASKED}
    for path in sorted(paths):
        one, other = (seen(served, path, "reviewer") for served in two)
        assert one == other, path
    plans = [{}, {"policy": "fixed-overlap:1"}, {"without": ["ann"]}]
    for plan in plans:
        one, other = (seen(served, f"{API}/what-if", "reviewer", json=plan) for served in two)
        assert one == other
    back = {"item": "i1"}
    one, other = (seen(served, f"{API}/send-back", "reviewer", json=back) for served in two)
    assert one == other


def test_why_an_item_left_is_hidden_with_its_verdict(two: tuple[InProcess, InProcess]) -> None:
    """It tells whether labelers agreed, and of an undecided one that there is no verdict."""
    served = two[0]
    due = served.call("GET", f"{API}/items/i1", "reviewer").json()["exit"]
    assert (due["item"], due["verdict"], due["reason"]) == ("i1", None, None)
    lines = served.call("GET", f"{API}/exits", "reviewer").text.splitlines()
    shown = {line["item"]: line["reason"] for line in map(json.loads, lines)}
    assert shown == {"i0": "overlap", "i1": None, "i2": "overlap"}
    for role, known in (("reviewer", False), ("viewer", True)):
        reasons = served.call("GET", f"{API}/insights", role).json()["reasons"]
        assert bool(reasons) is known
    assert "reason for leaving" not in seen(served, f"{PAGE}/items/i1", "reviewer", headers=HTML)[1]


def test_no_page_tells_a_reviewer_what_is_hidden(two: tuple[InProcess, InProcess]) -> None:
    pages = ["", "/items", "/items?verdict=ok", "/items?verdict=spam", "/items/i1", "/reviews"]
    pages += ["/items/i1?story=whole", "/items/i1?story=part", "/labelers", "/settings"]
    pages += ["/what-if?policy=fixed-overlap:1", "?part=confusion&labeler=ann", "?part=panel"]
    for page in pages:
        one, other = (seen(served, f"{PAGE}{page}", "reviewer", headers=HTML) for served in two)
        assert one == other, page
    homes = []
    for served in two:  # also what /live sends
        form = {"key": served.keys["reviewer"]}
        served.http.post("/sign-in", data=form, follow_redirects=False)
        homes.append(served.http.get("/", headers=HTML).text)
        served.http.cookies.clear()
    assert homes[0] == homes[1]


def test_pages_are_followed_to_the_end_alike(two: tuple[InProcess, InProcess]) -> None:
    for search in ("verdict=ok", "verdict=spam", "reason=overlap", ""):
        walks = []
        for served in two:
            walk: list[list[str]] = []
            more: str | None = ""
            while more is not None:
                page = json.loads(
                    seen(served, f"{API}/items?limit=1&{search}{more}", "reviewer")[1]
                )
                walk.append([one["id"] for one in page["items"]])
                more = page["next"] and f"&cursor={page['next']}"
            walks.append(walk)
        assert walks[0] == walks[1], search


def test_a_cursor_says_nothing_and_cannot_be_made(two: tuple[InProcess, InProcess]) -> None:
    import base64

    page = two[0].call("GET", f"{API}/items?limit=1").json()
    assert b"i3" not in base64.urlsafe_b64decode(page["next"] + "==")
    forged = base64.urlsafe_b64encode(b'[1000000000.0, "i1"]').decode().rstrip("=")
    for cursor in (forged, page["next"][:-2] + "AA", "x", "", "é"):
        for path in ("items", "reviews"):
            answer = two[0].call("GET", f"{API}/{path}", params={"cursor": cursor})
            assert answer.status_code == 422, cursor
