import csv
import math
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from venire import Assignment, Exit, FileError, Verdict
from venire.files import assignments_output, check_targets, exits_output, write_outputs
from venire.model import ExitReason

ASSIGNMENTS = [
    Assignment(0, "a", "ann", 0.1 + 0.2),
    Assignment(0, 'q"uo,te', "bob\nsmith", math.nan),
    Assignment(7, "é", "ann", 5e-324),
]
EXITS = [
    Exit("a", 0, 3, 2, Verdict("spam", 1 / 3), ExitReason.NO_GAIN),
    Exit("b", 1, 1, 0, Verdict(None, 0.0), ExitReason.DROPPED),
    Exit("c", 1, 1, 1, Verdict(2, 0.9), ExitReason.OVERLAP),
]


def rows(path: Path) -> list[list[str]]:
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def test_assignments_round_trip(tmp_path: Path) -> None:
    write_outputs([assignments_output(tmp_path / "a.csv", ASSIGNMENTS)])
    header, *body = rows(tmp_path / "a.csv")
    assert header == ["slot", "item", "labeler", "gain"]
    read = [Assignment(int(s), i, m, float(g) if g else math.nan) for s, i, m, g in body]
    assert repr(read) == repr(ASSIGNMENTS)


def test_exits_round_trip(tmp_path: Path) -> None:
    write_outputs([exits_output(tmp_path / "e.csv", EXITS)])
    header, *body = rows(tmp_path / "e.csv")
    assert header == ["item", "arrival", "exit", "labels", "verdict", "confidence", "reason"]
    assert body[0] == ["a", "0", "3", "2", "spam", repr(1 / 3), "no_gain"]
    assert body[1] == ["b", "1", "1", "0", "", "0.0", "dropped"]
    assert body[2][4] == "2"


def fails_after_one() -> Iterator[Assignment]:
    yield ASSIGNMENTS[0]
    raise KeyboardInterrupt


def test_an_interrupted_write_leaves_every_file_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("before")
    outputs = [
        exits_output(tmp_path / "e.csv", EXITS),
        assignments_output(tmp_path / "a.csv", fails_after_one()),
    ]
    with pytest.raises(KeyboardInterrupt):
        write_outputs(outputs)
    assert (tmp_path / "a.csv").read_text() == "before"
    assert os.listdir(tmp_path) == ["a.csv"]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real.csv").write_text("before")
    (tmp_path / "link.csv").symlink_to("real.csv")
    write_outputs([exits_output(tmp_path / "link.csv", EXITS)])
    assert (tmp_path / "link.csv").is_symlink()
    assert len(rows(tmp_path / "real.csv")) == 4


def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_outputs([exits_output(pipe, EXITS[:1])])
        assert os.read(reader, 4096).decode().splitlines()[1].startswith("a,0,3,2,spam,")
    finally:
        os.close(reader)
    assert pipe.is_fifo()


def test_a_full_disk_is_said_in_words() -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    with pytest.raises(FileError, match="cannot be written \\(no space left on device\\)"):
        write_outputs([exits_output("/dev/full", EXITS)])


def test_targets_are_checked_beforehand(tmp_path: Path) -> None:
    source, target = tmp_path / "items.csv", tmp_path / "out.csv"
    source.write_text("")
    check_targets([target], [source])
    check_targets([Path(os.devnull), Path(os.devnull)])
    for targets, fault in [
        ([tmp_path], "it is a folder"),
        ([tmp_path / "no" / "out.csv"], "there is no folder .*no: make it first"),
        ([source / "out.csv"], "there is no folder"),
        ([target, tmp_path / "." / "out.csv"], "another file of this command"),
        ([source], "another file of this command"),
    ]:
        with pytest.raises(FileError, match=fault):
            check_targets(targets, [source])


def test_a_read_only_folder_is_found_beforehand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(FileError, match="is read-only"):
        check_targets([tmp_path / "out.csv"])
