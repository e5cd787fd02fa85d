"""A student in a batch: a gain where there is something to learn, else nothing changes."""

from __future__ import annotations

import numpy as np
import pytest

import venire as vn
from tests.marks import nightly
from tests.unit.student.worlds import world
from venire.student import Student


def run(
    seed: int, student: Student | None, signal: float = 2.0, per_item: float = 1.5
) -> vn.Labelled:
    made = world(seed, signal=signal)
    truth = dict(zip(made.contents, (made.table.classes[k] for k in made.truth), strict=True))
    budget = vn.Budget(labels=int(per_item * 600))
    return vn.label_recorded(
        made.table, budget, seed=seed, truth=truth, student=student, contents=made.contents
    )


@pytest.mark.parametrize("seed", [0, nightly(1), nightly(2)])
def test_it_gains_where_there_is_something_to_learn(seed: int) -> None:
    alone, helped, again = run(seed, None), run(seed, Student()), run(seed, Student())
    assert alone.accuracy is not None
    assert helped.accuracy is not None
    assert helped.asked == alone.asked
    assert helped.accuracy > alone.accuracy + 0.1
    assert helped.student is not None
    assert helped.student["ready"]
    saves = helped.student["saves"]
    assert saves["labels_per_item"] == 1.5
    without = saves["labels_per_item_without"]
    assert without is None or without > 2  # None: more labels than there are labelers
    assert helped.record()["student"] == helped.student
    assert list(again.rows()) == list(helped.rows())  # the same seed


@pytest.mark.parametrize("seed", [0, *map(nightly, range(1, 5))])
def test_one_that_cannot_learn_changes_nothing(seed: int) -> None:
    alone, noise = run(seed, None, signal=0.0), run(seed, Student(), signal=0.0)
    assert noise.student is not None
    assert not noise.student["ready"]
    assert noise.student["saves"] is None
    assert list(noise.rows()) == list(alone.rows())


def test_its_votes_are_neither_bought_nor_counted() -> None:
    done = run(0, Student())
    assert done.asked == 900
    assert done.counts.sum() == 900
    voices = [one for one in done.labelers if str(one.id).startswith("student")]
    assert len(voices) == 5
    assert sum(one.labels for one in voices) == 600
    assert all(one.spent == 0 for one in voices)
    sure = [one.skill for one in voices]
    assert sure[-1] > sure[0]


def test_it_answers_for_items_that_nobody_labelled() -> None:
    done = run(0, Student(), per_item=0.9)
    assert (done.counts == 0).sum() == 60
    assert all(verdict.label is not None for verdict in done.verdicts.values())
    assert done.accuracy is not None
    assert done.accuracy > 0.75  # 0.66 without it


def test_recorded_labels_need_contents() -> None:
    with pytest.raises(vn.InputError, match="without contents"):
        vn.label_recorded(world(0).table, 100.0, student=Student())


def test_live_labelers_and_texts() -> None:
    rng = np.random.default_rng(0)
    words = {"spam": ["buy now", "cheap pills", "free money"], "ok": ["dear ann", "thanks for it"]}
    truth = {f"post-{i}": "spam" if rng.random() < 0.5 else "ok" for i in range(300)}
    posts = {
        name: {"id": name, "text": f"{rng.choice(words[kind])} {rng.integers(10**6)}"}
        for name, kind in truth.items()
    }

    def labeler(skill: float) -> object:
        other = {"spam": "ok", "ok": "spam"}
        said = {n: k if rng.random() < skill else other[k] for n, k in truth.items()}
        return lambda post: said[post["id"]]

    panel = {f"labeler-{m}": labeler(0.7) for m in range(4)}
    helped = vn.label(
        posts.values(), panel, vn.Budget(labels=400), truth=truth, student=Student(field="text")
    )
    assert helped.accuracy is not None
    assert helped.accuracy > 0.9
