"""The version is written once: the package, its wheel and the changelog agree."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from email.parser import Parser
from importlib import metadata
from pathlib import Path
from zipfile import ZipFile

import pytest

import venire

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> ZipFile:
    folder = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (path,) = folder.iterdir()
    return ZipFile(path)


def test_the_installed_package_has_the_version() -> None:
    assert metadata.version("venire") == venire.__version__


def test_the_wheel_has_the_version(wheel: ZipFile) -> None:
    (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    assert Parser().parsestr(wheel.read(name).decode())["Version"] == venire.__version__


def test_the_wheel_has_every_file_of_the_package(wheel: ZipFile) -> None:
    package = ROOT / "src" / "venire"
    kept = {path for path in package.rglob("*") if path.is_file() and path.suffix != ".pyc"}
    wanted = {f"venire/{path.relative_to(package)}" for path in kept}
    wanted = {name for name in wanted if "__pycache__" not in name}
    assert wanted <= set(wheel.namelist())
    assert "venire/py.typed" in wanted


def test_the_latest_version_of_the_changelog_is_this_one() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    headings = re.findall(r"^## \[(.+?)\](?: - (\d{4}-\d\d-\d\d))?$", text, re.MULTILINE)
    assert headings[0] == ("Unreleased", "")
    version, date = headings[1]
    assert version == venire.__version__
    assert date, "a version has a date"


def test_the_citation_is_of_this_version() -> None:
    text = (ROOT / "CITATION.cff").read_text()
    said = dict(re.findall(r'^([a-z-]+): "?([^"\n>]+)"?$', text, re.MULTILINE))
    assert said["version"] == venire.__version__
    heading = f"## [{said['version']}] - {said['date-released']}"
    assert heading in (ROOT / "CHANGELOG.md").read_text()
    assert said["license"] == "Apache-2.0"


def test_the_wheel_says_its_licence_and_links(wheel: ZipFile) -> None:
    (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    said = Parser().parsestr(wheel.read(name).decode())
    assert said["License-Expression"] == "Apache-2.0"
    assert said.get_all("License-File") == ["LICENSE"]
    assert not [kind for kind in said.get_all("Classifier", []) if kind.startswith("License")]
    assert said.get_all("Project-URL") == ["Paper, https://arxiv.org/abs/2112.01576"]


def test_two_builds_are_equal(tmp_path: Path) -> None:
    built = []
    for name in ("one", "two"):
        build = [sys.executable, "-m", "hatchling", "build", "-d", str(tmp_path / name)]
        env = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000"}
        subprocess.run(build, cwd=ROOT, check=True, capture_output=True, env=env)
        built.append({path.name: path.read_bytes() for path in (tmp_path / name).iterdir()})
    assert built[0] == built[1]
    assert len(built[0]) == 2
