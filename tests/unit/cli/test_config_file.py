"""`venire.toml`: what overrides what, and errors that name the key and the file."""

from __future__ import annotations

from inspect import getsource
from pathlib import Path

import pytest

from venire.cli import COMMANDS, command_of, main
from venire.cli.serve import _settings
from venire.cli.shared.stores import STORE_COMMANDS
from venire.errors import VenireError


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("VENIRE_CONFIG", "VENIRE_PORT", "VENIRE_STORAGE"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def test_option_then_variable_then_file_then_default(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _settings({}).port == 8400
    (folder / "venire.toml").write_text('[serve]\nport = 8501\nlog_format = "json"\nrate = 3.5\n')
    assert (_settings({}).port, _settings({}).log_format, _settings({}).rate) == (8501, "json", 3.5)
    monkeypatch.setenv("VENIRE_PORT", "8502")
    assert _settings({}).port == 8502
    assert _settings({"port": 8503}).port == 8503
    assert _settings({"port": None}).log_format == "json"


def test_the_file_may_be_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "venire.toml").write_text("[serve]\nport = 8501\n")
    (folder / "other.toml").write_text("[serve]\nport = 8504\n")
    (folder / "third.toml").write_text("")
    assert _settings({}, Path("other.toml")).port == 8504
    monkeypatch.setenv("VENIRE_CONFIG", "other.toml")
    assert _settings({}).port == 8504
    assert _settings({}, Path("third.toml")).port == 8400
    with pytest.raises(VenireError, match=r"there is no file none\.toml"):
        _settings({}, Path("none.toml"))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[serve]\nprot = 1", r"unknown setting in \[serve\] of venire.toml 'prot': .*'port'"),
        ("[server]\nport = 1", r"unknown table or key in venire.toml 'server'"),
        (
            "port = 1",
            r"unknown table or key in venire.toml 'port'; .*\[serve\], with settings",
        ),
        ("[serve]\nport = 99999", r"the setting port in venire.toml is 99999: "),
        ("[serve]\nport = [1]", r"the setting port in venire.toml is \[1\]"),
        ("serve = 3", r"venire.toml has serve = 3, expected a table \[serve\]"),
        ("[serve\n", r"venire.toml: this is not TOML: .*line 1"),
    ],
)
def test_errors_name_the_key_and_the_file(folder: Path, text: str, says: str) -> None:
    (folder / "venire.toml").write_text(text)
    with pytest.raises(VenireError, match=says):
        _settings({})


def test_a_wrong_variable_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "venire.toml").write_text("[serve]\nport = 8501")
    monkeypatch.setenv("VENIRE_PORT", "abc")
    with pytest.raises(VenireError, match="the setting port in VENIRE_PORT is 'abc': "):
        _settings({})


def test_a_wrong_option_is_not_blamed_on_the_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "venire.toml").write_text("[serve]\nport = 8501")
    monkeypatch.setenv("VENIRE_PORT", "8502")
    with pytest.raises(VenireError, match="the setting port is 99999"):
        _settings({"port": 99999})


def test_the_commands_of_a_store_use_its_storage(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "venire.toml").write_text('[serve]\nstorage = "memory:file"\n')
    assert main(["keys", "list"]) == 2
    assert "memory:" in capsys.readouterr().err
    monkeypatch.setenv("VENIRE_STORAGE", "nosuch:env")
    assert main(["keys", "list"]) == 2
    assert "nosuch:env" in capsys.readouterr().err
    assert main(["keys", "list", "--storage", "nosuch:option"]) == 2
    assert "nosuch:option" in capsys.readouterr().err
    (folder / "venire.toml").write_text("[serve]\nstorage = 3\n")
    assert main(["keys", "list"]) == 2
    assert "venire.toml has serve.storage = 3, expected the URL" in capsys.readouterr().err


def test_no_command_of_a_store_is_forgotten() -> None:
    found = {
        name
        for name in COMMANDS
        if name != "serve" and "storage: StorageUrl" in getsource(command_of(name))
    }
    assert found == set(STORE_COMMANDS)
