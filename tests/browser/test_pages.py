"""The pages in a real Chromium, used as a person would."""

from __future__ import annotations

from typing import Any

import pytest

from tests.integration.web.harness import Process, until

pytestmark = pytest.mark.browser

#: A red square of ten pixels.
SQUARE = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAoAAAAKCAYAAACNMs+9AAAAFUlEQVR42mNk+M9Qz0AE"
    "YBxVSF+FAAhKDveksOjmAAAAAElFTkSuQmCC"
)
EVIL = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"


def sign_in(page: Any, process: Process, key: str) -> None:
    page.goto(process.url)
    page.fill("#key", key)
    page.keyboard.press("Enter")
    page.wait_for_selector("form.who")


@pytest.fixture(scope="module")
def ann(process: Process) -> str:
    with process.client() as client:
        return str(client.create_key("Ann", "labeler", "ann")["token"])


def test_the_overview_is_live(page: Any, process: Process) -> None:
    page.goto(process.url)
    page.fill("#key", "vk_wrong")
    page.click("button.primary")
    assert "unknown" in page.inner_text(".wrong")
    sign_in(page, process, process.key)
    card = page.locator("section.card", has=page.locator("h2", has_text="images"))
    before = card.locator("[data-figure=queue]").inner_text()
    with process.client() as client:
        client.add_items("images", [{"id": f"live-{n}"} for n in range(3)])
    until(lambda: card.locator("[data-figure=queue]").inner_text() == str(int(before) + 3))
    assert {"ann", "bob"} <= set(card.locator("tbody td:first-child").all_inner_texts())
    page.click("text=Sign out")
    page.wait_for_selector("#key")


def test_a_person_labels_by_keyboard(page: Any, process: Process, ann: str) -> None:
    with process.client() as client:
        payloads = [EVIL, {"text": "a square", "image": SQUARE}, {"other": 1}, "plain"]
        rows = [{"id": f"p{n}", "payload": p, "weight": 100 - n} for n, p in enumerate(payloads)]
        client.add_items("posts", rows)

        def labels(item: str) -> list[tuple[str, str]]:
            found = client.item("posts", item)["labels"]
            return [(label["labeler"], label["said"]) for label in found]

        sign_in(page, process, ann)
        page.select_option("#stream", "posts")
        page.click("text=Begin")
        page.wait_for_selector("#choices button:enabled")
        assert page.inner_text("#payload") == EVIL
        assert page.title() == "posts · venire"
        page.keyboard.press("1")
        page.wait_for_selector("#payload img")
        assert page.evaluate("document.querySelector('#payload img').naturalWidth") == 10
        page.keyboard.press("u")
        until(lambda: page.inner_text("#status") == "taken back")
        assert page.inner_text("#payload") == EVIL
        assert labels("p0") == []
        page.keyboard.press("2")
        page.wait_for_selector("#payload img")
        page.keyboard.press("s")
        page.wait_for_selector("#payload pre")
        page.keyboard.press("1")
        until(lambda: page.inner_text("#payload") == "plain")
        page.keyboard.press("1")
        until(lambda: labels("p3") == [("ann", "spam")])
        assert labels("p0") == [("ann", "ok")]
        assert labels("p1") == []
        assert labels("p2") == [("ann", "spam")]
        until(lambda: page.inner_text("#done") == "3")


def test_leaving_the_page_gives_the_item_back(page: Any, process: Process, ann: str) -> None:
    with process.client() as client:
        client.add_items("posts", [{"id": "left-behind", "payload": "x", "weight": 500}])
        sign_in(page, process, ann)
        page.goto(f"{process.url}/work?stream=posts")
        page.wait_for_selector("#choices button:enabled")
        assert client.insights("posts")["leased_items"] == 1
        page.goto(f"{process.url}/docs")
        until(lambda: client.insights("posts")["leased_items"] == 0)


def test_the_documentation_works_without_the_network(page: Any, process: Process) -> None:
    sign_in(page, process, process.key)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{process.url}/docs")
    page.click("summary:has-text('/next')")
    assert page.is_visible("text=Seconds to wait for news")
    assert all(url.startswith(process.url) for url in asked)
