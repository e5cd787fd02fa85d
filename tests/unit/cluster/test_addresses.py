"""Labels at addresses, read from a server with the API of S3."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pyarrow", reason="pip install 'venire[data]'")

from pyarrow import fs

from tests.marks import nightly
from tests.unit.cluster import s3
from tests.unit.cluster.tables import assert_same
from tests.unit.cluster.test_loading import A, B, write
from venire import DawidSkene, as_table, partitioned
from venire.cli import main
from venire.cluster.partitions import files_of
from venire.errors import FileError, InputError
from venire.labels.sources import as_truth

KEYS = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}


@pytest.fixture(scope="module", params=["found", nightly("installed")])
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """If it is there; the slow tests install it."""
    if not s3.is_installed():
        if request.param == "found":
            pytest.skip(f"there is no server of S3 in {s3.home()}: scripts/nightly installs one")
        s3.install()
    with s3.running(tmp_path_factory.mktemp("s3")) as address:
        yield address


@pytest.fixture
def bucket(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A bucket with the labels A and B, in a folder for each kind of file, and their truth."""
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {**KEYS, "AWS_ENDPOINT_URL": f"http://{server}"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")  # no machine of Amazon's
    system, _ = fs.FileSystem.from_uri("s3://posts/?allow_bucket_creation=true")
    system.create_dir("posts")
    for ending in ("csv", "parquet", "jsonl"):
        folder = tmp_path / ending
        folder.mkdir()
        write(folder, A, B, ending="csv" if ending == "jsonl" else ending)
        if ending == "jsonl":
            for n, rows in enumerate((A, B)):
                names = "task", "worker", "label"
                lines = [json.dumps(dict(zip(names, row, strict=True))) for row in rows]
                (folder / f"{n}.jsonl").write_text("\n".join(lines))
                (folder / f"{n}.csv").unlink()
    (tmp_path / "truth.csv").write_text("task,label\na,yes\nb,yes\nc,no\nd,no\n")
    fs.copy_files(str(tmp_path), "posts/my labels", destination_filesystem=system)
    yield "s3://posts/my labels"
    system.delete_dir_contents("posts")


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl"])
def test_a_pattern_a_folder_and_a_file(bucket: str, ending: str) -> None:
    found = [f"{bucket}/{ending}/{n}.{ending}" for n in (0, 1)]
    for given in (f"{bucket}/{ending}/*.{ending}", f"{bucket}/*/[01].{ending}", found):
        assert files_of(given) == found
    for folder in (f"{bucket}/{ending}", f"{bucket}/{ending}/"):
        assert files_of(folder) == found
    assert files_of(found[0]) == found[:1]
    table, whole = partitioned(f"{bucket}/{ending}").gather(), as_table(A + B)
    assert (tuple(table.items), tuple(table.labelers)) == (whole.items, whole.labelers)
    np.testing.assert_array_equal(table.said, whole.said)
    assert as_table(found[1]).items == as_table(B).items
    assert as_truth(f"{bucket}/truth.csv", whole).tolist() == [2, 2, 1, 1]


def test_the_server_may_be_in_the_address(
    bucket: str, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    asked = f"endpoint_override={server}&scheme=http"
    found = files_of(f"{bucket}/csv/*.csv?{asked}")
    assert found == [f"{bucket}/csv/{n}.csv?{asked}" for n in (0, 1)]
    assert as_table(found[1]).items == as_table(B).items


def test_a_wrong_row_is_named_by_its_line(bucket: str) -> None:
    system, _ = fs.FileSystem.from_uri("s3://posts/")
    for name, text in {"0.csv": "a,ann\n", "1.csv": "a,ann,yes\na,bob,\n"}.items():
        with system.open_output_stream(f"posts/bad/{name}") as file:
            file.write(f"task,worker,label\n{text}".encode())
    with pytest.raises(FileError, match=r"s3://posts/bad/0\.csv, line 2: the line has 2 fields"):
        as_table("s3://posts/bad/0.csv")
    with pytest.raises(InputError, match=r"s3://posts/bad/1\.csv, line 3: label is"):
        partitioned("s3://posts/bad/1.*")


def test_what_is_not_there(bucket: str) -> None:
    for name in ("csv", "parquet", "jsonl"):
        with pytest.raises(FileError, match=f"none.{name}: there is no such file"):
            as_table(f"{bucket}/none.{name}")
        with pytest.raises(FileError, match="there is no bucket 'letters': check its name"):
            as_table(f"s3://letters/none.{name}")
    with pytest.raises(FileError, match="there is no bucket 'letters': check its name"):
        partitioned("s3://letters/*.csv")
    with pytest.raises(InputError, match=r"there is no file of labels .*give a pattern"):
        partitioned(f"{bucket}/*.csv.gz")
    with pytest.raises(FileError, match=r"Unexpected query parameter.*check the address"):
        partitioned(f"{bucket}/*.csv?colour=red")


def test_who_may_not_read(bucket: str, server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With keys that the server does not know, and without any where nobody may read."""
    told = r"cannot be read \(.*set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE"
    s3.send("POST", f"http://{server}/moto-api/reset-auth", b"0")  # from now on it checks keys
    try:
        for read in (as_table, partitioned):
            with pytest.raises(FileError, match=told):
                read(f"{bucket}/csv/0.csv")
    finally:
        s3.send("POST", f"http://{server}/moto-api/reset-auth", b"inf")
    nobody = {"Effect": "Deny", "Principal": "*", "Action": "s3:*", "Resource": "*"}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [nobody]}).encode()
    s3.send("PUT", f"http://{server}/posts?policy", policy)
    try:
        for name in KEYS:
            monkeypatch.delenv(name)
        for read in (as_table, partitioned):
            with pytest.raises(FileError, match=told):
                read(f"{bucket}/csv/0.csv")
    finally:
        s3.send("DELETE", f"http://{server}/posts?policy")


@pytest.mark.slow  # it tries again for six seconds
def test_no_server(bucket: str) -> None:
    with pytest.raises(FileError, match=r"NETWORK_CONNECTION.*AWS_ENDPOINT_URL"):
        as_table(f"{bucket}/csv/0.csv?endpoint_override=127.0.0.1:9&scheme=http")


def test_the_commands(bucket: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def run(*words: str) -> Any:
        assert main([*words, "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    pattern, truth = f"{bucket}/parquet/*.parquet", f"{bucket}/truth.csv"
    more = ["--method", "dawid-skene", "--truth", truth, "--gold", truth, "--out"]
    found = run("aggregate", pattern, *more, str(tmp_path / "a.csv"))
    expected = run("aggregate", str(tmp_path / "parquet"), *more, str(tmp_path / "b.csv"))
    assert {**found, "seconds": 0} == {**expected, "seconds": 0}
    assert (tmp_path / "a.csv").read_text() == (tmp_path / "b.csv").read_text()
    words = ["label", "--labels", "5", "--recorded"]
    assert run(*words, pattern) == run(*words, str(tmp_path / "parquet"))
    assert main(["aggregate", "s3://letters/*.csv"]) == 2
    assert "there is no bucket 'letters'" in capsys.readouterr().err


def test_workers_read_them(bucket: str) -> None:
    pytest.importorskip("distributed", reason="pip install 'venire[distributed]'")
    from venire.cluster import connected

    with connected("local", workers=1) as client:  # it has the environment of this process
        table = partitioned(f"{bucket}/parquet/*.parquet", client)
        assert_same(DawidSkene().fit(table), DawidSkene().fit(A + B))
        with pytest.raises(InputError, match=r"none\.csv: there is no such file"):
            partitioned([f"{bucket}/csv/0.csv", f"{bucket}/none.csv"], client)
