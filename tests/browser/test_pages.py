"""The pages in a real Chromium, used as a person would."""

from __future__ import annotations

from typing import Any

import pytest

from tests.integration.server.harness import STREAM, Process, until
from venire import Client

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


def begin(page: Any, process: Process, stream: str) -> None:
    page.goto(f"{process.url}/work?stream={stream}")
    ready(page)


def ready(page: Any) -> None:
    """Wait until keys count for the item on the screen."""
    page.wait_for_selector("#work[data-ready]")


def press(page: Any, *keys: str) -> list[str]:
    """Press keys in one breath; the item on the screen and the note after each."""
    found: list[str] = page.evaluate(
        """(keys) => keys.map((key) => {
            const [name, code] = key.split(" ");
            document.dispatchEvent(new KeyboardEvent("keydown", { key: name, code }));
            const text = (id) => document.getElementById(id).textContent;
            const chosen = document.querySelector("#choices .chosen")?.dataset.said ?? "";
            return [text("payload"), chosen, text("note")].filter(Boolean).join(" | ");
        })""",
        list(keys),
    )
    return found


def shows(page: Any, text: str) -> None:
    until(lambda: page.inner_text("#payload") == text)
    ready(page)


def fill(client: Client, stream: str, *payloads: Any, **settings: Any) -> None:
    """A stream of its own, with items `i0`, `i1`, ... that come in this order."""
    quick = {"slot_seconds": 600, "undo_seconds": 2}
    client.create_stream(stream, **{**STREAM, **quick, **settings})
    rows = [{"id": f"i{n}", "payload": p, "weight": 1000 - n} for n, p in enumerate(payloads)]
    client.add_items(stream, rows)


def labels(client: Client, stream: str, item: str) -> list[tuple[str, str]]:
    found = client.item(stream, item)["labels"]
    return [(label["labeler"], label["said"]) for label in found]


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
    row = page.locator("tr#images")
    before = row.locator("[data-figure=queue]").inner_text()
    with process.client() as client:
        client.add_items("images", [{"id": f"live-{n}"} for n in range(3)])
    until(lambda: row.locator("[data-figure=queue]").inner_text() == str(int(before) + 3))
    row.get_by_role("link", name="images").click()
    page.wait_for_selector("text=Labelers")
    page.wait_for_load_state()
    assert {"ann", "bob"} <= set(page.locator("tbody td:first-child").all_inner_texts())
    page.click("text=Sign out")
    page.wait_for_selector("#key")


def test_a_person_labels_by_keyboard(page: Any, process: Process, ann: str) -> None:
    with process.client() as client:
        payloads = [EVIL, {"text": "a square", "image": SQUARE}, {"other": 1}, "plain"]
        rows = [{"id": f"p{n}", "payload": p, "weight": 100 - n} for n, p in enumerate(payloads)]
        client.add_items("posts", rows)
        sign_in(page, process, ann)
        page.select_option("#stream", "posts")
        page.click("text=Start")
        shows(page, EVIL)
        assert page.title() == "posts · venire"
        page.evaluate("""async () => {  // in the page, so that u comes in time on any machine
            const press = (key) => document.dispatchEvent(new KeyboardEvent("keydown", { key }));
            press("1");
            while (document.querySelector("#payload img") === null) {
              await new Promise((resolve) => setTimeout(resolve, 10));
            }
            press("u");
        }""")
        until(lambda: page.inner_text("#note") == "“spam” undone")
        shows(page, EVIL)
        assert labels(client, "posts", "p0") == []
        page.keyboard.press("2")
        page.wait_for_selector("#payload img")
        width = "document.querySelector('#payload img').naturalWidth"
        until(lambda: page.evaluate(width) == 10)
        ready(page)
        page.keyboard.press("s")
        page.wait_for_selector("#payload table")
        ready(page)
        page.keyboard.press("1")
        shows(page, "plain")
        page.keyboard.press("1")
        until(lambda: labels(client, "posts", "p3") == [("ann", "spam")])
        until(lambda: page.inner_text("#done") == "3")
        assert [note["kind"] for note in client.item("posts", "p1")["notes"]] == ["unsure"]
        assert labels(client, "posts", "p0") == [("ann", "ok")]
        assert labels(client, "posts", "p1") == []
        assert labels(client, "posts", "p2") == [("ann", "spam")]


def test_leaving_the_page_gives_the_item_back(page: Any, process: Process, ann: str) -> None:
    with process.client() as client:
        client.add_items("posts", [{"id": "left-behind", "payload": "x", "weight": 500}])
        sign_in(page, process, ann)
        begin(page, process, "posts")
        assert client.insights("posts")["leased_items"] in (1, 2)  # the next one is fetched too
        page.goto(f"{process.url}/docs")
        until(lambda: client.insights("posts")["leased_items"] == 0)


def test_the_documentation_works_without_the_network(page: Any, process: Process) -> None:
    sign_in(page, process, process.key)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{process.url}/docs")
    page.click("summary:has-text('/next')")
    assert page.is_visible("text=Seconds to wait (long poll)")
    assert all(url.startswith(process.url) for url in asked)


def test_undo_takes_back_not_sure_too_and_says_when_it_is_too_late(
    page: Any, process: Process, ann: str
) -> None:
    with process.client() as client:
        fill(client, "undo", "first", "second")
        sign_in(page, process, ann)
        begin(page, process, "undo")
        assert press(page, "u", "s", "u", "2")[::2] == [
            "first | nothing to undo",
            "first | “not sure” undone",
        ]
        until(lambda: labels(client, "undo", "i0") == [("ann", "ok")])
        until(lambda: page.inner_text("#done") == "1")
        shows(page, "second")
        assert press(page, "u") == ["second | too late to undo: the label has been sent"]
        assert client.item("undo", "i0")["notes"] == []


def test_who_may_hold_one_item_sees_what_was_answered_until_the_next(
    page: Any, process: Process, ann: str
) -> None:
    with process.client() as client:
        panel = [{"id": "ann", "competence": 0.8}]
        fill(client, "alone", "first", "second", panel=panel, ahead=0)
        sign_in(page, process, ann)
        begin(page, process, "alone")
        assert press(page, "1", "u", "2") == [
            "first | spam",
            "first | “spam” undone",
            "first | ok",
        ]
        shows(page, "second")
        assert labels(client, "alone", "i0") == [("ann", "ok")]


def test_a_key_pressed_twice_does_not_answer_an_item_that_nobody_saw(
    page: Any, process: Process, ann: str
) -> None:
    with process.client() as client:
        fill(client, "twice", "first", "second")
        sign_in(page, process, ann)
        begin(page, process, "twice")
        page.evaluate("""
            const key = new KeyboardEvent("keydown", { key: "1", code: "Digit1", bubbles: true });
            const payload = document.getElementById("payload");
            new MutationObserver(() => {
              if (payload.textContent === "second") document.dispatchEvent(key);
            }).observe(payload, { childList: true });
        """)
        page.keyboard.press("1")
        until(lambda: labels(client, "twice", "i0") == [("ann", "spam")])
        shows(page, "second")
        assert page.locator("#payload.answered").count() == 0


def test_keys_count_on_keyboards_with_letters_and_digits_elsewhere(
    page: Any, process: Process, ann: str
) -> None:
    with process.client() as client:
        fill(client, "layouts", "first", "second")
        sign_in(page, process, ann)
        begin(page, process, "layouts")
        assert press(page, "é Digit2", "г KeyU", "7 Digit7", "S KeyS")[1:3] == [
            "first | “ok” undone",
            "first | there is no class 7",
        ]
        shows(page, "second")


def test_answers_are_kept_while_the_server_cannot_be_reached(
    page: Any, process: Process, ann: str
) -> None:
    with process.client() as client:
        fill(client, "away", "first", "second", "third")
        sign_in(page, process, ann)
        begin(page, process, "away")
        until(lambda: page.evaluate("queue.length") == 1)  # the second has come
        page.context.set_offline(True)
        page.keyboard.press("2")
        shows(page, "second")
        page.keyboard.press("2")
        until(lambda: "2 not sent yet" in page.inner_text("#unsent"))
        until(lambda: "cannot be reached" in page.inner_text("#status"))
        assert labels(client, "away", "i0") == []
        leave = "window.dispatchEvent(new Event('beforeunload', { cancelable: true }))"
        assert not page.evaluate(leave)
        page.context.set_offline(False)
        until(lambda: labels(client, "away", "i0") == [("ann", "ok")])
        until(lambda: labels(client, "away", "i1") == [("ann", "ok")])
        shows(page, "third")
        until(lambda: page.inner_text("#unsent") == "")
        assert page.evaluate(leave)


def test_answers_and_work_outlive_the_session(page: Any, process: Process, ann: str) -> None:
    with process.client() as client:
        fill(client, "session", "first", "second")
        sign_in(page, process, ann)
        begin(page, process, "session")
        page.context.clear_cookies()
        page.keyboard.press("2")
        until(lambda: "you are signed out" in page.inner_text("#unsent"))
        sign_in(page.context.new_page(), process, ann)
        shows(page, "second")
        until(lambda: labels(client, "session", "i0") == [("ann", "ok")])
        page.context.clear_cookies()
        page.reload()
        page.fill("#key", ann)
        page.keyboard.press("Enter")
        ready(page)
        assert page.url == f"{process.url}/work?stream=session"


def test_a_lease_that_ends_is_told_and_the_answer_still_counts(
    page: Any, process: Process, ann: str
) -> None:
    with process.client() as client:
        fill(client, "slow", "first", lease_floor_seconds=1, lease_ceiling_seconds=2)
        sign_in(page, process, ann)
        begin(page, process, "slow")
        until(lambda: "your answer still counts" in page.inner_text("#note"))
        until(lambda: client.insights("slow")["leased_items"] == 0)
        page.keyboard.press("1")
        until(lambda: labels(client, "slow", "i0") == [("ann", "spam")])
        assert client.insights("slow")["late_labels"] == 0
        assert [one["expired"] for one in client.labelers("slow") if one["id"] == "ann"] >= [1]


def test_a_stream_that_is_paused_or_closed_says_so(page: Any, process: Process, ann: str) -> None:
    with process.client() as client:
        fill(client, "ends", slot_seconds=0.5, max_overlap=1)
        sign_in(page, process, ann)
        page.goto(f"{process.url}/work?stream=ends")
        until(lambda: "nothing to label" in page.inner_text("#status"))
        client.pause("ends")
        page.reload()
        until(lambda: "paused" in page.inner_text("#status"))
        client.resume("ends")
        client.add_items("ends", [{"id": "one", "payload": "one"}])
        shows(page, "one")
        client.close_stream("ends")
        page.keyboard.press("1")
        until(lambda: "thank you" in page.inner_text("#status"))
        assert labels(client, "ends", "one") == [("ann", "spam")]
        assert client.stream("ends")["status"] == "closed"


def test_an_image_that_cannot_be_shown_says_so_and_asks_this_server_nothing(
    page: Any, process: Process, ann: str
) -> None:
    with process.client() as client:
        own = f"{process.url}/v1/streams/pictures/next?labeler=ann"
        images = [{"image": address} for address in (own, "/v1/me", "https://elsewhere.example/a")]
        fill(client, "pictures", *images, "data:image/png;base64,AAAA")
        sign_in(page, process, ann)
        page.goto(f"{process.url}/work?stream=pictures")
        for shown in (own, "/v1/me", "https://elsewhere.example/a", "data:image/png;base64,AAAA"):
            shows(page, f"The image cannot be shown: {shown}")
            page.keyboard.press("s")
        until(lambda: client.insights("pictures")["unsure"] == 4)
        assert client.insights("pictures")["leased_items"] == 0


def test_the_overview_keeps_the_focus_and_comes_back(page: Any, process: Process) -> None:
    page.route("**/live", lambda route: route.fulfill(status=503, body="later"))
    sign_in(page, process, process.key)
    until(lambda: "cannot be reached" in page.inner_text("#connection"))
    until(lambda: page.locator("#overview.stale").count() == 1)
    page.focus("#images a[href='/streams/images']")
    page.unroute("**/live")
    with process.client() as client:
        client.add_items("images", [{"id": "focus"}])
        queue = str(client.insights("images")["open_items"])
    until(lambda: page.inner_text("#connection") == "live")
    until(lambda: page.locator("#overview.stale").count() == 0)
    until(lambda: page.inner_text("#images [data-figure=queue]") == queue)
    assert page.evaluate("document.activeElement.getAttribute('href')") == "/streams/images"


def test_no_page_is_wider_than_a_telephone(page: Any, process: Process) -> None:
    page.set_viewport_size({"width": 390, "height": 760})
    sign_in(page, process, process.key)
    for path in ("/", "/docs", "/work", "/work?stream=posts&labeler=bob", "/nowhere"):
        page.goto(process.url + path)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, path


def test_a_key_that_is_revoked_sees_no_more(page: Any, process: Process) -> None:
    with process.client() as client:
        made = client.create_key("x", "viewer")
        sign_in(page, process, made["token"])
        until(lambda: page.inner_text("#connection") == "live")
        answer = page.request.delete(
            f"{process.url}/v1/keys/{made['key']['id']}",
            headers={"authorization": f"Bearer {process.key}"},
        )
        assert answer.status == 200
        page.wait_for_selector("#key")
        assert "the session has ended, or its key was revoked" in page.inner_text(".wrong")
        assert "Were you invited by a link? Open it again" in page.inner_text("form")


def test_the_pages_live_through_a_server_that_is_killed(
    page: Any, process: Process, ann: str
) -> None:
    with process.client() as client:
        fill(client, "killed", "first", "second")
    sign_in(page, process, ann)
    begin(page, process, "killed")
    watcher = page.context.browser.new_page()
    sign_in(watcher, process, process.key)
    until(lambda: watcher.inner_text("#connection") == "live")
    process.kill()
    page.keyboard.press("1")
    until(lambda: "1 not sent yet" in page.inner_text("#unsent"))
    until(lambda: "cannot be reached" in watcher.inner_text("#connection"))
    process.start()
    shows(page, "second")
    until(lambda: watcher.inner_text("#connection") == "live")
    watcher.close()
    with process.client() as client:
        until(lambda: labels(client, "killed", "i0") == [("ann", "spam")])
        assert labels(client, "killed", "i1") == []
        assert client.insights("killed")["labels"] == 1
