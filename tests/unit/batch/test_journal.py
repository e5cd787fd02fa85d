"""The journal of a batch: answers, and the configuration of who gave them."""

from __future__ import annotations

from pathlib import Path

from venire.batch.asking import Entry, Journal


def test_answers_of_another_configuration_are_counted(tmp_path: Path) -> None:
    path, items = tmp_path / "journal", ["a", "b", "c"]
    for turn, (digest, item) in enumerate([("x", "a"), ("x", "b"), ("y", "c")]):
        with Journal(path, items, {"strict": digest, "mild": "m"}) as journal:
            assert journal.stale == ({"strict": 2} if turn == 2 else {})
            journal.append([Entry(item, "strict", "ok", 0.1), Entry(item, "mild", "ok", 0.1)])
    with Journal(path, items, {"strict": "y", "mild": "m"}) as journal:
        assert journal.stale == {"strict": 2}
        assert len(journal.entries) == 6
    with Journal(path, items, {"strict": "x", "mild": "m"}) as journal:  # back again
        assert journal.stale == {"strict": 1}
    with Journal(path, items) as journal:  # plain functions have no digest
        assert journal.stale == {}


def test_a_journal_without_configurations_opens_as_before(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    with Journal(path, ["a"]) as journal:
        journal.append([Entry("a", "strict", "ok", 0.1)])
    assert "digests" not in path.read_text()
    with Journal(path, ["a"], {"strict": "x"}) as journal:
        assert journal.stale == {}
        assert len(journal.entries) == 1
