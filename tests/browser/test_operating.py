"""Operating streams and labelers in a real Chromium: every button, by those who may press it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.test_console import Hook
from tests.browser.test_pages import sign_in
from tests.integration.server.harness import STREAM, Process, serving, until

pytestmark = pytest.mark.browser

QUICK: dict[str, Any] = {**STREAM, "slot_seconds": 0.1, "max_overlap": 2, "min_labels": 2}


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """A server with one stream in which five verdicts are disputed."""
    folder: Path = tmp_path_factory.mktemp("serve")
    private = {"VENIRE_ALLOW_PRIVATE_WEBHOOKS": "true"}
    with serving(f"sqlite:///{folder}/venire.db", folder, **private) as server:
        with server.client(timeout=200) as client:
            client.create_stream("posts", **QUICK)
            client.add_items("posts", [{"id": f"i{n}", "payload": f"text {n}"} for n in range(5)])
            said = [(f"i{n}", *x) for n in range(5) for x in (("ann", "spam"), ("bob", "ok"))]
            client.add_labels("posts", said)
            until(lambda: client.insights("posts")["exits"] == 5)
        yield server


def test_a_stream_is_paused_closed_archived_restored_and_deleted(
    page: Any, process: Process
) -> None:
    page.on("dialog", lambda asked: asked.accept())
    with process.client() as client:
        client.create_stream("brief", **QUICK)
        sign_in(page, process, process.key)
        for button, then in (("Pause", "paused"), ("Resume", "running"), ("Close", "closed")):
            page.click(f"#brief >> text={button}")
            page.wait_for_selector(f"#brief .state.{then}")  # by itself: the page is live
            assert client.stream("brief")["status"] == then
        page.click("#brief >> text=Archive")
        page.wait_for_selector("#brief", state="detached")
        assert [one["name"] for one in client.archived()] == ["brief"]
        page.click("text=Archived streams")
        page.click("tr:has-text('brief') >> text=Restore")
        page.wait_for_selector("text=No stream is archived")
        page.goto(process.url)
        page.click("#brief >> text=Delete")
        assert page.is_disabled("#deleting [value=delete]")
        page.fill("#deleting-name", "brie")
        assert page.is_disabled("#deleting [value=delete]")
        page.fill("#deleting-name", "brief")
        page.click("#deleting [value=delete]")
        page.wait_for_selector("#brief", state="detached")
        page.wait_for_selector("text=brief: deleted")
        assert "brief" not in [one["name"] for one in client.streams()]
        done = [e["action"] for e in client.audit() if e["stream"] == "brief"]
        verbs = ("create", "pause", "resume", "close", "archive", "restore", "delete")
        assert done == [f"stream.{verb}" for verb in verbs]


def test_what_is_typed_wrong_or_cancelled_deletes_nothing(page: Any, process: Process) -> None:
    with process.client() as client:
        client.create_stream("kept", **QUICK)
        client.close_stream("kept")
        sign_in(page, process, process.key)
        page.goto(f"{process.url}/streams/kept")
        page.click("text=Delete…")
        page.fill("#deleting-name", "kept")
        page.click("#deleting >> text=Cancel")
        page.wait_for_selector("#deleting", state="hidden")
        assert client.stream("kept")["status"] == "closed"
        page.click("#actions >> text=Delete…")
        assert page.input_value("#deleting-name") == ""
        page.fill("#deleting-name", "kept")
        page.keyboard.press("Enter")
        page.wait_for_url(f"{process.url}/")
        until(lambda: "kept" not in [one["name"] for one in client.streams()])


def test_a_viewer_sees_sparklines_and_no_buttons(page: Any, process: Process) -> None:
    with process.client() as client:
        key = str(client.create_key("Vera", "viewer")["token"])
    sign_in(page, process, key)
    page.wait_for_selector("#posts .spark")
    assert page.locator("#posts .spark").count() == 2
    told = page.get_attribute("#posts [data-figure=rate] .spark", "aria-label")
    assert told.startswith("items that left per minute: 0 an hour ago,")
    assert told.endswith("at most 5")
    page.wait_for_timeout(1500)  # also what comes live
    assert page.locator("#overview button").count() == 0
    for path in ("/archived", "/streams/posts/labelers"):
        page.goto(process.url + path)
        assert page.locator("main button").count() == 0
        assert page.locator("dialog").count() == 0


def test_labelers_are_added_get_keys_and_are_retired(page: Any, process: Process) -> None:
    page.on("dialog", lambda asked: asked.accept())
    with process.client() as client:
        sign_in(page, process, process.key)
        page.goto(f"{process.url}/streams/posts")
        page.click("nav.tabs >> text=Labelers")
        page.fill("#add-id", "zoe")
        page.fill("#add-kind", "person")
        page.fill("#add-competence", "0.7")
        page.fill("#add-price", "0.5")
        page.click("#add-labeler >> text=Add")
        row = page.locator("tr[data-labeler=zoe]")
        row.wait_for()
        assert client.stream("posts")["settings"]["panel"][-1]["price"] == 0.5
        row.get_by_role("button", name="new key for zoe").click()
        page.wait_for_selector("#token[open]")
        token = page.inner_text("#token-text")
        assert token.startswith("vk_")
        with process.client(token) as zoe:
            assert zoe.me()["labeler"] == "zoe"
        page.click("#token >> text=Done")
        page.wait_for_selector("tr[data-labeler=zoe] .key-line")
        assert token not in page.content()
        row.get_by_role("button", name="rotate the key").first.click()
        page.wait_for_selector("#token[open]")
        second = page.inner_text("#token-text")
        assert second not in ("", token)
        page.click("#token >> text=Done")
        page.wait_for_selector("#token", state="hidden")
        lines = page.locator("tr[data-labeler=zoe] .key-line")
        until(lambda: lines.count() == 2)
        row.get_by_role("button", name="revoke the key").first.click()
        until(lambda: lines.count() == 1)
        row.get_by_role("button", name="revoke the key").first.click()
        until(lambda: lines.count() == 0)
        listed = client.keys()
        keys = [key for key in listed if key["labeler"] == "zoe"]
        assert [key["revoked_at"] is not None for key in keys] == [True, True]
        row.get_by_role("button", name="retire zoe").click()
        page.wait_for_selector("tr[data-labeler=zoe] .state.retired")
        [view] = [one for one in client.labelers("posts") if one["id"] == "zoe"]
        assert view["retired"]
        row.get_by_role("button", name="restore zoe").click()
        page.wait_for_selector("tr[data-labeler=zoe] .state.away")
        done = [e["action"] for e in client.audit() if e["subject"] == "zoe"]
        assert done == ["labeler.add", "labeler.retire", "labeler.restore"]


def test_labelers_agree_with_gold_and_with_each_other(page: Any, process: Process) -> None:
    with process.client() as client:
        client.create_stream("agree", **QUICK)
        client.add_items("agree", [{"id": f"a{n}"} for n in range(4)])
        client.add_labels(
            "agree", [(f"a{n}", who, "ok") for n in range(4) for who in ("ann", "bob")]
        )
        client.add_gold("agree", {"a0": "ok", "a1": "spam"})
        sign_in(page, process, process.key)
        page.goto(f"{process.url}/streams/agree/labelers")
        assert "50 %" in page.inner_text("tr[data-labeler=ann]")
        cells = page.locator("table.matrix tbody td").all_inner_texts()
        assert [cell.split("\n")[0] for cell in cells] == ["·", "100 %", "100 %", "·"]


def test_a_reviewer_sends_back_and_the_revision_reaches_a_webhook(
    page: Any, process: Process
) -> None:
    hook = Hook()
    with process.client() as client:
        client.add_webhook("posts", hook.url)
        sign_in(page, process, str(client.create_key("Rita", "reviewer")["token"]))
        page.goto(f"{process.url}/streams/posts/reviews?kind=disputed")
        first = str(page.get_attribute("form.judge", "data-item"))
        before = client.item("posts", first)["verdict"]
        other = "ok" if before == "spam" else "spam"
        page.locator("form.judge input").first.fill("hard to read")
        page.locator("form.judge >> text=Send back").first.click()
        page.wait_for_selector(f"text=sent back for more labels, as {first}~2")
        assert page.locator("form.judge select").first.is_disabled()
        page.goto(f"{process.url}/streams/posts/items/{first}")
        assert page.locator("[data-back]").count() == 0
        page.get_by_role("link", name=f"{first}~2").click()
        page.wait_for_selector(f"text=Item {first}~2")
        client.add_labels("posts", [(f"{first}~2", who, other) for who in ("cat", "dan")])
        until(lambda: client.item("posts", first)["verdict"] == other)

        def told() -> list[dict[str, Any]]:
            return [sent["data"] for sent in hook.got if sent["type"] == "item.revised"]

        until(lambda: len(told()) == 1)
        assert [told()[0][k] for k in ("item", "before", "verdict")] == [first, before, other]
        page.goto(f"{process.url}/streams/posts/items/{first}")
        page.wait_for_selector(".story li.revised")
        assert page.locator(".figures >> text=left as").count() == 1
    hook.server.shutdown()
    hook.server.server_close()


def test_a_reviewer_does_not_see_what_is_due_to_be_audited(page: Any, process: Process) -> None:
    with process.client() as client:
        client.create_stream("blind", **QUICK, audit_share=1.0)
        client.add_items("blind", [{"id": "one", "payload": "text"}])
        client.add_labels("blind", [("one", "ann", "spam"), ("one", "bob", "spam")])
        until(lambda: client.insights("blind")["audits_due"] == 1)
        sign_in(page, process, str(client.create_key("Ron", "reviewer")["token"]))
        page.goto(f"{process.url}/streams/blind/items/one")
        page.wait_for_selector("text=hidden from reviewers until then")
        assert "spam" not in page.inner_text("main")
        page.goto(f"{process.url}/streams/blind/items")
        assert "spam" not in page.inner_text("table")
        page.goto(f"{process.url}/streams/blind/reviews")
        page.select_option("form.judge select", "spam")
        page.click("form.judge >> text=Answer")
        page.wait_for_selector("text=answered: spam")
        page.goto(f"{process.url}/streams/blind/items/one")
        page.wait_for_selector(".story li.left")
        assert "spam" in page.inner_text(".figures")
