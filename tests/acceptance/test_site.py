"""The documentation site builds without a warning, and its links lead somewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

import venire
from tools.site.navigation import KINDS

ROOT = Path(__file__).parents[2]


def test_every_page_is_in_the_navigation() -> None:
    named = {name for names in KINDS.values() for name in names}
    docs = ROOT / "docs"
    pages = {page.relative_to(docs).with_suffix("").as_posix() for page in docs.rglob("*.md")}
    assert pages - named == {"README"}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "tools.site.build", "--out", str(out / "site")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    return out / "site"


class Anchors(HTMLParser):
    """What a page links to, and what can be linked to on it."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.links, self.ids = set[str](), set[str]()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if given.get("id"):
            self.ids.add(str(given["id"]))
        if tag == "a" and given.get("href"):
            self.links.add(str(given["href"]))


@pytest.mark.slow
def test_every_link_of_the_site_leads_somewhere(site: Path) -> None:
    found = {page: Anchors(page) for page in site.rglob("*.html")}
    broken = []
    for page, anchors in found.items():
        for link in anchors.links:
            if re.match(r"[a-z]+:|#$", link):
                continue
            name, _, anchor = unquote(link).partition("#")
            to = (page.parent / name).resolve() if name else page
            if not to.exists() or (anchor and to in found and anchor not in found[to].ids):
                broken.append(f"{page.relative_to(site)}: {link}")
    assert broken == []


@pytest.mark.slow
def test_nothing_is_loaded_from_another_host(site: Path) -> None:
    loads = re.compile(r'<(?:script|link|img)[^>]+(?:src|href)="(?:https?:)?//[^"]*"')
    pages = {p.name: loads.findall(p.read_text(encoding="utf-8")) for p in site.rglob("*.html")}
    assert {name: found for name, found in pages.items() if found} == {}


@pytest.mark.slow
@pytest.mark.parametrize("name", getattr(venire, "__all__"))  # noqa: B009
def test_every_public_name_has_a_page(site: Path, name: str) -> None:
    pages = (site / "reference" / "library").glob("*.html")
    assert any(f"<h2>{name}<" in page.read_text(encoding="utf-8") for page in pages)
