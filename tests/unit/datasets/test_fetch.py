"""Fetching for real, from a server on this machine."""

from __future__ import annotations

import hashlib
import os
import socket
from pathlib import Path

import pytest

from tests.unit.datasets.raw import RAW, raw_files
from tests.unit.datasets.server import Site, serving
from venire import FetchError, UnknownName
from venire.datasets import cache_folder, data_set, data_sets, download, fetch, load, path_of

BODY = bytes(range(256)) * 2000
SHA = hashlib.sha256(BODY).hexdigest()


@pytest.fixture(autouse=True)
def nothing_else_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("VENIRE_DATA", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")


def site_of(name: str, data: Path, **how: object) -> Site:
    made = raw_files(name, data)
    files = {f"{f.repository}/raw/{f.commit}/{f.path}": made[f.name] for f in data_set(name).raw}
    return Site(files, **how)  # type: ignore[arg-type]


def closed_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


def test_a_whole_file(tmp_path: Path) -> None:
    told: list[tuple[str, int]] = []
    with serving(Site({"x": BODY})) as site:
        download(f"{site.url}/x", tmp_path / "x", SHA, lambda *seen: told.append(seen))
    assert (tmp_path / "x").read_bytes() == BODY
    assert os.listdir(tmp_path) == ["x"]
    assert told[-1] == ("x", len(BODY))


@pytest.mark.parametrize("ranges", [True, False])
def test_a_broken_transfer_resumes(tmp_path: Path, ranges: bool) -> None:
    with serving(Site({"x": BODY}, ranges=ranges, cut=100_000)) as site:
        with pytest.raises(FetchError, match=r"broke off after 100,000 of 512,000.*resumes after"):
            download(f"{site.url}/x", tmp_path / "x", SHA)
        assert os.listdir(tmp_path) == ["x.part"]
        assert (tmp_path / "x.part").read_bytes() == BODY[:100_000]
        download(f"{site.url}/x", tmp_path / "x", SHA)
        assert [asked for _, asked in site.asked] == [None, "bytes=100000-"]
    assert (tmp_path / "x").read_bytes() == BODY


def test_a_part_of_another_file_is_thrown_away(tmp_path: Path) -> None:
    (tmp_path / "x.part").write_bytes(BODY + b"more")
    with serving(Site({"x": BODY})) as site:
        download(f"{site.url}/x", tmp_path / "x", SHA)
    assert (tmp_path / "x").read_bytes() == BODY


def test_a_damaged_file_is_not_kept(tmp_path: Path) -> None:
    with (
        serving(Site({"x": BODY[:-1] + b"!"})) as site,
        pytest.raises(FetchError, match=f"expected {SHA}.*run this again"),
    ):
        download(f"{site.url}/x", tmp_path / "x", SHA)
    assert os.listdir(tmp_path) == []


def test_what_is_not_there_or_refuses(tmp_path: Path) -> None:
    with serving(Site()) as site, pytest.raises(FetchError, match="HTTP 404"):
        download(f"{site.url}/x", tmp_path / "x", SHA)
    with pytest.raises(FetchError, match=r"refused.*check the connection"):
        download(f"http://127.0.0.1:{closed_port()}/x", tmp_path / "x", SHA)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", RAW)
def test_what_is_fetched_is_the_recorded_set(name: str, data: Path, tmp_path: Path) -> None:
    with serving(site_of(name, data)) as site:
        folder = fetch(name, tmp_path, source=site.url)
        asked = len(site.asked)
        assert fetch(name, tmp_path, source=site.url) == folder
    assert asked == len(site.asked) == len(data_set(name).raw)
    for table in ("labels.csv", "truth.csv"):
        assert (folder / table).read_bytes() == (data / name / table).read_bytes()
    assert os.listdir(tmp_path) == [name]


def test_the_published_files_of_bluebird(data: Path) -> None:
    made = raw_files("bluebird", data)
    for file in data_set("bluebird").raw:
        assert hashlib.sha256(made[file.name]).hexdigest() == file.sha256


def test_an_interrupted_fetch_goes_on(data: Path, tmp_path: Path) -> None:
    with serving(site_of("bluebird", data, cut=1000, cuts=2)) as site:
        for _ in range(2):
            with pytest.raises(FetchError, match="broke off"):
                fetch("bluebird", tmp_path, source=site.url)
            assert not (tmp_path / "bluebird").exists()
        fetch("bluebird", tmp_path, source=site.url)
        assert [asked for _, asked in site.asked] == [None, "bytes=1000-", "bytes=2000-", None]
    assert os.listdir(tmp_path) == ["bluebird"]


def test_other_labels_than_the_recorded_ones_are_not_kept(data: Path, tmp_path: Path) -> None:
    site = site_of("dog", data)
    path = next(path for path in site.files if path.endswith("dog_crowd.txt"))
    site.files[path] = site.files[path].replace(b"1\t1\t4\n", b"1\t1\t3\n", 1)
    with serving(site), pytest.raises(FetchError, match="nothing was kept"):
        fetch("dog", tmp_path, source=site.url)
    assert not (tmp_path / "dog").exists()


def test_a_file_of_another_format(data: Path, tmp_path: Path) -> None:
    site = site_of("rte", data)
    site.files = dict.fromkeys(site.files, b"this is no archive")
    with serving(site), pytest.raises(FetchError, match="nothing was kept"):
        fetch("rte", tmp_path, source=site.url)
    assert not (tmp_path / "rte").exists()


def test_offline_it_says_what_to_do(tmp_path: Path) -> None:
    source = f"http://127.0.0.1:{closed_port()}"
    with pytest.raises(FetchError, match=r"offline, download the 2 files .* --from DIR"):
        fetch("bluebird", tmp_path, source=source)


def test_from_a_folder(data: Path, tmp_path: Path) -> None:
    by_hand = tmp_path / "by hand"
    by_hand.mkdir()
    with pytest.raises(FetchError, match=r"by hand has no file labels.yaml: download the 2 files"):
        fetch("bluebird", tmp_path / "a", given=by_hand)
    for name, content in raw_files("bluebird", data).items():
        (by_hand / name).write_bytes(content)
    folder = fetch("bluebird", tmp_path / "a", given=by_hand)
    assert folder == tmp_path / "a" / "bluebird"
    again = fetch("bluebird", tmp_path / "b", given=folder)
    assert (again / "labels.csv").read_bytes() == (folder / "labels.csv").read_bytes()


def test_a_damaged_file_in_the_folder(data: Path, tmp_path: Path) -> None:
    for name, content in raw_files("bluebird", data).items():
        (tmp_path / name).write_bytes(content + b"\n")
    with pytest.raises(FetchError, match=r"labels\.yaml has the sha256"):
        fetch("bluebird", tmp_path / "a", given=tmp_path)
    assert (tmp_path / "labels.yaml").exists()


def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert cache_folder() == tmp_path / "cache"
    monkeypatch.delenv("VENIRE_DATA")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "venire" / "datasets"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "venire" / "datasets"


def test_a_cache_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FetchError, match=r"cannot keep rte in .*give another folder"):
        fetch("rte", tmp_path / "file" / "cache")


@pytest.mark.parametrize("name", RAW)
def test_load(name: str, data: Path) -> None:
    table, truth = load(name, data)
    known = data_set(name)
    assert len(table.items) == known.tasks
    assert len(table.labelers) == known.workers
    assert len(table.classes) == known.classes
    repeated = 736 if name == "medrelex_cause" else 0
    assert len(table.said) == known.labels - repeated
    assert set(truth) <= set(table.items)
    assert set(truth.values()) <= set(table.classes)


def test_load_what_is_not_there() -> None:
    with pytest.raises(FetchError, match="venire datasets fetch rte"):
        load("rte")
    with pytest.raises(FetchError, match="venire datasets fetch rte"):
        path_of("rte")
    with pytest.raises(UnknownName, match="did you mean 'rte'"):
        load("ret")


def test_the_registry_is_complete() -> None:
    assert set(data_sets()) == set(RAW)
    for known in data_sets().values():
        assert known.licence
        assert len({file.name for file in known.raw}) == len(known.raw)
        assert all(file.repository.count("/") == 1 and file.commit for file in known.raw)
