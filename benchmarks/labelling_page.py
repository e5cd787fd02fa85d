"""How long the labelling page takes from a key to the next item, in Chromium.

    python -m benchmarks.labelling_page --items 100

A stream with the default settings, one person on the panel, a server of its own over loopback. The
page is answered as soon as it accepts a key; measured is the time from the key to the moment at
which another item has been drawn, on the clock of the browser.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from tests.browser.conftest import FLAGS
from tests.integration.server.harness import serving

ANSWER = """async () => {
  const work = document.getElementById("work"), payload = document.getElementById("payload");
  while (!("ready" in work.dataset)) await new Promise((done) => setTimeout(done, 5));
  const before = payload.textContent, began = performance.now();
  document.dispatchEvent(new KeyboardEvent("keydown", { key: "1", code: "Digit1" }));
  const same = () => payload.textContent === before || payload.classList.contains("answered");
  while (same()) await new Promise(requestAnimationFrame);
  return performance.now() - began;
}"""


def measure(items: int, delay: float) -> tuple[list[float], float]:
    """Milliseconds from key to next item, and seconds for all of them."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    with (
        tempfile.TemporaryDirectory() as name,
        sync_playwright() as started,
        serving(f"sqlite:///{name}/venire.db", Path(name)) as server,
    ):
        with server.client(timeout=200) as client:
            client.create_stream("posts", classes=["spam", "ok"], panel=[{"id": "ann"}])
            rows = [{"id": f"i{n}", "payload": f"text {n}"} for n in range(items + 20)]
            client.add_items("posts", rows)
            key = client.create_key("Ann", "labeler", "ann")["token"]
        browser = started.chromium.launch(executable_path=chromium, args=FLAGS)
        page = browser.new_page()
        page.goto(server.url)
        page.fill("#key", key)
        page.keyboard.press("Enter")
        page.wait_for_selector("form.who")
        page.goto(f"{server.url}/work?stream=posts")
        page.wait_for_selector("#work[data-ready]")
        if delay:
            slow_down(page, delay)
        began = time.perf_counter()
        found = [float(page.evaluate(ANSWER)) for _ in range(items)]
        took = time.perf_counter() - began
        browser.close()
        return found, took


def slow_down(page: Any, delay: float) -> None:
    """Add a delay to every request, as a network would."""
    session = page.context.new_cdp_session(page)
    session.send("Network.enable")
    limits = {"offline": False, "latency": delay, "downloadThroughput": -1, "uploadThroughput": -1}
    session.send("Network.emulateNetworkConditions", limits)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=100)
    parser.add_argument("--delay", type=float, default=0.0, help="of the network, in milliseconds")
    given = parser.parse_args()
    found, took = measure(given.items, given.delay)
    p50, p95, worst = np.quantile(found, [0.5, 0.95, 1.0])
    print(f"{given.items} items in {took:.1f} s, delay {given.delay:g} ms: key to next item "
          f"p50 {p50:.0f} ms, p95 {p95:.0f} ms, at most {worst:.0f} ms")  # fmt: skip


if __name__ == "__main__":
    main()
