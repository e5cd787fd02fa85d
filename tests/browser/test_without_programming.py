"""A stream from nothing to an export in a real Chromium: no JSON, and no terminal."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.test_console import Hook
from tests.browser.test_pages import ready, sign_in
from tests.integration.server.harness import Process, serving, until

pytestmark = pytest.mark.browser

POSTS = 300


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """A server on which there is nothing yet."""
    folder: Path = tmp_path_factory.mktemp("serve")
    private = {"VENIRE_ALLOW_PRIVATE_WEBHOOKS": "true"}
    with serving(f"sqlite:///{folder}/venire.db", folder, **private) as server:
        yield server


def plain(page: Any) -> None:
    """What is on the screen is for people."""
    shown = page.inner_text("body")
    for sign in ('{"', "[{", "curl ", "POST /", "Traceback"):
        assert sign not in shown, (page.url, sign)


def label(browser: Any, link: str, name: str, answers: int) -> Any:
    """Open an invitation as another person, and answer with the first key, then the second."""
    window = browser.new_context(viewport={"width": 390, "height": 760}).new_page()
    window.goto(link)
    window.wait_for_selector("text=You are invited to label posts")
    assert f"as those of {name}." in window.inner_text("form")
    assert "UTC" not in window.inner_text("form")  # a time as the clock of the reader shows it
    window.click("text=Start")
    window.wait_for_url("**/work?stream=posts")
    assert name in window.inner_text("header")
    assert window.locator(".as").count() == 0  # it is not said twice
    for n in range(answers):
        ready(window)
        plain(window)
        before = window.inner_text("#payload")
        window.keyboard.press(str(1 + n % 2))
        until(lambda before=before: window.inner_text("#payload") != before)  # type: ignore[misc]
    return window


def make_stream(page: Any, check_access: Callable[[Any, str], None]) -> None:
    page.click("text=Make the first one")
    page.click("nav.kinds >> text=Moderation")
    page.wait_for_selector("nav.kinds [aria-current] >> text=Moderation")
    page.fill("#set-name", "my posts")
    page.click("#settings button.primary")
    page.wait_for_selector("#set-name-hint.wrong")  # said beside the field, and nothing is made
    page.fill("#set-name", "posts")
    assert "`" not in "".join(page.locator("#settings small").all_text_contents())
    page.fill("#set-classes", "toxic\nok")  # guidelines about other classes are not for labelers
    assert page.input_value("#set-guidelines") == ""
    page.fill("#set-classes", "remove\nkeep")
    assert "**remove**" in page.input_value("#set-guidelines")
    page.fill("#set-min_labels", "1")
    page.fill("#set-max_overlap", "1")
    page.click("text=Money and time")
    page.fill("#set-slot_seconds", "0.2")
    page.click("text=Labelling page")
    page.fill("#set-undo_seconds", "0")
    check_access(page, "a new stream")
    plain(page)
    page.click("#settings button.primary")
    page.wait_for_url("**/streams/posts/upload?made=1", timeout=200_000)


def send(page: Any, file: Path, check_access: Callable[[Any, str], None]) -> None:
    rows = [
        ("id", "text"),
        *((f"p{n}", f"=post {n}, and more") for n in range(POSTS)),
        ("", "no id"),
    ]
    with file.open("w", newline="") as written:
        csv.writer(written).writerows(rows)
    for added in (f"{POSTS} items added, 1 row refused", f"{POSTS} were there already"):
        page.set_input_files("#file", str(file))
        page.click("#upload button")
        page.wait_for_selector(f"#upload-said:has-text('Done'):has-text('{added}')")
        assert page.locator("#refused tbody tr").all_inner_texts()[0].startswith(f"{POSTS + 2}\t")
    check_access(page, "an upload")
    plain(page)


def test_from_nothing_to_an_export(
    page: Any,
    browser: Any,
    process: Process,
    tmp_path: Path,
    check_access: Callable[[Any, str], None],
) -> None:
    sign_in(page, process, process.key)
    make_stream(page, check_access)
    send(page, tmp_path / "posts.csv", check_access)

    page.click("nav.tabs >> text=Labelers")
    page.fill("#invite-names", "Ann\nBob")
    page.click("#invite button")
    page.wait_for_selector("#links[open] li >> nth=1")
    links = page.locator("#links code").all_inner_texts()
    page.click("#links >> text=Done")
    page.wait_for_selector("#invitations tbody tr >> nth=1")
    check_access(page, "invitations")
    plain(page)
    for name, link in zip(("Ann", "Bob"), links, strict=True):
        label(browser, link, name, 5).context.close()

    with process.client() as client:  # only to wait until the verdicts are there
        until(lambda: client.insights("posts")["exits"] >= 8)
    page.click("nav.tabs >> text=Reviews")
    page.click("nav.tabs >> text=low confidence")  # not the audits, which are drawn and blind
    page.wait_for_selector("form.judge")
    plain(page)
    page.locator("form.judge button.primary").first.click()
    page.wait_for_selector("text=confirmed")
    if page.locator("nav.tabs >> text=Rates").count():
        page.click("nav.tabs >> text=Rates")
        page.wait_for_selector("h1")
        plain(page)

    page.click("nav.tabs >> text=Export")
    check_access(page, "exports")
    plain(page)
    for what, columns in (("labels", {"task", "worker", "label"}), ("verdicts", {"confidence"})):
        with page.expect_download() as got:
            page.get_by_role("link", name=f"{what} as csv").click()
        assert got.value.suggested_filename == f"posts-{what}.csv"
        with open(got.value.path(), newline="") as file:
            rows = list(csv.DictReader(file))
        assert columns <= set(rows[0])
        assert len(rows) >= 8
    for path in ("/streams/posts", "/streams/posts/items", "/"):
        page.goto(process.url + path)
        page.wait_for_selector("h1")
        plain(page)


def test_an_upload_goes_on_after_an_interruption(
    page: Any, process: Process, tmp_path: Path
) -> None:
    """The second of three pieces does not arrive; quoted line breaks are where pieces end."""
    with process.client(timeout=200) as client:
        client.create_stream("long", classes=["a", "b"], slot_seconds=600)
    file = tmp_path / "long.csv"
    with file.open("w", newline="") as written:
        writer = csv.writer(written)
        writer.writerow(("id", "text"))
        writer.writerows((f"p{n}", f'line "{n}"\n' + "x" * 60_000) for n in range(12))
    sign_in(page, process, process.key)
    page.goto(f"{process.url}/streams/long/upload")
    sent = []

    def pass_on(route: Any) -> None:
        sent.append(route.request.url)
        if len(sent) == 2:
            error = {"error": {"code": "x", "message": "out of order", "retryable": False}}
            route.fulfill(status=500, json=error)
        else:
            route.continue_()

    page.route("**/upload?**", pass_on)
    page.set_input_files("#file", str(file))
    page.click("#upload button")
    page.wait_for_selector("#upload-said:has-text('Stopped: out of order')")
    page.click("text=Continue")
    page.wait_for_selector("#upload-said:has-text('Done: 12 items added')")
    assert len(sent) == 4
    with process.client() as client:
        assert client.item("long", "p11")["payload"]["text"].startswith('line "11"\n')


def test_settings_are_pasted(page: Any, process: Process) -> None:
    sign_in(page, process, process.key)
    page.goto(f"{process.url}/new-stream")
    page.click("#pasted summary")
    for text, why in (
        ("name: pasted\nclasses: [a, b", "stream.yaml, line 2: this is not YAML"),
        ('name = "pasted"\nclasses = ["a", "b"]\nmin_label = 2', "min_label: unknown field"),
    ):
        page.fill("#tree", text)
        page.click("#pasted button")
        page.wait_for_selector(f"#tree-said:has-text('nothing was created: {why}')")
    page.fill("#tree", "name: pasted\nclasses: [a, b]\nmin_labels: 2")
    page.click("#pasted button")
    page.wait_for_url("**/streams/pasted/upload?made=1")
    with process.client() as client:
        assert client.stream("pasted")["settings"]["min_labels"] == 2


def test_costs_panel_and_layout_are_tables_with_a_preview(
    page: Any, process: Process, check_access: Callable[[Any, str], None]
) -> None:
    with process.client(timeout=200) as client:
        blocks = [{"field": "a", "title": "A"}, {"field": "b", "beside": True}]
        panel = [{"id": "ann", "price": 0.5}, {"id": "bob"}]
        client.create_stream("forms", classes=["keep", "remove"], panel=panel, layout=blocks)
    sign_in(page, process, process.key)
    page.goto(f"{process.url}/streams/forms/settings")
    for title in ("Panel", "What errors cost", "What labelers see"):
        page.click(f"#settings summary h2:text-is('{title}')")
    costs = page.locator("[data-rows=set-costs]")
    costs.get_by_role("button", name="Add a row").click()
    costs.get_by_label("truth").select_option("remove")
    costs.get_by_label("verdict").select_option("keep")
    page.click("#settings .save button.primary")
    page.wait_for_selector("#set-costs-hint:has-text('row 1, cost: ')")
    costs.get_by_label("cost", exact=True).fill("20")
    shown = costs.locator(".preview tr >> nth=2").locator("th, td").all_inner_texts()
    assert shown == ["remove", "20", "0"]
    members = page.locator("[data-rows=set-panel]")
    members.get_by_role("button", name="Remove").nth(1).click()
    members.get_by_label("trusted").check()
    assert page.locator(".page > div").count() == 1  # one beside the other
    check_access(page, "tables of settings")
    page.locator("details.json summary").nth(1).click()
    page.fill("#set-panel", '[{"id": "ann", "trusted": true}, {"id": "cat"}]')  # and back
    assert members.get_by_label("id").nth(1).input_value() == "cat"
    page.click("#settings .save button.primary")
    page.wait_for_selector("#said:has-text('saved as version 2')")
    with process.client() as client:
        kept = client.stream("forms")["settings"]
    assert kept["costs"] == [{"truth": "remove", "verdict": "keep", "cost": 20}]
    assert [(one["id"], one["trusted"]) for one in kept["panel"]] == [("ann", True), ("cat", False)]
    assert [one["field"] for one in kept["layout"]] == ["a", "b"]


def test_webhooks_are_added_tested_and_removed(
    page: Any, process: Process, check_access: Callable[[Any, str], None]
) -> None:
    hook = Hook()
    page.on("dialog", lambda asked: asked.accept())
    with process.client(timeout=200) as client:
        client.create_stream("told", classes=["a", "b"], slot_seconds=600)
    sign_in(page, process, process.key)
    page.goto(f"{process.url}/streams/told/webhooks")
    page.fill("#hook-url", hook.url)
    page.click("#add-hook button")
    page.wait_for_selector("[data-do=test]")
    page.click("[data-do=test]")
    page.wait_for_selector("#hook-said:has-text('The test arrived (answer 204)')")
    assert hook.got == [{"text": "told: this is a test of the webhook, and it works"}]
    check_access(page, "webhooks")
    page.fill("#hook-url", "http://127.0.0.1:9/")
    page.select_option("#hook-format", "json")
    page.click("#add-hook button")
    page.wait_for_selector("#secret[open]")
    assert page.inner_text("#secret-text").startswith("whsec_")
    page.click("#secret button")
    page.wait_for_selector("[data-do=test] >> nth=1")
    page.locator("[data-do=test]").nth(1).click()
    page.wait_for_selector("#hook-said:has-text('The test failed')")
    page.locator("[data-do=remove]").nth(1).click()
    until(lambda: page.locator("[data-do=remove]").count() == 1)
    with process.client() as client:
        [kept] = client.webhooks("told")
    assert (kept["format"], kept["url"]) == ("text", hook.url)
    hook.server.shutdown()
    hook.server.server_close()
