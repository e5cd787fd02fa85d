"""Paths and addresses of files, without a server: see tests/unit/cluster/test_addresses.py."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from venire.cluster.partitions import files_of
from venire.errors import FileError, InputError, MissingExtra
from venire.labels.sources import as_table
from venire.tools.addresses import Address, located

KEYS = st.text(st.characters(exclude_characters="?", exclude_categories=["Cs"])).filter(
    lambda key: not key.startswith("/")
)


@given(KEYS, st.sampled_from(["", "region=eu-west-1", "endpoint_override=minio:9000&scheme=http"]))
def test_an_address_is_its_text(key: str, query: str) -> None:
    address = Address("s3", "bucket", key, query)
    assert located(str(address)) == located(address) == address


def test_paths_stay_paths() -> None:
    for text in ("labels.csv", "/data/a b.csv", "C:/labels.csv", "s3:/bucket/x", "a?b=c"):
        assert located(text) == Path(text)


def test_a_file_by_its_address(tmp_path: Path) -> None:
    path = tmp_path / "my labels.csv"
    path.write_text("task,worker,label\na,ann,yes\nb,ann,no\n")
    assert located(path.as_uri()) == path
    assert as_table(path.as_uri()).items == ("a", "b")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("https://host/labels.csv", r"expected a path, or an address .* s3://.*download it"),
        ("s3:///labels.csv", "expected a bucket in it, as in s3://bucket/labels"),
        ("s3://key:secret@bucket/x.csv", "got a password in an address of 'bucket'.*AWS_ACCESS"),
    ],
)
def test_what_is_no_address_is_refused(text: str, told: str) -> None:
    with pytest.raises(InputError, match=told) as caught:
        as_table(text)
    assert "secret" not in str(caught.value)


def test_a_pyarrow_without_the_scheme(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some builds leave S3 out; this one has it, so its answer is put in."""
    pa: Any = pytest.importorskip("pyarrow")
    from pyarrow import fs

    class Without:
        @staticmethod
        def from_uri(uri: str) -> None:
            raise pa.ArrowNotImplementedError("Got S3 URI but Arrow compiled without S3 support")

    monkeypatch.setattr(fs, "FileSystem", Without)
    with pytest.raises(FileError, match=r"this pyarrow was built without s3 .*pip install pyarrow"):
        as_table("s3://bucket/labels.csv")


def test_without_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pyarrow", "pyarrow.fs"):
        monkeypatch.setitem(sys.modules, name, None)
    address = located("s3://bucket/labels.csv")
    assert isinstance(address, Address)
    for ask in (as_table, files_of, Address.is_dir):
        with pytest.raises(MissingExtra, match=r"venire\[data\]"):
            ask(address)
