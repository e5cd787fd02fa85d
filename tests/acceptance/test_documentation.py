"""Documentation cannot drift: examples, commands and the map of the paper are checked."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from venire.cli import COMMANDS

ROOT = Path(__file__).parent.parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_prints_what_lies_beside_it(example: Path) -> None:
    done = subprocess.run([sys.executable, example], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout == example.with_suffix(".out").read_text()


@pytest.mark.parametrize("verb", COMMANDS)
def test_the_readme_shows_every_command(verb: str) -> None:
    assert f"venire {verb}" in (ROOT / "README.md").read_text()


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
        try:
            home = import_module(f"venire.{path}")
        except ModuleNotFoundError:
            package, owner = path.rsplit(".", 1)
            home = getattr(import_module(f"venire.{package}"), owner)
    assert hasattr(home, attribute)
