"""The pages of a stream itself, and the routes that they stand on."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.integration.server.harness import InProcess, in_process, until
from venire.server.pages import charts
from venire.server.pages.charts import plotly_address

ONE = "/v1/streams/posts"
EVIL = "</script><script>alert(1)</script>"


@pytest.fixture(scope="module")
def served() -> Iterator[InProcess]:
    """A stream with a class of a dangerous name, in which items have left."""
    with in_process() as shared:
        panel = [{"id": name, "price": 0.5} for name in ("ann", "bob", "cat")]
        shared.make_stream(
            classes=["spam", EVIL], panel=panel, slot_seconds=0.01, learning="while-serving"
        )
        shared.add(*(f"i{n}" for n in range(40)))
        rows = [
            {
                "item": f"i{n}",
                "labeler": m,
                "said": EVIL if (n % 4 == 0) != (n % 9 == k) else "spam",
            }
            for n in range(40)
            for k, m in enumerate(("ann", "bob", "cat"))
        ]
        assert shared.call("POST", f"{ONE}/labels", json=rows).status_code == 200
        until(lambda: shared.call("GET", f"{ONE}/trends").json()["exits"] == 40)
        yield shared


def test_trends_hold_what_the_charts_show(served: InProcess) -> None:
    trends = served.call("GET", f"{ONE}/trends", "viewer").json()
    period = trends["periods"][-1]
    assert {"arrivals", "votes", "money", "student_share"} <= set(period)
    page = served.call("GET", "/streams/posts", "viewer").text
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    assert found is not None
    charts = json.loads(found[1])
    assert [one["name"] for one in charts[0]["series"]] == sorted(
        trends["mix"], key=lambda name: -trends["mix"][name]["verdicts"]
    )
    assert page.count('class="drawing"') == len(charts) == 8
    assert "alert(1)</script>" not in page
    assert "<script>" not in page
    assert page.count("<polyline") + page.count("<polygon") > len(charts)


def test_the_confusion_matrix_of_a_labeler(served: InProcess) -> None:
    view = served.call("GET", f"{ONE}/confusion?labeler=ann", "viewer").json()
    assert view["classes"] == ["spam", EVIL]
    assert [sum(row) for row in view["rows"]] == pytest.approx([1, 1], abs=1e-5)
    assert view["rows"][0][0] > 0.5 < view["rows"][1][1]
    part = served.call("GET", "/streams/posts?part=confusion&labeler=ann", "viewer").text
    assert part.count("<td") == 4
    assert "alert(1)</script>" not in part
    assert served.call("GET", f"{ONE}/confusion?labeler=nobody").status_code == 404
    unknown = served.call("GET", "/streams/posts?part=confusion&labeler=nobody").text
    assert "no labeler" in unknown
    served.make_stream("new")
    early = served.call("GET", "/v1/streams/new/confusion?labeler=ann")
    assert (early.status_code, early.json()["error"]["code"]) == (409, "invalid_state")


def test_labelers_have_their_agreement(served: InProcess) -> None:
    found = {one["id"]: one for one in served.call("GET", f"{ONE}/labelers").json()}
    assert 0.5 < found["ann"]["agreement"] < 1


def test_who_shares_errors_is_said_on_the_pages(served: InProcess) -> None:
    """Two judges on one model, of whom one has a dangerous name; they say the same."""
    one, names = "/v1/streams/kin", ("a", EVIL, "ann", "bob")
    kin = {"a": "llama", EVIL: "llama"}
    panel = [{"id": name} for name in names]
    served.make_stream("kin", panel=panel, learning="while-serving", families=kin)
    assert served.call("GET", one).json()["settings"]["families"] == kin
    assert "families" not in served.call("GET", ONE).json()["settings"]
    served.add(*(f"i{n}" for n in range(12)), stream="kin")
    wrong = {"a": 3, EVIL: 3, "ann": 4, "bob": 5}
    classes = served.call("GET", one).json()["settings"]["classes"]
    rows = [
        {"item": f"i{n}", "labeler": m, "said": classes[(n % 2) ^ (n % wrong[m] == 0)]}
        for n in range(12)
        for m in names
    ]
    assert served.call("POST", f"{one}/labels", json=rows).status_code == 200
    [line] = served.call("GET", f"{one}/agreement", "viewer").json()["relations"]
    assert line.endswith(" share errors: together 1.0 votes.")
    found = {x["id"]: x["family"] for x in served.call("GET", f"{one}/labelers").json()}
    assert found == {"a": [EVIL], EVIL: ["a"], "ann": [], "bob": []}
    assert served.call("GET", f"{one}/panel").json()["relations"] == [line]
    for page in ("", "/labelers", "?part=panel"):
        text = served.call("GET", f"/streams/kin{page}", "viewer").text
        assert "share errors: together 1.0 votes." in text
        assert "alert(1)</script>" not in text
    changed = served.call("PATCH", one, json={"families": {}})
    assert "families" not in changed.json()["settings"]
    refused = served.call("PATCH", one, json={"families": {"a": ["llama"]}})
    assert refused.status_code == 422
    assert "families" in refused.text
    history = served.call("GET", "/streams/kin/settings", "viewer").text
    assert "families: null" in history


def test_the_panel_as_a_part_of_the_page(served: InProcess) -> None:
    part = served.call("GET", "/streams/posts?part=panel", "viewer").text
    assert "expected to be right" in part
    assert "each label costs 1; half a point may be lost" in part
    assert part.count("<tr>") == 4
    assert "has 0 labels" in served.call("GET", "/streams/new?part=panel", "viewer").text


def test_what_if_over_http_and_on_its_page(served: InProcess) -> None:
    plan = {"policy": "fixed-overlap:1", "without": ["cat"]}
    view = served.call("POST", f"{ONE}/what-if", "viewer", json=plan).json()
    assert view["measures"]["labels"]["would_be"]["value"] < view["measures"]["labels"]["was"]
    page = served.call("GET", "/streams/posts/what-if", "viewer").text
    assert 'id="plan"' in page
    assert "would be" not in page
    query = "policy=fixed-overlap:1&without=cat&min_confidence=&money="
    whole = served.call("GET", f"/streams/posts/what-if?{query}", "viewer").text
    assert "fixed-overlap:1, without <bdi>cat</bdi>" in whole
    part = served.call("GET", f"/streams/posts/what-if?{query}&part=result", "viewer").text
    assert part.startswith("<section")
    assert part in whole
    for note in view["notes"]:
        assert f"<li>{note}</li>" in part
    assert f"{view['measures']['labels']['would_be']['value']:,.2f}" in part
    assert "Right verdicts are what is expected when all labels" in part
    wrong = served.call("GET", "/streams/posts/what-if?min_confidence=2&part=result").text
    assert "min confidence: Input should be less than or equal to 1" in wrong
    assert (
        "unknown policy" in served.call("GET", "/streams/posts/what-if?policy=x&part=result").text
    )
    for bad in ({"policy": 3}, {"other": 1}, {"max_labels": 0}):
        assert served.call("POST", f"{ONE}/what-if", json=bad).status_code == 422


def test_settings_are_a_form_for_admins_and_a_history_for_all(served: InProcess) -> None:
    served.call("PATCH", ONE, json={"max_overlap": 4})
    mine = served.call("GET", "/streams/posts/settings?saved=2").text
    assert 'id="set-max_overlap" name="max_overlap" data-kind="number" type="number"' in mine
    assert "saved as version 2" in mine
    theirs = served.call("GET", "/streams/posts/settings", "viewer").text
    assert "<form id" not in theirs
    for page in (mine, theirs):
        assert "max_overlap: 4" in page
        assert "created" in page


def test_the_script_of_plotly_comes_from_its_package(served: InProcess) -> None:
    address = plotly_address()
    assert address is not None
    assert f'<script src="{address}" defer>' in served.call("GET", "/streams/posts").text
    plain = served.http.get(address, headers={"accept-encoding": "identity"})
    small = served.http.get(address, headers={"accept-encoding": "gzip"})
    assert plain.content == small.content == charts._found()[1].read_bytes()  # type: ignore[index]
    assert small.headers["content-encoding"] == "gzip"
    assert len(gzip.compress(plain.content)) < len(plain.content) / 2
    assert "immutable" in plain.headers["cache-control"]
    tag = {"if-none-match": plain.headers["etag"], "accept-encoding": "identity"}
    assert served.http.get(address, headers=tag).status_code == 304
    assert served.http.get("/static/plotly-0.0.1.js").status_code == 404


def test_without_the_package_the_pages_show_the_svg(
    served: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(charts, "_found", lambda: None)
    page = served.call("GET", "/streams/posts").text
    assert "plotly-" not in page
    assert "<polyline" in page
    assert served.http.get("/static/plotly-7.1.0.js").status_code == 404


def test_the_server_never_imports_plotly() -> None:
    code = "import sys, venire.server.app; sys.exit('plotly' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_people_who_are_students_can_be_retired_and_the_student_cannot(served: InProcess) -> None:
    """The kind of a labeler is a note of its owner; who is the student's is in the settings."""
    panel = [{"id": "ann", "kind": "student"}, {"id": "bob"}]
    served.make_stream("taught", panel=panel, student={"field": "text"}, learning="while-serving")
    page = served.call("GET", "/streams/taught/labelers").text
    assert [f'aria-label="{verb} ann"' in page for verb in ("retire", "new key for")] == [True] * 2
    assert "retire student" not in page
    assert "new key for student" not in page
    offered = served.call("GET", "/streams/taught/what-if").text
    assert ">ann<" in offered or 'value="ann"' in offered
