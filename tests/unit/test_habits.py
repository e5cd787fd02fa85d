"""What runs before a commit and on every push is what the scripts run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent


def commands(path: str) -> set[str]:
    """The tools that a file runs from .venv, with what tells two runs of one tool apart."""
    text = (ROOT / path).read_text()
    found = re.findall(r"\.venv/bin/(python -m \S+|ruff \w+|[\w-]+)", text)
    return {name for name in found if not name.startswith("pip")}


def test_the_hooks_run_what_the_check_runs() -> None:
    assert commands(".pre-commit-config.yaml") == commands("scripts/check")
    assert len(commands("scripts/check")) >= 6


def test_the_hooks_check_the_types_of_the_same_folders() -> None:
    script = (ROOT / "scripts/check").read_text()
    named = re.search(r'typed="(.*)"\nfor folder in (.*); do', script)
    assert named is not None
    hooks = (ROOT / ".pre-commit-config.yaml").read_text()
    assert f"mypy --strict {named[1]} {named[2]}\n" in hooks


def test_the_workflow_runs_on_every_python_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    mark = "Programming Language :: Python :: 3."
    known = [c.rpartition(" ")[2] for c in project["classifiers"] if c.startswith(mark)]
    workflow = (ROOT / ".github/workflows/ci.yml").read_text()
    (matrix,) = re.findall(r"python: \[(.*)\]", workflow)
    assert re.findall(r'"([\d.]+)"', matrix) == known
    assert "- run: .ci/run\n" in workflow


CHECK = """\
#!/bin/sh
echo "a fault that a check names"
echo >begun
sleep 5
"""
PYTHON = """\
#!/bin/sh
until [ -e begun ]; do sleep 0.01; done
"""


def run_tests(folder: Path, check: str, python: str) -> tuple[int, str]:
    """`scripts/test` with others in place of scripts/check and Python: exit code and stderr."""
    (folder / "scripts").mkdir()
    shutil.copy(ROOT / "scripts/test", folder / "scripts")
    env = 'cd "$(dirname "$0")/.."\npython=./python\nuse_env() { :; }\nfind_browser() { :; }\n'
    (folder / "scripts/_env").write_text(env)
    (folder / "scripts/check").write_text(check)
    (folder / "python").write_text(PYTHON + python)
    (folder / "python").chmod(0o755)
    names = os.environ | {"TMPDIR": str(folder)}
    ask = ["sh", str(folder / "scripts/test")]
    done = subprocess.run(ask, capture_output=True, text=True, check=False, env=names)
    assert not list(folder.glob("tmp.*"))
    return done.returncode, done.stderr


@pytest.mark.parametrize("failed", [0, 3])
def test_the_checks_are_shown_when_the_tests_cannot_begin(failed: int, tmp_path: Path) -> None:
    check = CHECK.replace("sleep 5", f"exit {failed}")
    code, shown = run_tests(tmp_path, check, "echo Traceback >&2\nexit 7\n")
    assert code == (failed or 7)
    assert "Traceback" in shown
    assert shown.count("a fault that a check names\n") == 1


def test_the_checks_are_shown_as_far_as_they_came_when_the_tests_are_stopped(
    tmp_path: Path,
) -> None:
    code, shown = run_tests(tmp_path, CHECK, "kill -TERM $PPID\n")
    assert code == 130
    assert shown.count("a fault that a check names\n") == 1


def test_what_the_commands_write_by_default_is_ignored(tmp_path: Path) -> None:
    """So that `scripts/serve` and the others leave nothing untracked in a clone."""
    written = ["venire.db", "venire.db-wal", "venire.db-shm", "venire.db.lock"]
    written += ["venire-demo/demo.png", "venire-compare/points.sqlite", "venire-reproduce/x"]
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    shutil.copy(ROOT / ".gitignore", tmp_path)
    ask = ["git", "check-ignore", *written]
    done = subprocess.run(ask, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout.split() == written
