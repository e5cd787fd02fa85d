"""Verdicts for others: Parquet and data sets, with posteriors, of batches, tables and streams."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

import venire as vn
from tests.integration.server.harness import SOURCE
from tests.store.store import MemoryStorage
from tests.stored import play
from venire.cli import main
from venire.errors import FileError, InputError
from venire.files import check_targets, to_dataset
from venire.server.store import open_storage
from venire.server.store.maintenance.export import verdict_rows

ROWS = [(f"i{i}", w, ("ok", "spam", "odd")[i % 3]) for i in range(30) for w in "abcde"]


def test_the_verdicts_of_a_batch_have_posteriors_that_agree_with_them(tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_text(
        "task,worker,label\n" + "".join(f"{i},{w},{k}\n" for i, w, k in ROWS)
    )
    out = tmp_path / "v.parquet"
    command = ["label", "--recorded", str(tmp_path / "labels.csv"), "--labels", "90"]
    assert main([*command, "--out", str(out), "--probabilities"]) == 0
    table = parquet.read_table(out).to_pylist()
    assert len(table) == 30
    for row in table:
        shares = {name: row[f"p({name})"] for name in ("ok", "spam", "odd")}
        assert sum(shares.values()) == pytest.approx(1.0)
        assert max(shares, key=lambda name: shares[name]) == row["label"]
        assert row["confidence"] <= shares[row["label"]] + 1e-9
    assert main([*command, "--probabilities"]) == 2


def test_a_frame_of_a_batch() -> None:
    done = vn.label_recorded(ROWS, vn.Budget(labels=90))
    frame = done.to_frame("pandas")
    assert frame["label"].tolist() == [v.label for v in done.verdicts.values()]
    assert list(frame.columns)[-3:] == [f"p({name})" for name in done.table.classes]


def test_a_data_set_keeps_the_names_of_its_classes() -> None:
    done = vn.label_recorded(ROWS, vn.Budget(labels=90))
    made = to_dataset(done)
    names = made.features["label"].names
    assert names == list(done.table.classes)
    assert [names[k] for k in made["label"]] == [v.label for v in done.verdicts.values()]
    fitted = to_dataset(vn.Auto().fit(ROWS), probabilities=False)
    assert fitted.column_names == ["task", "label", "confidence", "entropy"]
    with pytest.raises(InputError, match="expected a fitted estimator"):
        to_dataset([1, 2])


def test_a_data_set_is_a_folder_that_is_written_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labels = tmp_path / "labels.csv"
    labels.write_text("task,worker,label\n" + "".join(f"{i},{w},{k}\n" for i, w, k in ROWS))
    out = tmp_path / "verdicts.dataset"
    for _ in range(2):  # one that is there is replaced
        assert main(["aggregate", str(labels), "--out", str(out), "--probabilities"]) == 0
    assert "Saving" not in capsys.readouterr().err
    import datasets  # which takes long to import

    made = datasets.load_from_disk(str(out))
    assert made.num_rows == 30
    assert made.features["label"].names == ["odd", "ok", "spam"]
    there = sorted(path.name for path in tmp_path.iterdir())
    assert there == ["labels.csv", "verdicts.dataset"]
    (tmp_path / "mine.dataset").mkdir()
    with pytest.raises(FileError, match="it is a folder"):
        check_targets([tmp_path / "mine.dataset"])
    (tmp_path / "file.dataset").write_text("")
    with pytest.raises(FileError, match="it is a file"):
        check_targets([tmp_path / "file.dataset"])


def test_the_verdicts_of_a_stream(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url, out = f"sqlite:///{tmp_path}/venire.db", tmp_path / "v.parquet"
    with open_storage(url) as storage:
        play(storage)
        left = [row for row in storage.all_items("posts") if row.exit_n is not None]
        said = {row.item for row in storage.all_labels("posts")}
        command = ["export", "--storage", url, "--what", "verdicts", "--to", str(out), "--json"]
        assert main([*command, "--probabilities"]) == 0
        assert json.loads(capsys.readouterr().out)["rows"] == len(left) == 15
        assert main(["export", "--storage", url, "--to", str(out), "--probabilities"]) == 2
        assert "--probabilities is for --what verdicts" in capsys.readouterr().err
    table = {row["task"]: row for row in parquet.read_table(out).to_pylist()}
    for item in left:
        row = table[item.id]
        assert (row["left_as"], row["reason"]) == (item.verdict, item.reason)
        assert json.loads(row["payload"]) == json.loads(item.payload)
        if item.id in said:
            assert row["p(spam)"] + row["p(ok)"] == pytest.approx(1.0)
        else:
            assert row["p(spam)"] is None


def test_revised_verdicts_and_streams_without_labels() -> None:
    storage = MemoryStorage()
    play(storage)
    revised = {row.item: row for row in storage.all_revisions("posts")}
    columns, rows = verdict_rows(storage, "posts")
    for row in rows:
        found: dict[str, Any] = dict(zip(columns, row, strict=True))
        now = revised.get(found["task"])
        assert found["revised"] == (now is not None)
        assert found["label"] == (found["left_as"] if now is None else now.verdict)


@pytest.mark.parametrize(("name", "extra"), [("v.parquet", "data"), ("v.dataset", "datasets")])
def test_a_missing_extra_is_named_before_anything_is_done(
    tmp_path: Path, name: str, extra: str
) -> None:
    module = {"data": "pyarrow", "datasets": "datasets"}[extra]
    script = (
        "import importlib.util as u, sys\n"
        f"r = u.find_spec; u.find_spec = lambda n, *a: None if n == {module!r} else r(n, *a)\n"
        f"from venire.cli import main\nsys.exit(main(['aggregate', 'l.csv', '--out', {name!r}]))\n"
    )
    (tmp_path / "l.csv").write_text("task,worker,label\na,w,1\na,v,0\n")
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path, env={"PYTHONPATH": SOURCE}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert f"venire[{extra}]" in done.stderr
