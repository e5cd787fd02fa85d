"""Shell completion: of commands and options."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


def complete(words: str, place: int) -> list[str]:
    env = {**os.environ, "_VENIRE_COMPLETE": "complete_bash"}
    env |= {"COMP_WORDS": words, "COMP_CWORD": str(place)}
    done = subprocess.run(
        [sys.executable, "-m", "venire"], capture_output=True, text=True, env=env, check=False
    )
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "place", "expected"),
    [
        ("venire si", 1, ["simulate"]),
        ("venire re", 1, ["reproduce", "replay"]),
        ("venire simulate --sl", 2, ["--slots"]),
    ],
)
def test_bash_completes(words: str, place: int, expected: list[str]) -> None:
    assert complete(words, place) == expected


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell_can_be_shown(shell: str) -> None:
    command = [sys.executable, "-m", "venire", "--show-completion", shell]
    env = {**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=env)
    assert "_VENIRE_COMPLETE" in done.stdout
