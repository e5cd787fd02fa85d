"""The check of a release tries every extra."""

from __future__ import annotations

import tomllib
from pathlib import Path

from tools.release_check import EXTRAS

ROOT = Path(__file__).parents[3]


def test_every_extra_is_tried() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert set(EXTRAS) == {"none", *project["optional-dependencies"]} - {"dev"}
