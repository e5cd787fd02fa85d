"""`venire stream`: a stream from a file, created and changed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.web.harness import Process, serving
from venire.cli import main

SETTINGS = """
name = "posts"
classes = ["spam", "ok"]
guidelines_file = "guide.md"
undo_seconds = 5

[descriptions]
spam = "It sells something."

[[layout]]
field = "text"
show = "markdown"

[[practice]]
payload = { text = "Buy now" }
answer = "spam"
"""


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    folder = tmp_path_factory.mktemp("serve")
    with serving(f"sqlite:///{folder}/venire.db", folder) as server:
        yield server


def test_a_stream_is_created_changed_and_left_alone(
    process: Process, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, guide = tmp_path / "posts.toml", tmp_path / "guide.md"
    file.write_text(SETTINGS)
    guide.write_text("Look **twice**.")
    command = ["stream", str(file), "--url", process.url, "--key", process.key, "--json"]

    def run() -> list[object]:
        assert main(command) == 0
        return list(json.loads(capsys.readouterr().out).values())

    assert run() == ["posts", "created", []]
    assert run() == ["posts", "unchanged", []]
    guide.write_text("Look *once*.")
    assert run() == ["posts", "changed", ["guidelines"]]
    with process.client() as client:
        settings = client.stream("posts")["settings"]
        assert (settings["guidelines"], settings["undo_seconds"]) == ("Look *once*.", 5)
        assert len(client.settings_history("posts")) == 2
    file.write_text(SETTINGS.replace('answer = "spam"', 'answer = "eggs"'))
    assert main(command) == 2
    assert "'eggs'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("name = 5", "expected the name"),
        ("name = ", "not TOML"),
        ('name = "a"\nguidelines = ""\nguidelines_file = "x"', "expected one of them"),
        ('name = "a"\nguidelines_file = "x"', "cannot be read"),
    ],
)
def test_a_file_that_is_wrong_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, says: str
) -> None:
    (tmp_path / "a.toml").write_text(text)
    assert main(["stream", str(tmp_path / "a.toml"), "--key", "vk_x"]) == 2
    assert says in capsys.readouterr().err
