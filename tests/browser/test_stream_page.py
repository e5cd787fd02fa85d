"""The pages of a stream in a real Chromium: charts, labelers, student, what-if, settings."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.test_pages import sign_in
from tests.integration.server.harness import Process, serving, until

pytestmark = pytest.mark.browser

NAMES = ("ann", "bob", "cat", "dan")
KINDS = {"spam": "buy cheap pills now", "ok": "dear friend, many thanks"}


def send(client: Any, first: int, last: int) -> None:
    """Items with a label of everybody, mostly right."""
    draw = random.Random(first)
    truth = {f"i{n}": draw.choice(list(KINDS)) for n in range(first, last)}
    text = [{"id": i, "payload": {"text": f"{KINDS[k]} {i}"}} for i, k in truth.items()]
    client.add_items("posts", text)
    wrong = {"spam": "ok", "ok": "spam"}
    rows = [(i, m, k if draw.random() < 0.8 else wrong[k]) for i, k in truth.items() for m in NAMES]
    client.add_labels("posts", rows)


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """A server with a stream that has a history, prices, and a student."""
    folder: Path = tmp_path_factory.mktemp("serve")
    with serving(f"sqlite:///{folder}/venire.db", folder) as server:
        with server.client(timeout=200) as client:
            panel = [{"id": name, "price": 0.01} for name in NAMES]
            settings = {"classes": list(KINDS), "panel": panel, "slot_seconds": 0.05}
            client.create_stream("posts", **settings, student={"field": "text"}, min_labels=2)
            for lesson in (1, 2):
                send(client, 100 * lesson, 100 * lesson + 70)
                until(lambda: client.stream("posts")["student"]["version"] >= lesson)  # noqa: B023
        yield server


@pytest.fixture
def overview(page: Any, process: Process) -> Any:
    sign_in(page, process, process.key)
    page.goto(f"{process.url}/streams/posts")
    return page


def drawn(page: Any) -> None:
    """Wait until plotly has drawn every chart."""
    count = page.locator(".drawing").count()
    until(lambda: page.locator(".drawing .scatterlayer").count() >= count)


def test_plotly_draws_every_chart_without_inline_styles(overview: Any, process: Process) -> None:
    drawn(overview)
    titles = overview.locator("figcaption span").all_inner_texts()
    assert {"mix of verdicts", "mix of votes", "items per minute that arrived and left"} <= set(
        titles
    )
    assert {"time to the verdict", "money an item", "agreement with the panel"} <= set(titles)
    assert overview.locator(".drawing > svg").count() == 0  # the server's drawings are replaced
    assert overview.evaluate("document.querySelectorAll('style').length") <= 1
    policy = overview.request.get(f"{process.url}/streams/posts").headers["content-security-policy"]
    assert "script-src 'self'; style-src 'self';" in policy
    assert "unsafe" not in policy


def test_numbers_beside_a_chart_are_not_printed_over_those_below(overview: Any) -> None:
    drawn(overview)
    over = overview.evaluate("""() => [...document.querySelectorAll(".drawing")].filter((plot) => {
      const box = (one) => one.getBoundingClientRect();
      const boxes = (of) => [...plot.querySelectorAll(of)].map(box).filter((one) => one.height);
      const lowest = Math.max(...boxes(".ytick text").map((one) => one.bottom));
      return boxes(".xtick text").some((one) => one.top < lowest - 1);
    }).length""")
    assert over == 0


def test_a_chart_is_read_by_keyboard(overview: Any) -> None:
    drawn(overview)
    chart = overview.get_by_role("img", name="time to the verdict")
    chart.focus()
    overview.keyboard.press("End")
    overview.keyboard.press("ArrowLeft")
    until(lambda: overview.locator(".drawing:focus .hoverlayer text").count() >= 2)
    shown = overview.locator(".drawing:focus .hoverlayer text").all_text_contents()
    assert any("p95" in text for text in shown)
    overview.keyboard.press("Tab")
    until(lambda: overview.locator(".hoverlayer text").count() == 0)


def test_the_colours_follow_the_scheme(overview: Any) -> None:
    drawn(overview)
    colour = "document.querySelector('.drawing .js-line').style.stroke"
    light = overview.evaluate(colour)
    overview.emulate_media(color_scheme="dark")
    until(lambda: overview.evaluate(colour) != light)
    assert len({light, overview.evaluate(colour)}) == 2


def test_without_scripts_the_charts_are_there(browser: Any, process: Process) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    try:
        sign_in(page, process, process.key)
        assert page.inner_text("#connection") == ""  # nothing keeps the overview up to date
        page.goto(f"{process.url}/streams/posts")
        assert page.locator(".drawing > svg polyline").count() >= 8
        assert page.locator(".drawing > svg polygon").count() == 4
        page.goto(f"{process.url}/streams/posts/what-if?policy=fixed-overlap:1")
        assert "labels per item" in page.inner_text("#result table")
    finally:
        context.close()


def test_the_page_is_live(overview: Any, process: Process) -> None:
    drawn(overview)
    exits = overview.locator("[data-figure=exits]")
    before = exits.inner_text()
    with process.client() as client:
        send(client, 1000, 1010)
    until(lambda: exits.inner_text() == str(int(before) + 10))
    assert overview.inner_text("#connection") == "live"
    drawn(overview)


def test_a_heat_map_and_what_each_labeler_brings(overview: Any) -> None:
    overview.select_option("#whose", "bob")
    overview.wait_for_selector("table.heat")
    assert "bob" in overview.get_attribute("[role=region]:has(table.heat)", "aria-label")
    shares = [int(text) for text in overview.locator("table.heat td").all_inner_texts()]
    assert len(shares) == 4
    assert shares[0] + shares[1] == pytest.approx(100, abs=1)
    assert shares[0] > 50 < shares[3]
    overview.click("#panel button")
    overview.wait_for_selector("text=expected to be right", timeout=120_000)


def test_what_if_is_run_beside_what_was_and_can_be_cancelled(page: Any, process: Process) -> None:
    sign_in(page, process, process.key)
    page.goto(f"{process.url}/streams/posts/what-if")
    page.fill("#policy", "fixed-overlap:1")
    page.check("input[value=student]")
    page.keyboard.press("Enter")
    page.wait_for_selector("#result table", timeout=180_000)
    rows = page.locator("#result tbody tr").all_inner_texts()
    assert [row.split("\t")[0] for row in rows][:2] == [
        "right verdicts, expected",
        "labels per item",
    ]
    assert "policy=fixed-overlap%3A1" in page.url
    page.fill("#min_confidence", "3")
    page.evaluate("document.getElementById('plan').noValidate = true")
    page.click("#plan button.primary")
    page.wait_for_selector("#result >> text=less than or equal to 1")
    page.fill("#min_confidence", "")
    page.route("**/what-if?*part=result", lambda route: None)  # an answer that never comes
    page.click("#plan button.primary")
    page.click("#cancel")
    page.wait_for_selector("#running >> text=cancelled")


def test_settings_are_changed_and_faults_are_told_beside_the_field(
    page: Any, process: Process
) -> None:
    sign_in(page, process, process.key)
    page.goto(f"{process.url}/streams/posts/settings")
    page.fill("#set-min_confidence", "2")
    page.click("text=Save")
    page.wait_for_selector("#set-min_confidence-hint.wrong")
    assert page.inner_text("#set-min_confidence-hint") == "Input should be less than or equal to 1"
    assert page.get_attribute("#set-min_confidence", "aria-invalid") == "true"
    assert page.evaluate("document.activeElement.id") == "set-min_confidence"
    page.fill("#set-min_confidence", "0.9")
    page.click("summary:has-text('Alarms')")
    page.fill("#set-alarms-queue", "77")
    page.click("summary:has-text('Money')")
    page.fill("#set-budget-money", "12.5")
    page.click("summary:has-text('What errors cost')")
    page.click(".field:has(#set-costs) summary")
    page.fill("#set-costs", "[oops")
    page.click("text=Save")
    page.wait_for_selector("#set-costs-hint.wrong")
    page.fill("#set-costs", '[{"truth": "spam", "verdict": "ok", "cost": 3}]')
    page.click("text=Save")
    page.wait_for_selector("#said >> text=saved as version 2")
    row = page.locator("#history tbody tr").first.inner_text()
    for said in ("first admin", "min_confidence: 0.9", '"queue": 77', '"money": 12.5', '"cost": 3'):
        assert said in row, said
    with process.client() as client:
        settings = client.stream("posts")["settings"]
    assert (settings["min_confidence"], settings["budget"]["money"]) == (0.9, 12.5)
    assert settings["alarms"]["queue"] == 77
    page.click("summary:has-text('Who labels what')")
    page.fill("#set-policy", "nonsense")
    page.click("text=Save")
    page.wait_for_selector("#set-policy-hint >> text=unknown policy")
