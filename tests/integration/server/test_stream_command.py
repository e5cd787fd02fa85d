"""`venire stream`: a stream from a file, created and changed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.server.harness import Process, serving
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


def test_yaml_and_json_do_as_well(
    process: Process, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (
        "name: yaml-posts\nclasses: [spam, ok]\nundo_seconds: 5\ndescriptions:\n  spam: It sells.\n"
    )
    (tmp_path / "posts.yaml").write_text(text)
    settings = {"name": "yaml-posts", "classes": ["spam", "ok"], "undo_seconds": 5}
    (tmp_path / "posts.json").write_text(json.dumps(settings))
    for name, done in (("posts.yaml", "created"), ("posts.json", "unchanged")):
        command = ["stream", str(tmp_path / name), "--url", process.url, "--key", process.key]
        assert main(command) == 0
        assert capsys.readouterr().out == f"yaml-posts: {done}\n"
    (tmp_path / "posts.yaml").write_text("- spam\n")
    assert main(["stream", str(tmp_path / "posts.yaml"), "--key", "k"]) == 2
    assert "got a list, expected settings such as name: posts" in capsys.readouterr().err


def test_a_file_is_sent_and_sent_again(
    process: Process, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with process.client() as client:
        client.create_stream("sent", classes=["spam", "ok"])
    file = tmp_path / "posts.csv"
    rows = [f"{n};Grüße {n};{n + 1}" for n in range(1200)]
    rows[3] = "3;much;a lot"  # no number
    rows[7] = "7;too heavy;-5"  # refused by the server
    file.write_bytes("\r\n".join(["post_id;text;weight", *rows, ""]).encode("latin-1"))
    command = ["send", "sent", str(file), "--url", process.url, "--key", process.key]
    assert main(command) == 2
    said = capsys.readouterr()
    assert said.out == "1,198 items sent\n"
    assert "line 5: weight is 'a lot', expected a number" in said.err
    assert "line 9: weight: Input should be greater than 0" in said.err
    assert "2 rows were refused" in said.err
    rows[3], rows[7] = "3;much;1", "7;light;1"
    file.write_bytes("\r\n".join(["post_id;text;weight", *rows, ""]).encode("latin-1"))
    assert main([*command, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"created": 2, "exists": 1198, "refused": []}
    with process.client() as client:
        assert client.stream("sent")["open_items"] == 1200
        found = client.item("sent", "12")
        assert found["payload"] == {"text": "Grüße 12"}
    assert main(["send", "nowhere", str(file), "--url", process.url, "--key", process.key]) == 2
    assert "nowhere" in capsys.readouterr().err
