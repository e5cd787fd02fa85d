"""verify, export, backup and keys, on a store that a server holds open."""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.store.battery_history import everything
from tests.store.store import MemoryStorage
from tests.stored import play
from venire.cli import main
from venire.server.store import (
    AuditRow,
    DeleteStream,
    ErasePayload,
    Insert,
    MarkDeleted,
    PurgeStream,
    Storage,
    StreamRow,
    open_storage,
)

Run = Callable[..., Any]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Storage]:
    """A store with a stream, in use."""
    with open_storage(f"sqlite:///{tmp_path}/venire.db") as storage:
        play(storage)
        yield storage


@pytest.fixture
def run(store: Storage, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a verb on the store; what it printed, read as JSON if it was told to."""

    def command(*args: object, code: int = 0) -> Any:
        words = [str(arg) for arg in args]
        assert main([*words, "--storage", store.url]) == code
        said = capsys.readouterr()
        if code == 2:
            return said.err
        return json.loads(said.out) if "--json" in args else said.out

    return command


def test_verify(store: Storage, run: Run) -> None:
    assert run("verify").startswith("posts: 69 events, 23 items, 21 labels, 15 exits")
    [found] = run("verify", "--json", "--stream", "posts")
    assert found["ok"]
    assert found["differences"] == []
    store._writing.execute("UPDATE labels SET said = 'x' WHERE labeler = 'ann'")  # type: ignore[attr-defined]
    assert "DIFFERENT" in run("verify", "--full", code=1)
    [found] = run("verify", "--json", "--full", code=1)
    assert len(found["differences"]) > 1
    assert "unknown stream 'post': did you mean 'posts'?" in run(
        "verify", "--stream", "post", code=2
    )


def test_verify_goes_on_where_it_was(store: Storage, run: Run, tmp_path: Path) -> None:
    last = store.snapshot_numbers("posts")[-1]
    [found] = run("verify", "--json")
    assert (found["start"], found["events"]) == (0, 69)
    assert f"from event {last} on: what was before was right earlier" in run("verify")
    [found] = run("verify", "--json")
    assert (found["start"], found["events"], found["ok"]) == (last, 69, True)
    assert "from event" not in run("verify", "--full")
    run("backup", "--to", tmp_path / "copy.db")
    with open_storage(f"sqlite:///{tmp_path}/copy.db") as copy:
        assert copy.meta("verified:posts") is None, "a copy has not been checked"


def test_verify_sees_whether_what_was_deleted_is_gone(
    store: Storage, run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def line(action: str, stream: str, subject: str | None = None) -> Insert:
        return Insert(
            [
                AuditRow(
                    n=0,
                    at=1.8e9,
                    actor="me (key_1)",
                    key="key_1",
                    action=action,
                    stream=stream,
                    subject=subject,
                )
            ]
        )

    store.write([line("stream.delete", "old"), line("item.erase", "posts", "item-0-0")])
    said = run("verify", code=1)
    assert "the payload of item 'item-0-0' is there, though it was erased" in said
    assert "old: deleted 2027-01-15T08:00:00+00:00 by me (key_1): nothing of it is left" in said
    store.write([Insert([StreamRow(name="old", created_at=1.0)]), MarkDeleted("old", 2.0)])
    found = run("verify", "--json", code=1)
    assert [each["ok"] for each in found] == [False, False], "the deletion is not finished"
    store.write([ErasePayload("posts", "item-0-0"), PurgeStream("old", 9), DeleteStream("old")])
    store.close()
    url = ["verify", "--storage", store.url]
    assert main([*url, "--absent", '"text":"item-0-0"']) == 0
    assert "the text is in no file of the store" in capsys.readouterr().out
    assert main([*url, "--absent", '"text":"item-0-1"']) == 1
    assert "the text is in " in capsys.readouterr().out
    assert main([*url, "--absent", "short"]) == 2


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_exported_labels_are_read_by_aggregate(
    store: Storage, run: Run, tmp_path: Path, ending: str, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / f"labels.{ending}"
    assert run("export", "--to", target, "--json")["rows"] == 21
    if ending == "csv":
        with open(target, newline="") as file:
            rows = list(csv.DictReader(file))
        assert rows == [
            {"task": row.item, "worker": row.labeler, "label": row.said}
            for row in store.labels("posts")
        ]
    assert main(["aggregate", str(target), "--method", "majority", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["labels"] == 21


def test_exported_log_and_tasks(store: Storage, run: Run, tmp_path: Path) -> None:
    said = run("export", "--what", "log", "--to", tmp_path / "log.ndjson")
    assert said.startswith("69 events of posts")
    lines = [json.loads(line) for line in (tmp_path / "log.ndjson").read_text().splitlines()]
    assert [line["n"] for line in lines] == list(range(1, 70))
    observed = [line["label"] for line in lines if line["kind"] == "observed"]
    assert len(observed) == 21
    assert set(observed[0]) == {"item", "labeler", "said", "confidence"}
    run("export", "--what", "label-studio", "--to", tmp_path / "tasks.json")
    tasks = json.loads((tmp_path / "tasks.json").read_text())
    assert len(tasks) == 23
    config = tmp_path / "config.xml"
    config.write_text(
        '<View><Text name="post" value="$body"/><Choices name="kind" toName="post"/></View>'
    )
    run("export", "--what", "label-studio", "--to", tmp_path / "t.json", "--label-config", config)
    named = json.loads((tmp_path / "t.json").read_text())
    parts = [part for task in named for made in task["annotations"] for part in made["result"]]
    assert {(part["from_name"], part["to_name"]) for part in parts} == {("kind", "post")}
    assert len(parts) == 21
    assert "unknown export 'lables'" in run("export", "--what", "lables", "--to", "x", code=2)
    assert "cannot be written" in run("export", "--to", "nowhere/x.csv", code=2)
    assert "cannot be written" in run("export", "--what", "log", "--to", "nowhere/x", code=2)
    assert not list(tmp_path.glob("*.part"))


def test_a_copy_is_not_restored_but_served(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = tmp_path / "copy.db"
    run("backup", "--to", copy)
    new = f"sqlite:///{tmp_path}/new.db"
    assert main(["backup", "--storage", new, "--restore", str(copy)]) == 2
    said = "this is a store itself, not an archive: serve it with --storage sqlite:///"
    assert f"{said}{copy}" in capsys.readouterr().err


def test_backups_can_be_restored(store: Storage, run: Run, tmp_path: Path) -> None:
    run("backup", "--to", tmp_path / "copy.db")
    with open_storage(f"sqlite:///{tmp_path}/copy.db") as copy:
        assert copy.labels("posts") == store.labels("posts")
    made = run("backup", "--to", tmp_path / "all.ndjson", "--json")
    new = f"sqlite:///{tmp_path}/new.db"
    assert main(["backup", "--storage", new, "--restore", str(tmp_path / "all.ndjson")]) == 0
    with open_storage(new) as restored:
        assert restored.counts("posts") == store.counts("posts")
    assert made["rows"] > 100
    assert main(["verify", "--storage", new]) == 0
    assert main(["backup", "--storage", new, "--restore", str(tmp_path / "all.ndjson")]) == 2
    assert "which is the store itself" in run("backup", "--to", tmp_path / "venire.db", code=2)
    assert "either --to" in run("backup", code=2)


def test_keys_end_are_rotated_and_leave_lines_in_the_audit_trail(store: Storage, run: Run) -> None:
    made = run("keys", "create", "--role", "viewer", "--days", "2", "--name", "x", "--json")
    assert made["expires_at"] > made["created_at"]
    new = run("keys", "rotate", made["id"], "--overlap", "0", "--json")
    assert new["key"] != made["key"]
    old, other = store.keys()[-2:]
    assert (old.id, other.id) == (made["id"], new["id"])
    assert old.expires_at is not None
    assert other.expires_at == pytest.approx(other.created_at + 2 * 86_400)
    assert "no longer valid" in run("keys", "rotate", made["id"], code=2)
    run("keys", "revoke", new["id"])
    lines = store.audit()
    assert [(line.action, line.subject, line.key) for line in lines] == [
        ("key.create", made["id"], None),
        ("key.rotate", made["id"], None),
        ("key.revoke", new["id"], None),
    ]
    assert all(line.actor.endswith("by venire keys") for line in lines)
    assert "expires" in run("keys", "list")
    assert "--overlap is an option of rotate" in run("keys", "list", "--overlap", "1", code=2)
    assert "--days" in run("keys", "create", "--role", "viewer", "--days", "0", code=2)


def test_keys(store: Storage, run: Run) -> None:
    token = run("keys", "create", "--role", "admin", "--name", "mine").strip()
    assert token.startswith("vk_")
    [row] = store.keys()
    assert row.hash == hashlib.sha256(token.encode()).hexdigest()
    made = run("keys", "create", "--role", "labeler", "--labeler", "ann", "--json")
    assert made["labeler"] == "ann"
    assert made["key"] != token
    listed = run("keys", "list", "--json")
    assert [key["name"] for key in listed] == ["mine", ""]
    assert "key" not in listed[0]
    assert "hash" not in listed[0]
    assert run("keys", "revoke", made["id"]).strip() == f"{made['id']} is revoked"
    at = store.keys()[1].revoked_at
    assert at is not None
    run("keys", "revoke", made["id"])
    assert store.keys()[1].revoked_at == at
    assert made["id"] in run("keys", "list")


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["create"], "needs --role"),
        (["create", "--role", "boss"], "unknown role 'boss'"),
        (["create", "--role", "labeler"], "--labeler NAME is required"),
        (["create", "--role", "admin", "--labeler", "ann"], "--labeler NAME is required"),
        (["create", "key_1", "--role", "admin"], "revoke need the id"),
        (["revoke"], "revoke need the id"),
        (["revoke", "key_1"], "there is no key 'key_1'"),
        (["list", "--role", "admin"], "are options of create"),
        (["make"], "unknown action 'make'"),
    ],
)
def test_keys_that_cannot_be(run: Run, args: list[str], words: str) -> None:
    assert words in run("keys", *args, code=2)


def test_a_store_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for url in (f"sqlite:///{tmp_path}/none.db", "memory:"):
        assert main(["verify", "--storage", url]) == 2
    said = capsys.readouterr().err
    assert "venire serve makes one" in said
    assert not list(tmp_path.iterdir())
    assert MemoryStorage().streams() == []


def test_archive(
    store: Storage, run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    archive = tmp_path / "archive"
    left = store.exits("posts", payloads=True)
    before, url = everything(store, "posts"), store.url
    assert "in use by another server" in run("archive", archive, "--keep-items", 3, code=2)
    store.close()

    def command(*args: object, code: int = 0) -> str:
        assert main(["archive", str(archive), *map(str, args), "--storage", url]) == code
        said = capsys.readouterr()
        return said.err if code == 2 else said.out

    assert "nothing is archived" in command()
    assert "nothing to archive" in command("--keep-items", 1000)
    assert "segment 1: " in command("--keep-items", 3)
    assert command().endswith(": ok\n")
    item = json.loads(command("--item", left[0].id))
    assert (item["id"], item["verdict"]) == (left[0].id, left[0].verdict)
    assert item["payload"] == json.loads(left[0].payload)
    assert main(["verify", "--storage", url]) == 0
    assert "events are archived" in capsys.readouterr().out
    labels = str(tmp_path / "labels.csv")
    assert main(["export", "--storage", url, "--to", labels, "--json"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["rows"] == len(Path(labels).read_text().splitlines()) - 1
    assert "posts: what left up to exit " in said.err
    all_of_it = tmp_path / "all.ndjson"
    assert main(["backup", "--storage", url, "--to", str(all_of_it)]) == 0
    new = f"sqlite:///{tmp_path}/new.db"
    assert main(["backup", "--storage", new, "--restore", str(all_of_it)]) == 0
    assert main(["verify", "--storage", new]) == 0
    capsys.readouterr()
    assert "restored" in command("--restore", "--all")
    with open_storage(url) as back:
        assert everything(back, "posts") == before
    assert "segment 1: " in command("--older-than-days", 0)
    assert "is erased" in command("--erase", left[0].id)
    assert json.loads(command("--item", left[0].id))["payload"] is None
    assert "there is no archived item 'x'" in command("--item", "x", code=2)
    assert "give one" in command("--item", "x", "--restore", code=2)
    assert "--all is for --restore" in command("--all", code=2)
    path = archive / "posts" / "000001" / "labels.parquet"
    path.write_bytes(b"PAR1")
    assert "CHANGED" in command(code=1)
    assert "labels.parquet was changed" in command("--restore", code=2)
