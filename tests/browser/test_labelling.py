"""The labelling page in a real Chromium: what people see, and a whole day of one of them."""

from __future__ import annotations

import os
import struct
import zlib
from base64 import b64encode
from collections.abc import Callable
from typing import Any

import pytest

from tests.browser.test_pages import ann, begin, fill, labels, press, ready, shows, sign_in
from tests.integration.server.harness import STREAM, Process, until
from tests.marks import nightly
from venire import Client

pytestmark = pytest.mark.browser

__all__ = ["ann"]

Check = Callable[[Any, str], None]

PHONE = {"width": 390, "height": 760}
DESKTOP = {"width": 1280, "height": 860}

EVIL = (
    "**bold** <img src=x onerror=\"document.title='owned'\"> "
    "<script>document.title='owned'</script> [x](javascript:document.title='owned')"
)


def png(width: int, height: int) -> str:
    """A picture of this size, as a data URL."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    shades = [
        bytes((x * 255 // width + shift) % 256 for x in range(width)) for shift in range(0, 256, 16)
    ]
    rows = b"".join(b"\0" + shades[y // 7 % 16] for y in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    made = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head)
    made += chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return f"data:image/png;base64,{b64encode(made).decode()}"


def tone() -> str:
    """A tenth of a second of sound, as a data URL."""
    samples = bytes(128 + (40 if n // 20 % 2 else -40) for n in range(800))
    head = b"RIFF" + struct.pack("<I", 36 + len(samples)) + b"WAVEfmt "
    head += struct.pack("<IHHIIHH", 16, 1, 1, 8000, 8000, 1, 8) + b"data"
    return "data:audio/wav;base64," + b64encode(head + struct.pack("<I", 800) + samples).decode()


LONG = "The quick brown fox jumps over the lazy dog. " * 12
CODE = (
    "Use **sorted**:\n\n```python\ndef top(xs):\n    return sorted(xs)[-3:]\n```\n\n- quick\n- it"
)
#: Of each layout: the payload, and the stream's layout.
LAYOUTS: dict[str, tuple[Any, list[dict[str, Any]]]] = {
    "text": ("Buy cheap watches now!\n\nOffer ends today.", []),
    "prompt-response": ({"prompt": "What is 2 + 2?", "response": LONG}, []),
    "two-responses": ({"prompt": "Name a fox.", "response_a": LONG, "response_b": "Reynard."}, []),
    "conversation": ([{"role": "user", "content": "Hi"}, {"role": "bot", "content": "Hello!"}], []),
    "tall-image": ({"image": png(300, 2400)}, []),
    "wide-image": ({"image": png(1600, 500), "text": "a receipt"}, []),
    "tiny-image": ({"image": png(8, 8)}, []),
    "audio": ({"audio": tone(), "text": "what was said"}, []),
    "table": ({"name": "Ann", "age": 41, "address": {"city": "Ulm"}, "note": LONG}, []),
    "markdown": ({"answer": EVIL + "\n\n- one\n- two\n\n| a | b |\n|-|-|\n| 1 | 2 |"},
                 [{"field": "answer", "show": "markdown"}]),
    "pair-in-markdown": ({"prompt": "Sort `xs`.", "response_a": CODE, "response_b": LONG}, []),
    "highlight": ({"text": "Call +49 170 1234 today", "spans": [[5, 17]], "from": {"url": "x.de"}},
                  [{"field": "text", "highlight": "spans", "title": "Post"}, {"field": "from"}]),
    "right-to-left": ({"prompt": "ما هي عاصمة فرنسا؟", "response": "عاصمة فرنسا هي باريس."}, []),
}  # fmt: skip
GUIDELINES = (
    "## How to label\n\nSay **spam** if it *sells* something. See [the list](https://example.org)."
)
ABOUT = {"spam": "It sells something.", "ok": "Anything else, `hello` too."}


def picture(page: Any, name: str) -> None:
    """Keep a screenshot, if a folder for them is named."""
    folder = os.environ.get("VENIRE_SHOTS")
    if folder:
        page.screenshot(path=f"{folder}/{name}.png")


def open_at(page: Any, process: Process, key: str, stream: str) -> None:
    sign_in(page, process, key)
    begin(page, process, stream)


#: Each is like another, as far as the page is concerned.
ALIKE = {"two-responses", "markdown", "tall-image", "tiny-image", "conversation"}


@pytest.mark.parametrize("name", [nightly(name) if name in ALIKE else name for name in LAYOUTS])
def test_a_layout_is_seen_on_desktop_and_phone(
    page: Any, process: Process, ann: str, check_access: Check, name: str
) -> None:
    payload, layout = LAYOUTS[name]
    stream = f"layout-{name}"
    with process.client() as client:
        about = {"guidelines": GUIDELINES, "descriptions": ABOUT, "layout": layout}
        fill(client, stream, payload, **about)
    page.set_viewport_size(DESKTOP)
    open_at(page, process, ann, stream)
    for where, size in (("desktop", DESKTOP), ("phone", PHONE)):
        page.set_viewport_size(size)
        page.reload()
        ready(page)
        check_access(page, f"{name} {where}")
        picture(page, f"{name}-{where}")
        assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
    assert page.title() == f"{stream} · venire"  # nothing of the payload was executed
    assert (
        page.locator("#payload script, #payload img[onerror], #payload a[href^=java]").count() == 0
    )


def test_the_shape_of_a_payload_decides_how_it_is_drawn(
    page: Any, process: Process, ann: str
) -> None:
    with process.client() as client:
        names = ("prompt-response", "two-responses", "table", "markdown", "highlight")
        fill(client, "shapes", *(LAYOUTS[name][0] for name in names[:3]))
        open_at(page, process, ann, "shapes")
        titles = page.locator("#payload h2")
        assert titles.all_inner_texts() == ["Prompt", "Response"]
        page.keyboard.press("1")
        page.wait_for_selector("#payload .row")
        assert titles.all_inner_texts() == ["Prompt", "Response A", "Response B"]
        left, right = (page.locator("#payload .row .part").nth(n).bounding_box() for n in (0, 1))
        assert left["y"] == right["y"]
        assert left["x"] + left["width"] <= right["x"]
        ready(page)
        page.keyboard.press("1")
        page.wait_for_selector("#payload table")
        assert page.locator("#payload th").all_inner_texts() == [
            "name",
            "age",
            "address.city",
            "note",
        ]


def test_a_tall_image_is_as_wide_as_its_place_and_can_be_zoomed(
    page: Any, process: Process, ann: str
) -> None:
    with process.client() as client:
        fill(client, "tall", {"image": png(300, 2400)}, {"image": png(1600, 500)})
        open_at(page, process, ann, "tall")
        until(lambda: page.get_attribute("figure", "data-zoom") == "wide")
        width = "document.querySelector('#payload img').getBoundingClientRect().width"
        place = page.locator("#payload").bounding_box()["width"]
        assert page.evaluate(width) > 0.9 * place  # it was 57 pixels wide
        page.keyboard.press("z")
        assert page.evaluate(width) == 300
        page.keyboard.press("z")
        until(lambda: page.evaluate(width) < 100)
        page.keyboard.press("1")
        until(lambda: page.evaluate(width) > 0.9 * place)
        assert page.get_attribute("figure", "data-zoom") == "whole"


def test_code_keeps_its_lines_and_scrolls_in_its_place(
    page: Any, process: Process, ann: str
) -> None:
    line = "if all(n % d for d in range(2, n)): primes.append(n)  # and so on"
    fenced = f"Test each:\n\n```python\nfor n in range(2, limit):\n    {line}\n```\n"
    with process.client() as client:
        fill(client, "code", {"prompt": "?", "response_a": fenced, "response_b": fenced})
        fill(client, "plain-code", line, layout=[{"show": "code"}])
    page.set_viewport_size({"width": 360, "height": 640})
    sign_in(page, process, ann)
    for stream, lines in (("code", 2), ("plain-code", 1)):
        begin(page, process, stream)
        tall, wide, seen = page.evaluate(
            "(([p]) => { const s = getComputedStyle(p), r = document.createRange(); "
            "r.selectNodeContents(p); return [r.getBoundingClientRect().height / "
            "parseFloat(s.fontSize), p.scrollWidth, p.clientWidth]; })"
            "(document.querySelectorAll('#payload pre'))"
        )
        assert tall < 2 * lines  # a line that is wrapped looks like another program
        assert wide > seen
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        page.focus("#payload pre")
        page.keyboard.press("ArrowRight")
        until(lambda: page.evaluate("document.activeElement.scrollLeft") > 0)


def test_audio_plays_with_a_key(page: Any, process: Process, ann: str) -> None:
    with process.client() as client:
        fill(client, "sound", {"audio": tone()})
    open_at(page, process, ann, "sound")
    until(lambda: page.evaluate("document.querySelector('#payload audio').readyState >= 2"))
    page.keyboard.press("p")
    until(lambda: page.evaluate("document.querySelector('audio').ended"))


def test_guidelines_are_at_hand_and_new_ones_come_with_the_next_load(
    page: Any, process: Process, ann: str
) -> None:
    with process.client() as client:
        fill(client, "guided", "first", guidelines=GUIDELINES + EVIL, descriptions=ABOUT)
        open_at(page, process, ann, "guided")
        guide = page.locator("#guidelines")
        assert guide.locator("h2").inner_text() == "How to label"
        assert guide.locator("dt").all_inner_texts() == ["spam", "ok"]
        assert guide.locator("script, img, a[href^=java]").count() == 0
        assert page.locator("#choices button").first.get_attribute("title") == ABOUT["spam"]
        page.keyboard.press("g")
        until(lambda: guide.get_attribute("open") is None)
        client.change_stream("guided", guidelines="Only **this**.")
        page.reload()
        assert "Only this." in page.inner_text("#guidelines")
        versions = client.settings_history("guided") if hasattr(client, "settings_history") else []
        assert all("guidelines" in version["settings"] for version in versions)


def test_thirty_classes_are_found_by_typing(
    page: Any, process: Process, ann: str, check_access: Check
) -> None:
    names = [f"topic {n}" for n in range(20)] + ["Politics", "Police", "Économie", "sport", "arts",
             "music", "film", "food", "travel", "health"]  # fmt: skip
    with process.client() as client:
        fill(client, "many", "a", "b", "c", "d", classes=names, undo_seconds=600)
        open_at(page, process, ann, "many")
        check_access(page, "many")
        picture(page, "many-classes")
        page.keyboard.type("poli")
        assert page.locator("#choices button").all_inner_texts() == ["1 Politics", "2 Police"]
        page.keyboard.press("2")
        shows(page, "b")
        page.keyboard.type("econ")
        page.keyboard.press("Enter")
        shows(page, "c")
        page.keyboard.type("topic 13")
        page.keyboard.press("Enter")
        shows(page, "d")
        page.keyboard.type("zzz")
        page.keyboard.press("Enter")
        assert "no class" in page.inner_text("#note")
        page.keyboard.press("Escape")
        page.keyboard.press("Shift+U")
        shows(page, "c")
        page.keyboard.press("3")
        shows(page, "d")
        page.goto(f"{process.url}/docs")  # leaving sends them
        fill(client, "many-images", {"image": png(300, 200)}, classes=names)
        begin(page, process, "many-images")
        assert page.inner_text("figure button") == "⇧z zoom: whole"  # a z alone is for the filter
        page.keyboard.press("Shift+Z")
        assert page.inner_text("figure button") == "⇧z zoom: wide"
        until(lambda: said(client, "many", 3) == ["Police", "Économie", "topic 2"])


def test_not_sure_frees_the_item_for_others_and_is_counted(
    page: Any, process: Process, ann: str
) -> None:
    with process.client() as client:
        fill(client, "unsure", "first", "second")
        open_at(page, process, ann, "unsure")
        page.keyboard.press("0")
        shows(page, "second")
        until(lambda: client.insights("unsure")["unsure"] == 1)
        (mine,) = (one for one in client.labelers("unsure") if one["id"] == "ann")
        assert (mine["unsure"], mine["labels"]) == (1, 0)
        assert client.next("unsure", "bob", wait=0).item == "i0"  # type: ignore[union-attr]
        page.reload()
        shows(page, "second")  # not the first again


def test_a_comment_and_a_flag_reach_those_who_run_the_stream(
    page: Any, process: Process, ann: str, check_access: Check
) -> None:
    with process.client() as client:
        fill(client, "noted", "first", "second")
        open_at(page, process, ann, "noted")
        page.keyboard.press("c")
        page.wait_for_selector("#talk[open]")
        check_access(page, "dialog")
        picture(page, "comment")
        assert page.inner_text("#talk .primary") == "Send Ctrl+↵"
        page.keyboard.type("is this 1 or 2?")  # digits are no answers here
        page.keyboard.press("Control+Enter")
        until(lambda: len(client.notes("noted")) == 1)
        page.keyboard.press("f")
        page.wait_for_selector("#talk[open]")
        page.click("#talk button[value=send]")
        until(lambda: len(client.notes("noted")) == 2)
        page.keyboard.press("c")
        page.keyboard.type("never mind")
        page.keyboard.press("Escape")
        found = [(note["item"], note["kind"], note["text"]) for note in client.notes("noted")]
        assert found == [("i0", "comment", "is this 1 or 2?"), ("i0", "flag", "")]
        assert page.inner_text("#payload") == "first"


def test_practice_gives_feedback_and_no_label(
    page: Any, process: Process, ann: str, check_access: Check
) -> None:
    practice = [
        {"payload": {"text": "Buy now"}, "answer": "spam", "why": "It **sells**."},
        {"payload": {"text": "Hello"}, "answer": "ok"},
    ]
    with process.client() as client:
        fill(client, "school", "first", practice=practice)
        sign_in(page, process, ann)
        page.goto(f"{process.url}/work?stream=school")
        shows(page, "Buy now")
        page.keyboard.press("1")
        until(lambda: "Right." in page.inner_text("#feedback"))
        assert page.locator("#feedback strong").inner_text() == "sells"
        check_access(page, "practice")
        picture(page, "practice")
        page.keyboard.press("Enter")
        shows(page, "Hello")
        page.keyboard.press("1")
        until(lambda: "Not quite: it is “ok”" in page.inner_text("#feedback"))
        page.keyboard.press("Enter")
        shows(page, "first")
        assert "1 of 2 right" in page.inner_text("#note")
        page.reload()
        shows(page, "first")  # once is enough
        assert client.insights("school")["labels"] == 0


def test_when_nothing_is_left_the_page_says_so_with_what_was_done(
    page: Any, process: Process, check_access: Check
) -> None:
    names = [f"topic {n}" for n in range(12)]
    with process.client() as client:
        fill(client, "last", "one", "two", "three", classes=names, undo_seconds=600, show_left=True)
        token = client.create_key(" ", "labeler", "dan")["token"]
        open_at(page, process, token, "last")
        assert page.inner_text("form.who").split() == ["dan", "·", "labeler", "Sign", "out"]
        until(lambda: "3 left" in page.inner_text("#left"))
        press_all(page, "11")
        shows(page, "three")
        assert (page.inner_text("#done"), page.inner_text("#left").strip()) == ("2", "· 1 left")
        page.keyboard.type("topic 3")
        page.keyboard.press("Enter")
        until(lambda: "Nothing is left for you" in page.inner_text("#status"))
        assert "You have given 3 labels today." in page.inner_text("#status")
        assert (page.inner_text("#payload"), page.input_value("#filter")) == ("", "")
        assert page.inner_text("#left").strip() == "· 0 left"
        assert said(client, "last", 3) == []  # all can be undone, and count
        check_access(page, "nothing left")
        picture(page, "nothing-left")
        page.keyboard.press("Shift+U")
        shows(page, "three")
        assert (page.inner_text("#done"), page.inner_text("#left").strip()) == ("2", "· 1 left")
        page.keyboard.press("2")
        until(lambda: "3 labels today" in page.inner_text("#status"))
        page.reload()
        until(lambda: "3 labels today" in page.inner_text("#status"))
        client.add_items("last", [{"id": "i9", "payload": "more"}])
        shows(page, "more")


def test_on_a_phone_the_item_has_the_room_and_keys_are_not_shown(
    browser: Any, process: Process, ann: str
) -> None:
    with process.client() as client:
        fill(client, "phone", LAYOUTS["pair-in-markdown"][0], guidelines=GUIDELINES)
    window = browser.new_context(viewport={"width": 360, "height": 740}, has_touch=True)
    page = window.new_page()
    open_at(page, process, ann, "phone")
    assert page.locator("#work kbd:visible").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    top, buttons = (page.locator(at).bounding_box() for at in ("#payload", ".answers"))
    assert top["y"] < 0.2 * 740
    assert buttons["height"] < 0.15 * 740
    picture(page, "phone")
    window.close()


def press_all(page: Any, keys: str) -> dict[str, str]:
    """Press a key for each item that appears; what was answered, by the text of the item."""
    answered = {}
    for key in keys:
        ready(page)
        before = page.inner_text("#payload")
        page.keyboard.press(key)
        answered[before] = STREAM["classes"][int(key) - 1]
        until(lambda: page.inner_text("#payload") != before)  # noqa: B023 - called at once
    return answered


def said(client: Client, stream: str, count: int) -> list[str]:
    return [label for n in range(count) for _, label in labels(client, stream, f"i{n}")]


def test_the_last_ten_answers_can_be_changed_without_waiting(
    page: Any, process: Process, ann: str, check_access: Check
) -> None:
    with process.client() as client:
        fill(client, "ten", *(f"item {n}" for n in range(14)), undo_seconds=600)
        open_at(page, process, ann, "ten")
        press_all(page, "1" * 12)
        until(lambda: said(client, "ten", 14) == ["spam", "spam"])  # the others can be undone
        page.click("#recent summary")
        check_access(page, "last answers")
        picture(page, "last-answers")
        changes = page.locator("#answers button", has_text="change")
        assert changes.count() == 10
        changes.last.click()  # the oldest of them
        shows(page, "item 2")
        page.keyboard.press("2")
        shows(page, "item 12")
        for _ in range(3):
            page.keyboard.press("u")
        shows(page, "item 10")
        press_all(page, "222")
        assert page.inner_text("#payload") == "item 12"
        page.goto(f"{process.url}/docs")  # leaving sends them
        until(lambda: len(said(client, "ten", 14)) == 12)
        assert said(client, "ten", 12) == ["spam", "spam", "ok", *["spam"] * 7, "ok", "ok"]


def test_what_a_page_could_not_send_when_it_died_is_sent_by_the_next(
    page: Any, process: Process, ann: str
) -> None:
    with process.client() as client:
        fill(client, "died", "first", "second", "third", undo_seconds=600)
        open_at(page, process, ann, "died")
        press_all(page, "12")
        page.evaluate("() => { window.fetch = () => Promise.reject(new Error('died')); }")
        page.reload()
        until(lambda: said(client, "died", 3) == ["spam", "ok"])
        until(lambda: page.inner_text("#done") == "2")
        shows(page, "third")
        assert labels(client, "died", "i2") == []


def test_an_item_given_again_just_before_its_label_arrived_is_not_shown_again(
    page: Any, process: Process, ann: str
) -> None:
    """A lease expires while the server is slow: it answers a request for work, then the label."""
    with process.client() as client:
        fill(client, "again", "first", "second", "third")
        sign_in(page, process, ann)
        with page.expect_response("**/next?*") as given:
            begin(page, process, "again")
        first = given.value.text()
        until(lambda: client.insights("again")["leased_items"] == 2)
        asked: list[Any] = []
        page.route("**/next?*", lambda route: asked.append(route))
        page.keyboard.press("1")
        until(lambda: '"state":"sent"' in page.evaluate("Object.values(sessionStorage).join()"))
        asked[0].fulfill(body=first, content_type="application/json")
        page.unroute("**/next?*")
        shows(page, "second")
        page.keyboard.press("2")
        shows(page, "third")
        until(lambda: said(client, "again", 3) == ["spam", "ok"])


def test_the_whole_day_of_a_labeler(page: Any, process: Process, ann: str) -> None:
    """Forty items, undo, a comment, a reload, and a lease that is lost.

    On a slow machine more leases expire and items may come in another order: each must have the
    label that was given while it was on the screen.
    """
    with process.client() as client:
        more = {"lease_floor_seconds": 3, "lease_ceiling_seconds": 3, "guidelines": GUIDELINES}
        fill(client, "day", *(f"post {n}" for n in range(44)), **more)
        open_at(page, process, ann, "day")
        answered = press_all(page, "12" * 4 + "1")
        ready(page)
        undone = page.inner_text("#payload")
        assert press(page, "2", "u")[1] == f"{undone} | “ok” undone"
        page.keyboard.press("c")
        page.keyboard.type("both would do")
        page.keyboard.press("Control+Enter")
        answered |= press_all(page, "1" + "12" * 5)
        assert answered[undone] == "spam"
        page.reload()
        ready(page)
        until(lambda: page.inner_text("#done") == "20")
        assert page.inner_text("#payload") not in answered
        assert page.locator("#answers li").count() == 10
        until(lambda: "your answer still counts" in page.inner_text("#note"))  # nobody was there
        answered |= press_all(page, "12" * 10)
        assert len(answered) == 40  # none was shown twice
        until(lambda: page.inner_text("#done") == "40")

        def kept() -> dict[str, str]:
            found = {f"post {n}": labels(client, "day", f"i{n}") for n in range(44)}
            return {post: said for post, given in found.items() for _, said in given}

        until(lambda: kept() == answered)  # counted when given, sent soon after
        assert [(note["text"], note["item"]) for note in client.notes("day")] == [
            ("both would do", undone.replace("post ", "i"))
        ]
        page.goto(f"{process.url}/work?stream=day")
        until(lambda: page.inner_text("#done") == "40")  # of the day, by the server
