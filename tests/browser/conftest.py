"""A real browser, where there is one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from tests.integration.server.harness import PANEL, STREAM, Process, serving
from tools.screenshots import find_chromium

CHROMIUM = find_chromium()
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

#: What people do on a page: nothing comes of it before the page's scripts are there.
ACTS = ("check", "click", "dblclick", "fill", "press", "select_option", "set_checked", "uncheck")


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """A server with one stream of text and one of other things."""
    folder: Path = tmp_path_factory.mktemp("serve")
    with serving(f"sqlite:///{folder}/venire.db", folder) as server:
        with server.client(timeout=200) as client:
            for name in ("posts", "images"):
                more = {"slot_seconds": 600, "panel": PANEL, "undo_seconds": 2}
                client.create_stream(name, **{**STREAM, **more})
        yield server


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium, driven by playwright."""
    if CHROMIUM is None:
        pytest.skip("chromium is not installed")
    playwright = pytest.importorskip("playwright.sync_api")
    with pytest.MonkeyPatch.context() as patch, playwright.sync_playwright() as started:
        for act in ACTS:
            for kind in (playwright.Page, playwright.Locator):
                patch.setattr(kind, act, once_loaded(getattr(kind, act)))
        chromium = started.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield chromium
        chromium.close()


def once_loaded(act: Callable[..., Any]) -> Callable[..., Any]:
    """The same once the scripts of a page have run, as on one that has just been loaded again."""

    def acted(where: Any, *args: Any, **named: Any) -> Any:
        getattr(where, "page", where).wait_for_load_state("domcontentloaded")
        return act(where, *args, **named)

    return acted


@pytest.fixture(scope="session")
def check_access(request: pytest.FixtureRequest) -> Callable[[Any, str], None]:
    """Find violations of axe-core's rules on a page, as it is now: at night in light and in dark,
    by day in one of them, which hangs on the page's name."""
    night = request.config.getoption("markexpr") == "slow"
    package = pytest.importorskip("axe_playwright_python")
    source = (Path(package.__file__).parent / "axe.min.js").read_text(encoding="utf-8")

    def check(page: Any, where: str) -> None:
        schemes = ("light", "dark")
        for scheme in schemes if night else (schemes[crc32(where.encode()) % 2],):
            page.emulate_media(color_scheme=scheme)
            page.evaluate(source)  # not as a script of the page, which its policy would refuse
            found = page.evaluate(
                "async () => (await axe.run()).violations.map((v) => [v.id, "
                "v.nodes.map((n) => n.html + ' ' + n.failureSummary)])"
            )
            assert found == [], (where, scheme, found)
        page.emulate_media(color_scheme="light")

    return check


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """A new window without cookies, which must not meet an error."""
    context = browser.new_context(viewport={"width": 1100, "height": 760})
    context.set_default_timeout(120_000)  # to catch a hang only
    opened = context.new_page()
    faults: list[str] = []
    opened.on("pageerror", lambda fault: faults.append(str(fault)))
    opened.on("console", lambda said: faults.append(said.text) if "Refused" in said.text else None)
    yield opened
    context.close()
    assert faults == []
