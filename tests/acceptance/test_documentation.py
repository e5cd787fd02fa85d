"""Documentation cannot drift: examples, commands and the map of the paper are checked."""

from __future__ import annotations

import re
import runpy
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

from tests.marks import nightly
from tools import layers
from venire.cli import COMMANDS

ROOT = Path(__file__).parent.parent.parent
SOURCE = ROOT / "src" / "venire"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@pytest.mark.parametrize(
    "example",
    [nightly(path) if path.stem in ("compare", "label_batch") else path for path in EXAMPLES],
    ids=lambda path: path.stem,
)
def test_an_example_prints_what_lies_beside_it(
    example: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runpy.run_path(str(example), run_name="__main__")
    said = capsys.readouterr()
    assert said.err == ""
    assert said.out == example.with_suffix(".out").read_text()


@pytest.mark.parametrize("verb", COMMANDS)
def test_the_documentation_shows_every_command(verb: str) -> None:
    assert f"venire {verb}" in (ROOT / "docs" / "commands.md").read_text()


def test_the_readme_fits_on_two_screens() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 100


def mapped() -> list[str]:
    text = (ROOT / "docs" / "paper-map.md").read_text()
    cells = [line.split("|")[2] for line in text.splitlines() if line.startswith("|")]
    return sorted({name for cell in cells for name in re.findall(r"`([\w.]+\.[\w.]+)`", cell)})


@pytest.mark.parametrize("name", mapped())
def test_what_the_map_of_the_paper_names_exists(name: str) -> None:
    """`module.function`, or `Class.attribute` of a public class."""
    path, attribute = name.rsplit(".", 1)
    if path[0].isupper():
        home: object = getattr(import_module("venire"), path)
    else:
        path = path if path.startswith("venire_research.") else f"venire.{path}"
        try:
            home = import_module(path)
        except ModuleNotFoundError:
            package, owner = path.rsplit(".", 1)
            home = getattr(import_module(package), owner)
    assert hasattr(home, attribute)


def links(page: Path) -> list[str]:
    """Where the links of a page lead, but for those to other sites."""
    found = re.findall(r"\]\(([^)\s]+)\)", page.read_text())
    return [link for link in found if not re.match(r"[a-z]+:", link)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_link_leads_somewhere(page: Path) -> None:
    lost = [link for link in links(page) if not (page.parent / link.partition("#")[0]).exists()]
    assert not lost


def test_the_architecture_names_every_folder() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    folders = [
        path.parent for pattern in ("*", "*/*") for path in SOURCE.glob(f"{pattern}/__init__.py")
    ]
    policies = SOURCE / "scheduling" / "policies"
    named = {
        (ROOT / "docs" / link).resolve() for link in re.findall(r"^\| \[.*?\]\((.*?)\)", text, re.M)
    }
    assert {path for path in folders if policies not in path.parents} <= named


def test_the_architecture_shows_the_layers_of_the_linter() -> None:
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    layers = re.findall(r"\w+", " ".join(config["contracts"][0]["layers"]))
    there = [
        name for name in layers if (SOURCE / name).exists() or (SOURCE / f"{name}.py").exists()
    ]
    picture = section("architecture.md", "The layers")
    assert {name for name in there if not re.search(rf"\b{name}\b", picture)} == set()


def test_the_picture_of_the_layers_is_that_of_the_imports() -> None:
    page = layers.PAGE.read_text(encoding="utf-8")
    assert layers.replaced(page) == page, "run python -m tools.layers"


def section(page: str, title: str) -> str:
    """The text under the heading that begins with this."""
    text = (ROOT / "docs" / page).read_text()
    return text.partition(f"\n## {title}")[2].partition("\n## ")[0]


@pytest.mark.parametrize("walk", ["Walk 1", "Walk 2", "Walk 3", "Walk 4"])
def test_a_newcomer_reaches_every_hop_of_a_walk_in_two_clicks(walk: str) -> None:
    assert "docs/architecture.md" in links(ROOT / "README.md")
    assert "architecture.md" in links(ROOT / "docs" / "README.md")
    steps = re.split(r"^\d\. ", section("architecture.md", walk), flags=re.M)[1:]
    assert len(steps) >= 5
    assert [step for step in steps if "](../src/venire/" not in step and "`" not in step] == []
    assert sum("](../src/venire/" in step for step in steps) >= len(steps) - 1


def rows_of_the_map() -> list[str]:
    lines = (ROOT / "docs" / "paper-map.md").read_text().splitlines()
    return [line for line in lines if line.startswith("|")][2:]


@pytest.mark.parametrize("row", rows_of_the_map(), ids=lambda row: row.split("|")[1].strip())
def test_a_newcomer_reaches_every_equation_in_two_clicks(row: str) -> None:
    assert "docs/paper-map.md" in links(ROOT / "README.md")
    assert "paper-map.md" in links(ROOT / "docs" / "README.md")
    assert any(f"]({home}" in row for home in ("../src/venire/", "../research/", "errata.md"))
    for name, link in re.findall(r"\[`[\w.]+?(\w+)`\]\((.*?)\)", row):
        assert re.search(rf"\b{name}\b", (ROOT / "docs" / link).read_text()), name


@pytest.mark.parametrize("page", sorted((ROOT / "docs").rglob("*.md")), ids=lambda page: page.stem)
def test_the_index_lists_every_page(page: Path) -> None:
    name = page.relative_to(ROOT / "docs").as_posix()
    assert name == "README.md" or name in links(ROOT / "docs" / "README.md")


@pytest.mark.parametrize("page", sorted((ROOT / "docs").rglob("*.md")), ids=lambda page: page.stem)
def test_a_page_says_whom_it_is_for(page: Path) -> None:
    _, _, text = page.read_text().partition("\n\n")
    assert re.match(r"For \w+", text)
