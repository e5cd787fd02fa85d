"""Each recipe of docs/architecture.md is a patch that touches few files, applies, and works.

`NAME.patch` changes a copy of `src` and `docs`; `NAME.use` is Python that uses what it adds, in a
process of its own. When the code around a patch moves, make the change again by hand and save
`git diff -- src docs` in its place.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
RECIPES = sorted(path.stem for path in HERE.glob("*.patch"))

#: How many files a recipe may touch; five if it is not named here.
MOST = {"event": 4}


@pytest.mark.parametrize("name", RECIPES)
def test_it_touches_few_files_and_the_page_names_them(name: str) -> None:
    patch = (HERE / f"{name}.patch").read_text(encoding="utf-8")
    touched = re.findall(r"(?m)^\+\+\+ b/(\S+)$", patch)
    assert 0 < len(touched) <= MOST.get(name, 5)
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert f"../tests/recipes/{name}.patch" in page


def copy(source: str, target: str) -> None:
    """With what Python and Numba have compiled: it is true where the recipe changes nothing."""
    with suppress(FileNotFoundError):  # while it is compiled, for another test
        shutil.copy2(source, target)


@pytest.mark.parametrize("name", RECIPES)
def test_it_applies_and_works(name: str, tmp_path: Path) -> None:
    for folder in ("src", "docs"):
        unwanted = shutil.ignore_patterns("*.png", "*.lock")
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=unwanted, copy_function=copy)
    apply = ["git", "apply", "--recount", "-C1", str(HERE / f"{name}.patch")]
    alone = os.environ | {"GIT_CEILING_DIRECTORIES": str(tmp_path.parent)}
    subprocess.run(apply, cwd=tmp_path, env=alone, check=True)
    environment = os.environ | {"PYTHONPATH": str(tmp_path / "src")}
    used = subprocess.run(
        [sys.executable, str(HERE / f"{name}.use")],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert used.returncode == 0, used.stderr
