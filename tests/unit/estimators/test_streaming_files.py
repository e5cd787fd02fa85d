"""A stream on disk: it goes on to the bit, and a file that is not whole says so."""

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.unit.estimators.test_streaming import everything
from tests.unit.estimators.worlds import simulate
from venire.errors import FileError, InputError
from venire.estimators.streaming.estimator import Streaming
from venire.labels import LabelTable

DATA = Path(__file__).parent.parent.parent / "data"


def half(seed: int, labelers: list[Any], first: int) -> LabelTable:
    table, _ = simulate([0.9, 0.8, 0.7, 0.6], 100, seed, classes=3, share=0.7)
    items = tuple(("item", first + i) for i in range(100))
    codes = table.item, table.labeler, table.said
    return LabelTable.from_codes(*codes, items, labelers, ("x", "y", "z"))


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"model": "one-coin", "half_life": 20.0, "drift": None},
        {"classes": ("x", "y", "z"), "max_items": 32, "max_finals": 40},
        {"labelers": ["ann", 1], "classes": np.array(["x", "y", "z"])},
    ],
)
def test_goes_on_to_the_bit(tmp_path: Path, how: dict[str, Any]) -> None:
    stream = Streaming(**how, repeats="last").partial_fit(half(0, ["ann", 1, 2.5, ("j", None)], 0))
    stream.save(tmp_path / "stream.npz")
    again = Streaming.load(tmp_path / "stream.npz")
    assert everything(again) == everything(stream)
    assert again.labels_ == stream.labels_
    for s in (stream, again):
        s.partial_fit(half(1, ["ann", True, 2.5, "new"], 50)).refine()
    assert everything(again) == everything(stream)
    assert [f.name for f in tmp_path.iterdir()] == ["stream.npz"]


def test_an_empty_stream(tmp_path: Path) -> None:
    Streaming().save(tmp_path / "s")
    assert Streaming.load(str(tmp_path / "s")).labels_ == {}


def saved(path: Path) -> Path:
    Streaming().partial_fit(half(0, ["a", "b", "c", "d"], 0)).save(path)
    return path


def rewrite(path: Path, name: str, change: Any) -> None:
    with np.load(path) as archive:
        arrays = {n: archive[n] for n in archive.files}
    arrays[name] = change(arrays[name])
    with open(path, "wb") as file:
        np.savez(file, **arrays)


def test_a_newer_version_says_so(tmp_path: Path) -> None:
    path = saved(tmp_path / "s.npz")

    def newer(header: Any) -> Any:
        changed = {**json.loads(header.tobytes()), "version": 3}
        return np.frombuffer(json.dumps(changed).encode(), dtype=np.uint8)

    rewrite(path, "header", newer)
    with pytest.raises(FileError, match=r"s\.npz: its format has version 3, expected at most 2"):
        Streaming.load(path)


def test_a_broken_file_says_so(tmp_path: Path) -> None:
    path = saved(tmp_path / "s.npz")
    whole = path.read_bytes()
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 0xFF
    for broken in (b"", b"not a zip", whole[: len(whole) // 2], whole[:-30], bytes(flipped)):
        path.write_bytes(broken)
        with pytest.raises(FileError, match="not a complete stream"):
            Streaming.load(path)
    with pytest.raises(FileError, match="there is no such file"):
        Streaming.load(tmp_path / "none")


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("labels", lambda a: a + 1000),
        ("labels", lambda a: a[:, :3]),
        ("labels", lambda a: a.astype(np.float64)),
        ("looked.confusions", lambda a: a[:1]),
        ("drift.alarms", lambda a: a[:1]),
        ("header", lambda a: a[:50]),
        ("header", lambda a: np.frombuffer(b'{"format": "x", "version": 1}', np.uint8)),
        ("header", lambda a: np.frombuffer(b'{"format": "venire-stream", "version": 1}', np.uint8)),
    ],
)
def test_arrays_that_do_not_fit_say_so(tmp_path: Path, name: str, change: Any) -> None:
    path = saved(tmp_path / "s.npz")
    rewrite(path, name, change)
    with pytest.raises(FileError, match="not a complete stream"):
        Streaming.load(path)


@pytest.mark.parametrize("model", ["dawid-skene", "one-coin"])
def test_a_file_of_the_incremental_version_is_read(model: str) -> None:
    """Its labels in the window (32 of 40 items), its final verdicts and its drift monitor."""
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=(40, 1))
    said = np.where(rng.random((40, 4)) < [0.9, 0.8, 0.8, 0.7], truth, 1 - truth)
    stream = Streaming.load(DATA / f"stream-1-{model}.npz")
    assert stream.model == model
    assert len(stream.state.items) == 32
    kept = {(i, m): k for i, m, k, _ in stream.state.labels.tolist()}
    for name, number in stream.state.items.items():
        assert [kept[number, m] for m in range(4)] == said[name].tolist()  # type: ignore[call-overload]
    assert all(stream.is_final(i) for i in range(8))
    assert stream.drift_[0].alarms == 0
    fresh = Streaming((0, 1), range(4), model=model)
    fresh.update(np.repeat(np.arange(8, 40), 4), np.tile(np.arange(4), 32), said[8:].ravel())
    np.testing.assert_allclose(stream.confusions_, fresh.confusions_, atol=1e-9)
    assert len(stream.update([99], [0], [1]).labels_) == 41


def test_nothing_in_a_file_is_run(tmp_path: Path) -> None:
    path = tmp_path / "s.npz"
    pickled = io.BytesIO()
    np.save(pickled, np.array([{}], dtype=object), allow_pickle=True)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.npy", pickled.getvalue())
    with pytest.raises(FileError, match="not a complete stream"):
        Streaming.load(path)


def test_names_that_cannot_be_saved_leave_the_old_file(tmp_path: Path) -> None:
    path = saved(tmp_path / "s.npz")
    before = path.read_bytes()
    stream = Streaming("xy").partial_fit(
        LabelTable.from_rows([(frozenset("a"), "m", "x"), ("b", "m", "y")], classes=("x", "y"))
    )
    with pytest.raises(InputError, match=r"is a frozenset, expected text, a number or a tuple"):
        stream.save(path)
    assert path.read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 1


def test_a_place_that_cannot_be_written_to_says_so(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"there is no folder .*nowhere: make it first"):
        Streaming("xy").save(tmp_path / "nowhere" / "s.npz")
    with pytest.raises(FileError, match="it is a folder"):
        Streaming("xy").save(tmp_path)
    assert not list(tmp_path.iterdir())
