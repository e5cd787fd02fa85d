"""What a batch says of labelers who share errors: in the names of labelers, not of their voices."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import venire as vn
from venire.batch import Answer, Caller
from venire.batch.choice import owned
from venire.cli import command_of
from venire.errors import InputError
from venire.estimators import Auto, CloneGroup
from venire.estimators.voices import Voices

label = command_of("label")


VOICES = Voices(
    np.zeros(0, np.int64),
    ("a (sure)", "b (sure)", "c", "a (unsure)", "b (unsure)"),
    np.array([0, 1, 2, 0, 1]),
)


def test_groups_of_voices_are_groups_of_their_owners() -> None:
    groups = [
        CloneGroup(("b (sure)", "a (sure)"), 0.5),
        CloneGroup(("a (unsure)", "b (unsure)", "a (sure)"), 0.7),
        CloneGroup(("a (sure)", "a (unsure)"), 0.9),
        CloneGroup(("c", "student (1 of 5)"), 0.4),
    ]
    found = owned(groups, VOICES, ["a", "b", "c"])
    assert [group.members for group in found] == [("a", "b"), ("c", "student (1 of 5)")]
    assert found[0].correlation == pytest.approx(0.6)
    assert found[0].names == "a and b"
    assert owned(groups, None, ["a", "b", "c"]) == tuple(groups)


def test_a_batch_names_labelers_and_counts_them_once() -> None:
    """Two judges on one model share their errors and say how sure they are."""
    rng = np.random.default_rng(3)
    truth = rng.integers(2, size=200)
    shared = np.where(rng.random(200) < 0.75, truth, 1 - truth)
    said = {
        name: shared
        if name.startswith("llama")
        else np.where(rng.random(200) < p, truth, 1 - truth)
        for name, p in {"llama-a": 0, "llama-b": 0, "x": 0.85, "y": 0.8, "z": 0.8}.items()
    }
    sure = rng.random((2, 200))

    def judge(name: str) -> Caller:
        def call(i: int) -> Answer:
            k = {"llama-a": 0, "llama-b": 1}.get(name)
            return Answer(int(said[name][i]), 1.0, None if k is None else float(sure[k, i]))

        return Caller(name, call, 1.0, family="llama" if name.startswith("llama") else None)

    done = vn.label({str(i): i for i in range(200)}, map(judge, said), vn.Budget(labels=1000))
    [family] = done.families
    assert family.members == ("llama-a", "llama-b")
    words = f"llama-a and llama-b share errors: together {family.worth:.1f} votes."
    assert done.relations[0] == words
    assert done.record()["relations"] == list(done.relations)
    assert done.record()["families"] == [family.record()]
    assert words in done.html()
    assert "(sure)" not in " ".join(done.relations)


def test_recorded_labels_have_the_relations_of_auto(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labels, families = tmp_path / "labels.csv", tmp_path / "families.json"
    rows = [
        f"p{i},{who},{(i + (who in 'ab' and i % 4 == 0)) % 2}" for i in range(16) for who in "abcd"
    ]
    labels.write_text("\n".join(["task,worker,label", *rows]) + "\n")
    families.write_text('{"a": "one", "b": "one"}')
    label(recorded=str(labels), families=families, labels_per_item=4.0, as_json=True)
    record = json.loads(capsys.readouterr().out)
    known = {"a": "one", "b": "one"}
    bought = vn.label_recorded(labels, vn.Budget(labels=64), families=known).table
    fitted = Auto(known).fit(bought)
    assert record["relations"] == list(fitted.relations_)
    assert record["families"] == [group.record() for group in fitted.families_]
    label(recorded=str(labels), families=families, labels_per_item=4.0)
    assert f"related   {fitted.relations_[0]}\n" in capsys.readouterr().out
    label(recorded=str(labels), labels_per_item=4.0)
    assert "related   nobody is known to share errors\n" in capsys.readouterr().out
    with pytest.raises(InputError, match="--families is an option of --recorded: prices and fami"):
        label(labels, tmp_path / "panel.yaml", families=families, out=tmp_path / "out.csv")
