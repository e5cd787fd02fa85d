"""The pictures of the pages in docs/images, taken of the demo's console: sh scripts/screenshots.

`venire demo --serve` is started, a while of labelling passes, Chromium takes the pictures, and
Pillow makes them small: 128 colours each, at most 150 kB. A folder may be given instead of
docs/images.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

import venire
from venire import Client

__all__ = ["main"]

ROOT: Final = Path(__file__).parent.parent

#: Seconds of labelling before the pictures are taken, and bytes of the largest picture.
LABELLING: Final = 45.0
LARGEST: Final = 150_000

#: What the demo prints when its console is there.
_CONSOLE: Final = re.compile(r"^The console: (http://[^/]+)(/\S+)$")
_KEY: Final = re.compile(r"^Admin key: +(\S+)$")


class Shot(NamedTuple):
    """A picture: its name, the page, what must be there first, light or dark, and its size."""

    name: str
    path: str
    there: str = "h1"
    scheme: str = "light"
    width: int = 1100
    height: int = 760


def shots(item: str) -> list[Shot]:
    """The pictures; `item` is the one whose story is shown.

    >>> [shot.name for shot in shots("digit-0007")][:3]
    ['home', 'stream', 'stream-top']
    """
    work = "/work?stream=digits&labeler=you"
    return [
        Shot("home", "/", "table.streams", height=420),
        Shot("stream", "/streams/digits", height=4000),
        Shot("stream-top", "/streams/digits", height=860),
        Shot("items", "/streams/digits/items?max_confidence=0.9", "table.items"),
        Shot("item", f"/streams/digits/items/{item}", ".story li.left", height=1500),
        Shot("reviews-dark", "/streams/digits/reviews", ".review", scheme="dark", height=840),
        Shot("labelling", work, "#work[data-ready]"),
        Shot("labelling-phone", work, "#work[data-ready]", "dark", 390, 760),
    ]


def find_chromium() -> str | None:
    """The path of Chromium, first the one without windows, which takes a third of the work."""
    names = ("chromium-headless-shell", "chromium", "chromium-browser")
    return next(filter(None, map(shutil.which, names)), None)


def main(arguments: list[str]) -> None:
    """Take all pictures."""
    folder = Path(arguments[0]) if arguments else ROOT / "docs" / "images"
    folder.mkdir(parents=True, exist_ok=True)
    chromium = find_chromium()
    if chromium is None:
        raise SystemExit("error: no chromium found; install it, as scripts/test does")
    with _demo() as (url, link, key), sync_playwright() as started:
        time.sleep(LABELLING)
        browser = started.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-gpu"]
        )
        cookies = _signed_in(browser, url + link)
        for shot in shots(_telling_item(url, key)):
            image = _small(_taken(browser, url, cookies, shot))
            (folder / f"{shot.name}.png").write_bytes(image)
            print(f"{shot.name}.png: {len(image):,} bytes")
            if len(image) > LARGEST:
                raise SystemExit(f"error: {shot.name}.png is larger than {LARGEST:,} bytes")


@contextmanager
def _demo() -> Iterator[tuple[str, str, str]]:
    """The demo's console: its address, the link that signs in, and the admin key."""
    command = [sys.executable, "-m", "venire", "demo", "--serve", "--no-browser"]
    env = {**os.environ, "PYTHONPATH": str(Path(venire.__file__).parent.parent)}
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen(command, cwd=folder, env=env, stdout=subprocess.PIPE, text=True) as demo,
    ):
        try:
            assert demo.stdout is not None
            found: list[str] = []
            for line in demo.stdout:
                print(line, end="", flush=True)
                for pattern in (_CONSOLE, _KEY):
                    if told := pattern.match(line.rstrip("\n")):
                        found += told.groups()
                if len(found) == 3:
                    break
            if len(found) < 3:
                raise SystemExit("error: the demo did not start")
            url, link, key = found
            yield url, link, key
        finally:
            demo.send_signal(signal.SIGINT)
            demo.wait(60)


def _signed_in(browser: Browser, link: str) -> Any:
    context = browser.new_context()
    page = context.new_page()
    page.goto(link)
    page.wait_for_selector("form.who")
    cookies = context.cookies()
    context.close()
    return cookies


def _telling_item(url: str, key: str) -> str:
    """An item that has left after many labels, which did not agree."""
    with Client(url, key) as client:
        rows = client.find_items("digits", status="left", max_confidence=0.97, limit=200)["items"]
        return str(max(rows, key=lambda row: row["labels"])["id"])


def _taken(browser: Browser, url: str, cookies: Any, shot: Shot) -> bytes:
    """A picture of a page, as high as the page at most."""
    scheme: Any = shot.scheme
    context = browser.new_context(
        viewport={"width": shot.width, "height": shot.height}, color_scheme=scheme
    )
    context.add_cookies(cookies)
    page = context.new_page()
    page.goto(url + shot.path)
    page.wait_for_selector(shot.there, timeout=120_000)
    page.wait_for_timeout(1500)  # charts and images are drawn
    high = page.evaluate("document.querySelector('main').getBoundingClientRect().bottom + 24")
    clip: Any = {"x": 0, "y": 0, "width": shot.width, "height": min(shot.height, int(high))}
    taken = page.screenshot(clip=clip)
    context.close()
    return taken


def _small(picture: bytes) -> bytes:
    """The same picture in 128 colours."""
    file = io.BytesIO()
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    image.quantize(128, dither=Image.Dither.NONE).save(file, "PNG", optimize=True)
    return file.getvalue()


if __name__ == "__main__":
    main(sys.argv[1:])
