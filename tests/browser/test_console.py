"""The console in a real Chromium: every page, light and dark, on a desk and on a telephone."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.browser.test_pages import EVIL, SQUARE, sign_in
from tests.integration.server.harness import PANEL, STREAM, Process, serving, until
from tests.marks import nightly
from venire.server.edge.guard import ROLES

pytestmark = pytest.mark.browser

#: Routes that are no pages, besides those of the API: answers for programs, and parts of pages.
NO_PAGES = {"/health", "/ready", "/version", "/metrics", "/openapi.json", "/live", "/sign-in"}

#: Every page, and some in other states, by address.
PAGES = (
    *(
        path.format(stream="day", item="i0")
        for method, path in (route.split() for route in ROLES)
        if method == "GET" and not path.startswith("/v1/") and path not in NO_PAGES
    ),
    "/streams/day/items?text=nothing",
    "/streams/day/items/evil",
    "/streams/day/items/scan",
    "/streams/none",
    "/work?stream=day&labeler=cat",
    "/streams/day/what-if?policy=fixed-overlap:1",
)


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """A server with a stream in which some items have left, with labels that differ."""
    folder: Path = tmp_path_factory.mktemp("serve")
    private = {"VENIRE_ALLOW_PRIVATE_WEBHOOKS": "true"}
    with serving(f"sqlite:///{folder}/venire.db", folder, **private) as server:
        with server.client(timeout=200) as client:
            quick = {"slot_seconds": 0.1, "max_overlap": 2, "min_labels": 2, "panel": PANEL}
            client.create_stream("day", **{**STREAM, **quick})
            rows = [{"id": f"i{n}", "payload": {"text": f"text {n}"}} for n in range(60)]
            scan = {"id": "scan", "payload": {"image": SQUARE}}
            client.add_items("day", [*rows, {"id": "evil", "payload": EVIL}, scan])
            said = [(str(row["id"]), "ann", "spam") for row in rows[:20]]
            said += [
                (str(row["id"]), "bob", "ok" if n < 5 else "spam")
                for n, row in enumerate(rows[:20])
            ]
            client.add_labels("day", said)
            until(lambda: client.insights("day")["exits"] == 20)
        yield server


@pytest.mark.parametrize("width", [1100, nightly(360)])
def test_every_page_is_accessible_and_no_wider_than_the_screen(
    page: Any, process: Process, check_access: Callable[[Any, str], None], width: int
) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    page.goto(process.url)
    check_access(page, "sign in")
    page.goto(f"{process.url}/sign-in?link=used")
    check_access(page, "a link that was used")
    sign_in(page, process, process.key)
    for path in PAGES:
        page.goto(process.url + path)
        page.wait_for_selector("h1, #choices")
        if path.endswith("/evil"):
            page.wait_for_selector(".story li")
        check_access(page, path)
        for wide in {width, 360}:
            page.set_viewport_size({"width": wide, "height": 800})
            fits = page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            assert fits, (path, wide)
        page.set_viewport_size({"width": width, "height": 800})


def test_an_operator_finds_an_item_and_reads_its_story(page: Any, process: Process) -> None:
    page.goto(f"{process.url}/streams/day/items?status=left")  # and back, by way of signing in
    page.fill("#key", process.key)
    page.keyboard.press("Enter")
    page.wait_for_selector("table.items")
    until(lambda: page.locator("table.items tbody tr").count() == 20)
    page.click("text=Clear")
    page.wait_for_selector("text=Earlier items")
    until(lambda: page.locator("table.items tbody tr").count() == 50)
    page.click("text=Earlier items")
    page.wait_for_selector("text=From the latest")
    until(lambda: page.locator("table.items tbody tr").count() == 12)
    page.fill("#text", "TEXT 3")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=Clear")
    page.get_by_role("link", name="i3", exact=True).click()
    page.wait_for_selector(".story li.left")
    page.wait_for_load_state()
    story = page.inner_text(".story")
    for told in ("It arrived in slot", "ann said spam", "bob said ok", "because"):
        assert told in story
    assert page.locator("svg polyline").count() == 2
    assert "The belief began" in (page.get_attribute("figure svg", "aria-label") or "")
    page.set_viewport_size({"width": 360, "height": 780})
    cut = page.evaluate("""() => {
      const picture = document.querySelector("figure svg");
      const edge = picture.closest("section").getBoundingClientRect();
      if (getComputedStyle(picture).overflow !== "visible") return -1;
      const texts = [...picture.querySelectorAll("text")];
      return texts.filter((one) => one.getBoundingClientRect().left < edge.left).length;
    }""")
    assert cut == 0  # 100 % is not to be read as 0 %


def test_a_payload_is_never_executed(page: Any, process: Process) -> None:
    sign_in(page, process, process.key)
    page.goto(f"{process.url}/streams/day/items?text=onerror")
    page.get_by_role("link", name="evil", exact=True).click()
    page.wait_for_selector(".story li")
    assert EVIL in page.inner_text(".payload")
    assert "owned" not in page.title()


def test_a_reviewer_overrides_by_keyboard_and_the_item_is_revised(
    page: Any, process: Process
) -> None:
    with process.client() as client:
        key = str(client.create_key("Rita", "reviewer")["token"])
        sign_in(page, process, key)
        page.goto(f"{process.url}/streams/day/reviews?kind=disputed")
        page.wait_for_selector("form.judge")
        until(lambda: page.locator("form.judge").count() == 5)
        first = str(page.get_attribute("form.judge", "data-item"))
        verdict = client.item("day", first)["verdict"]
        page.keyboard.press("j")
        page.keyboard.press("2" if verdict == "spam" else "1")
        assert page.locator("form.judge button").first.inner_text() == "Override"
        page.keyboard.press("Enter")
        page.wait_for_selector("text=overridden")
        item = client.item("day", first)
        assert item["verdict"] == item["gold"] != item["exit"]["verdict"] == verdict
        page.keyboard.press("Enter")  # the next one has the focus, and its verdict is confirmed
        page.wait_for_selector("text=confirmed")
        page.goto(f"{process.url}/streams/day/items/{first}")
        page.wait_for_selector(".story li.revised")
        assert "by gold" in page.inner_text(".story")
        done = [e["actor"] for e in client.audit() if e["action"] == "item.review"]
        assert len(done) == 2
        assert all(actor.startswith("Rita") for actor in done)


class Hook:
    """A webhook that notes what it is sent."""

    def __init__(self) -> None:
        self.got: list[dict[str, Any]] = []
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                size = int(self.headers["content-length"])
                hook.got.append(json.loads(self.rfile.read(size)))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


def test_the_day_of_an_operator(page: Any, process: Process) -> None:
    """An alarm is seen, its item found and read, overridden, and the revision told to others."""
    hook = Hook()
    with process.client() as client:
        settings = {**STREAM, "slot_seconds": 0.1, "max_overlap": 1, "panel": PANEL}
        client.create_stream("shift", **settings, alarms={"queue": 2})
        client.add_webhook("shift", hook.url)
        client.add_items("shift", [{"id": f"s{n}", "payload": f"text {n}"} for n in range(4)])
        sign_in(page, process, process.key)
        page.wait_for_selector("#shift a.flag")  # on the live page, once the rules were checked
        page.click("#shift a.flag")
        page.wait_for_selector(".alarms >> text=4 items are open, more than 2")
        client.add_labels("shift", [(f"s{n}", "ann", "spam") for n in range(4)])
        until(lambda: client.insights("shift")["exits"] == 4)
        page.click("nav.tabs >> text=Items")
        page.fill("#text", "text 2")
        page.keyboard.press("Enter")
        page.get_by_role("link", name="s2", exact=True).click()
        page.wait_for_selector(".story li.left")
        page.select_option("form.judge select", "ok")
        page.fill("form.judge input", "a quotation")
        page.click("text=Override")
        page.wait_for_selector("text=overridden")
        page.goto(f"{process.url}/audit?action=item.review&stream=shift")
        assert "a quotation" in page.inner_text("table")

        def told(kind: str) -> list[dict[str, Any]]:
            return [sent["data"] for sent in hook.got if sent["type"] == kind]

        until(lambda: len(told("item.revised")) == 1 and len(told("alarm.raised")) == 1)
        revised = told("item.revised")[0]
        assert (revised["item"], revised["before"], revised["verdict"]) == ("s2", "spam", "ok")
        assert told("alarm.raised")[0]["rule"] == "queue"
        until(lambda: len(told("alarm.cleared")) == 1)
    hook.server.shutdown()
    hook.server.server_close()


def test_gold_from_a_file(page: Any, process: Process, tmp_path: Path) -> None:
    file = tmp_path / "gold.csv"
    file.write_text("item,label\ni10,spam\ni11,what\n")
    sign_in(page, process, process.key)
    page.goto(f"{process.url}/streams/day/reviews")
    page.click("text=Gold from a file")
    page.set_input_files("#file", str(file))
    page.click("#bulk button")
    page.wait_for_selector("#bulk >> text=1 taken, 0 known already, 1 refused")
    with process.client() as client:
        assert client.item("day", "i10")["gold"] == "spam"
