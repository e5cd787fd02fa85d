"""An archive is whole or is refused, and a store is not used before all of one is in it."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.marks import examples, nightly
from tests.store.battery import everything
from tests.store.store import MemoryStorage
from tests.stored import play
from venire.cli import main
from venire.errors import FileError, StoreDown, StoreError
from venire.server.store import (
    Change,
    Insert,
    SegmentRow,
    StreamRow,
    open_storage,
)
from venire.server.store.history.files import remove_files
from venire.server.store.maintenance.archive import read_archive, write_archive
from venire.server.store.maintenance.verify import verify

OLD = Path(__file__).parent.parent.parent.parent / "data" / "archive-1.ndjson"


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    storage = MemoryStorage()
    play(storage)
    target = tmp_path_factory.mktemp("archive") / "all.ndjson"
    write_archive(storage, target)
    return target


def _refused(lines: list[bytes], folder: Path, words: str) -> None:
    """The command says so, and leaves a store that can still be restored into."""
    broken, url = folder / "broken.ndjson", f"sqlite:///{folder}/new.db"
    broken.write_bytes(b"".join(lines))
    with pytest.raises(FileError, match=words):
        read_archive(MemoryStorage(), broken)
    assert main(["backup", "--storage", url, "--restore", str(broken)]) == 2
    with open_storage(url) as storage:
        assert storage.streams() == []


def test_half_of_an_archive_is_refused(archive: Path, tmp_path: Path) -> None:
    lines = archive.read_bytes().splitlines(keepends=True)
    _refused(lines[: len(lines) // 2], tmp_path, "rows without an end")
    _refused(lines[:-1], tmp_path, "it was cut off, use another copy")
    _refused([*lines[:-2], lines[-2][:20]], tmp_path, f"line {len(lines) - 1}: it was cut off here")
    _refused([*lines[:5], *lines[6:]], tmp_path, "its end says")
    _refused([*lines[:5], lines[6], lines[5], *lines[7:]], tmp_path, "SHA-256")
    _refused([*lines, lines[5]], tmp_path, f"line {len(lines) + 1}: there are lines after its end")
    _refused([*lines[:5], b'["folded", 1]\n', *lines[5:]], tmp_path, "line 6.*a known table")
    _refused([], tmp_path, "not an archive of venire")
    _refused([b'{"venire":"store","format":9}\n', *lines[1:]], tmp_path, "expected at most 2")


@pytest.mark.parametrize(
    "row",
    [["streams", "..", 0.0], ["streams", "a/b", 0.0], ["streams", "/etc", 0.0]]
    + [
        ["segments", "posts", 1, 9.0, 0, 4, 2.0, 6, 1, 0, 3, name, "abc"]
        for name in ("../../x", "..", "/etc")
    ],
)
def test_a_forged_archive_names_no_files_outside_of_its_folder(
    tmp_path: Path, row: list[object]
) -> None:
    lines = [{"venire": "store", "format": 2}, ["streams", "posts", 0.0], row]
    lines = lines if row[0] == "segments" else [lines[0], row]
    text = "".join(json.dumps(line) + "\n" for line in lines).encode()
    counts: dict[str, int] = {}
    for line in lines[1:]:
        counts[str(line[0])] = counts.get(str(line[0]), 0) + 1  # type: ignore[index]
    end = {"rows": counts, "sha256": hashlib.sha256(text).hexdigest()}
    _refused(
        [text, json.dumps(end).encode() + b"\n"], tmp_path, "got the name .*, expected letters"
    )


def test_a_forged_store_has_no_files_removed_outside_of_its_folder(tmp_path: Path) -> None:
    (tmp_path / "archive" / "posts").mkdir(parents=True)
    (tmp_path / "kept").mkdir()
    storage = MemoryStorage()
    segment = SegmentRow(
        stream="posts",
        n=1,
        at=9.0,
        first_event=0,
        next_event=4,
        ended_at=2.0,
        slot=6,
        exits=1,
        revisions=0,
        notes=3,
        name="../../kept",
        digest="abc",
    )
    storage.write([Insert([StreamRow(name="posts", created_at=0.0)]), Insert([segment])])
    with pytest.raises(StoreError, match="forged or is damaged"):
        remove_files(storage, "posts", tmp_path / "archive")
    assert (tmp_path / "kept").is_dir()


@settings(examples(night=60, day=20), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7), cut=st.booleans())
def test_a_flipped_bit_or_a_cut_anywhere_is_found_before_anything_is_written(
    archive: Path, tmp_path: Path, place: float, bit: int, cut: bool
) -> None:
    whole = archive.read_bytes()
    at = int(place * (len(whole) - 1))
    changed = whole[:at] if cut else whole[:at] + bytes([whole[at] ^ 1 << bit]) + whole[at + 1 :]
    (tmp_path / "changed.ndjson").write_bytes(changed)
    storage = MemoryStorage()
    with pytest.raises(FileError):
        read_archive(storage, tmp_path / "changed.ndjson")
    assert storage.streams() == []
    assert storage.meta("restoring") is None


def test_an_archive_of_an_earlier_version_is_restored_with_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"sqlite:///{tmp_path}/new.db"
    with pytest.warns(UserWarning, match="earlier version.* compare the 151 rows"):
        assert read_archive(MemoryStorage(), OLD) == 151
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert main(["backup", "--storage", url, "--restore", str(OLD)]) == 0
    assert "warning: " in capsys.readouterr().err
    with open_storage(url) as storage:
        assert verify(storage, "posts").ok
        assert storage.keys()[0].id == "key_1"
        assert [row.status for row in storage.deliveries("wh_1")] == ["done", "dead", "pending"]


RESTORE_AND_DIE = """
import os, signal, sys
from pathlib import Path
from venire.server.store import Insert, open_storage
from venire.server.store.maintenance.archive import read_archive

storage = open_storage(sys.argv[1])
write = storage.write

def dying(changes):
    write(changes)
    if isinstance(changes[0], Insert):
        os.kill(os.getpid(), signal.SIGKILL)

storage.write = dying
read_archive(storage, Path(sys.argv[2]))
"""


@pytest.mark.parametrize("kind", ["sqlite", nightly("postgres")])
def test_a_store_whose_restore_was_killed_is_refused(
    archive: Path, new_url: Callable[[str], str], kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    url = new_url(kind)
    command = [sys.executable, "-c", RESTORE_AND_DIE, url, str(archive)]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    for owner in (True, False):
        with pytest.raises(StoreError, match=r"is incomplete.* restore again"):
            open_storage(url, owner)
    for verb in (["verify"], ["backup", "--restore", str(archive)]):
        assert main([*verb, "--storage", url]) == 2
        assert "the restore of all.ndjson is not finished" in capsys.readouterr().err
    command = [sys.executable, "-m", "venire", "serve", "--port", "0", "--storage", url]
    served = subprocess.run(command, capture_output=True, text=True, check=False)
    assert served.returncode == 2
    assert "the restore of all.ndjson is not finished" in served.stderr


def test_a_store_that_fails_while_it_is_restored_is_refused(archive: Path, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/new.db"
    with open_storage(url) as storage:
        write, left = storage.write, [6]

        def full(changes: list[Change]) -> None:
            left[0] -= 1
            if not left[0]:
                raise StoreDown("the disk is full")
            write(changes)

        storage.write = full  # type: ignore[method-assign, assignment]
        with pytest.raises(StoreDown):
            read_archive(storage, archive)
    with pytest.raises(StoreError, match=r"the restore of all\.ndjson is not finished"):
        open_storage(url)


@pytest.mark.parametrize("wrong", ["mistyped.ndjson", "."])
def test_a_name_that_is_no_file_leaves_the_store_free_for_the_right_one(
    archive: Path, tmp_path: Path, wrong: str
) -> None:
    url = f"sqlite:///{tmp_path}/new.db"
    with open_storage(url) as storage, pytest.raises(FileError, match="cannot be read"):
        read_archive(storage, tmp_path / wrong)
    with open_storage(url) as storage:
        assert read_archive(storage, archive) > 0


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_what_comes_through_a_pipe_is_checked_at_its_end(archive: Path, tmp_path: Path) -> None:
    pipe, whole = tmp_path / "pipe", archive.read_bytes()
    os.mkfifo(pipe)
    for sent, fine in ((whole, True), (whole[: whole.rindex(b'{"rows"')], False)):
        sender = threading.Thread(target=pipe.write_bytes, args=(sent,))
        sender.start()
        storage = MemoryStorage()
        if fine:
            read_archive(storage, pipe)
        else:
            with pytest.raises(FileError, match="cut off"):
                read_archive(storage, pipe)
        sender.join()
        assert storage.meta("restoring") == ("" if fine else "pipe")


def test_the_end_says_what_is_in_it(archive: Path, tmp_path: Path) -> None:
    *_, last = archive.read_text().splitlines()
    end = json.loads(last)
    assert end["rows"]["items"] == 23
    copy = Path(shutil.copy(archive, tmp_path / "copy.ndjson"))
    one, other = MemoryStorage(), MemoryStorage()
    rows = read_archive(one, copy)
    assert rows == sum(end["rows"].values())
    assert write_archive(one, copy) == rows
    read_archive(other, copy)
    assert everything(one, "posts") == everything(other, "posts")
    assert copy.read_bytes() == archive.read_bytes()
