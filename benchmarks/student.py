"""A student on the panel: what it gains on digits and on texts, and what random features do.

python -m benchmarks student [--seeds N] [--only digits|texts] [--way batch|stream] [--labels 1,2]
python -m benchmarks student --comments ../shared/data/civilcomments [--seeds N] [--labels 1,2]

Digits: the demo's panel of twelve weak classifiers and its 1,197 images. Texts: the first
paragraphs of SciPy's documentation, to be told by the sub-package they come from, and eight weak
classifiers, each trained on a few paragraphs that are not in the job. Nothing is downloaded. Of
every seed all ways buy the same number of labels: the panel alone; with a student; with a student
who sees random numbers in place of the items; and the model alone, whose answers replace the
panel's verdicts. `batch` is `venire label`, `stream` a scheduler with its usual policy and a
budget; of a stream the verdicts count with which items left, those from before the student knew
anything too.

--comments: 1,500 comments of civilcomments, drawn anew for each seed, and its 24 LLM judges: with
and without a student, with and without 100 gold labels; scored on the comments without gold.
"""

from __future__ import annotations

import argparse
import csv
import importlib
import inspect
import statistics
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.real_data import load
from venire.batch import label_recorded
from venire.engine import Scheduler
from venire.labels import LabelTable
from venire.model import Budget, Item, Label, Labeler
from venire.scheduling import LearnWhileServing
from venire.student import Student
from venire_research.digits import load_job

LABELS = (1.0, 1.5, 2.0, 3.0, 4.0)
RATE, PRICE = 3.0, 1e-3
PACKAGES = ("linalg", "ndimage", "optimize", "signal", "special", "stats")
TRAINING = 300
COMMENTS, GOLD = 1_500, 100


@dataclass(frozen=True)
class Job:
    contents: Mapping[str, Any]
    truth: NDArray[np.int64]
    labelers: tuple[str, ...]
    capacity: tuple[int, ...]
    said: NDArray[np.int64]
    classes: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.contents)

    @property
    def table(self) -> LabelTable:
        item, labeler = np.indices(self.said.shape)
        codes = item.ravel(), labeler.ravel(), self.said.ravel()
        return LabelTable.from_codes(*codes, self.names, self.labelers, self.classes)

    def random(self, seed: int) -> dict[str, Any]:
        rows = np.random.default_rng([seed, 77]).normal(size=(len(self.names), 64))
        return dict(zip(self.names, rows, strict=True))


def digits() -> Job:
    job = load_job()
    contents = dict(zip(job.names, job.images, strict=True))
    names = tuple(str(k) for k in range(10))
    return Job(contents, job.truth, job.labelers, job.capacity, job.said, names)


def paragraphs() -> tuple[list[str], NDArray[np.int64]]:
    """The first paragraph of prose of each function, and the number of its package."""
    texts, truth = [], []
    for k, package in enumerate(PACKAGES):
        module = importlib.import_module(f"scipy.{package}")
        for name in sorted(module.__all__):
            parts = (inspect.getdoc(getattr(module, name, None)) or "").split("\n\n")
            prose = [" ".join(part.split()) for part in parts]
            skip = (name + "(", ">>>", "..", "Parameters", "Returns", "Notes", "References")
            kept = [p[:300] for p in prose if len(p) > 40 and not p.startswith(skip)][:1]
            texts += kept
            truth += [k] * len(kept)
    return texts, np.array(truth)


def texts() -> Job:
    from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import MultinomialNB
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.tree import DecisionTreeClassifier

    whole, truth = paragraphs()
    order = np.random.default_rng(219).permutation(len(whole))
    train, job = order[:TRAINING], order[TRAINING:]
    first = CountVectorizer(preprocessor=lambda text: " ".join(text.lower().split()[:6]))
    tail = CountVectorizer(preprocessor=lambda text: " ".join(text.lower().split()[-8:]))
    linear = LogisticRegression(max_iter=500)
    panel: dict[str, tuple[Any, int, int]] = {
        "bayes-120": (make_pipeline(CountVectorizer(), MultinomialNB()), 120, 1),
        "bayes-40": (make_pipeline(CountVectorizer(), MultinomialNB()), 40, 2),
        "begins": (make_pipeline(first, MultinomialNB()), 150, 1),
        "characters": (make_pipeline(TfidfVectorizer(analyzer="char"), linear), 150, 1),
        "ends": (make_pipeline(tail, MultinomialNB()), 150, 1),
        "linear-60": (make_pipeline(TfidfVectorizer(), linear), 60, 2),
        "neighbour": (make_pipeline(TfidfVectorizer(), KNeighborsClassifier(1)), 80, 1),
        "tree": (make_pipeline(CountVectorizer(), DecisionTreeClassifier(max_depth=6)), 150, 3),
    }
    said = []
    for seed, (model, examples, _) in enumerate(panel.values()):
        some = np.random.default_rng([4541, seed]).choice(train, examples, replace=False)
        model.set_params(**{k: seed for k in model.get_params() if k.endswith("random_state")})
        model.fit([whole[i] for i in some], truth[some])
        said.append(model.predict([whole[i] for i in job]))
    contents = {f"text-{i:04d}": whole[i] for i in job}
    capacity = tuple(capacity for *_, capacity in panel.values())
    return Job(contents, truth[job], tuple(panel), capacity, np.column_stack(said), PACKAGES)


@dataclass(frozen=True)
class Scored:
    accuracy: float
    labels: float
    alone: float | None = None
    student: Mapping[str, Any] | None = None


def in_batch(job: Job, per_item: float, seed: int, shown: Mapping[str, Any] | None) -> Scored:
    truth = dict(zip(job.names, (job.classes[k] for k in job.truth), strict=True))
    budget = Budget(labels=int(per_item * len(job.names)))
    student = None if shown is None else Student()
    done = label_recorded(
        job.table, budget, seed=seed, truth=truth, student=student, contents=shown
    )
    assert done.accuracy is not None
    alone = None
    if done.student is not None and done.student["ready"]:
        first = len(job.labelers)
        own = done.table.labeler >= first
        alone = float((done.table.said[own] == job.truth[done.table.item[own]]).mean())
    return Scored(done.accuracy, done.asked / len(job.names), alone, done.student)


def in_stream(job: Job, per_item: float, seed: int, shown: Mapping[str, Any] | None) -> Scored:
    rng = np.random.default_rng(seed)
    order, slots = rng.permutation(len(job.names)), int(len(job.names) / RATE)
    cuts = np.sort(rng.integers(slots, size=len(order))).searchsorted(np.arange(slots + 1))
    panel = [
        Labeler(n, capacity=c, price=PRICE) for n, c in zip(job.labelers, job.capacity, strict=True)
    ]
    money = Budget(money=PRICE * per_item * len(order), slots=slots)
    scheduler = Scheduler(panel, job.classes, learning=LearnWhileServing(), budget=money)
    seat = None if shown is None else Student().join(scheduler, shown)
    row = {name: i for i, name in enumerate(job.names)}
    place = {name: m for m, name in enumerate(job.labelers)}
    right = labels = 0
    for slot in range(slots + 200):
        if slot < slots:
            new = order[cuts[slot] : cuts[slot + 1]].tolist()
            scheduler.arrive(Item(job.names[i], 40.0) for i in new)
        if seat is not None:
            seat.label()
        work = scheduler.assign()
        scheduler.observe(
            Label(a.item, a.labeler, job.classes[job.said[row[a.item], place[a.labeler]]])
            for a in work
        )
        labels += len(work)
        for left in scheduler.close():
            right += left.verdict.label == job.classes[job.truth[row[left.item]]]
        if seat is not None:
            seat.learn()
        if slot >= slots and not scheduler.outstanding:
            break
    told = None if seat is None else seat.record()
    return Scored(right / len(order), labels / len(order), None, told)


Way = Callable[[Job, float, int, Mapping[str, Any] | None], Scored]
WAYS: dict[str, Way] = {"batch": in_batch, "stream": in_stream}


def measure(
    job: Job, way: Way, seeds: Sequence[int], levels: Sequence[float]
) -> dict[str, dict[float, list[Scored]]]:
    found: dict[str, dict[float, list[Scored]]] = {"alone": {}, "student": {}, "random": {}}
    for per_item in levels:
        for name, kept in found.items():
            for seed in seeds:
                shown = {"alone": None, "student": job.contents, "random": job.random(seed)}[name]
                kept.setdefault(per_item, []).append(way(job, per_item, seed, shown))
    return found


def needed(curve: Mapping[float, float], goal: float) -> float | None:
    """Labels an item at which a curve reaches an accuracy, by linear interpolation."""
    before, low = 0.0, 0.0
    for labels, reached in curve.items():
        if reached >= goal:
            return before + (goal - low) / (reached - low) * (labels - before) if before else labels
        before, low = labels, reached
    return None


def told(values: Sequence[float]) -> str:
    spread = statistics.stdev(values) if len(values) > 1 else 0.0
    return f"{100 * statistics.fmean(values):5.1f} ± {100 * spread:3.1f}"


def report(found: dict[str, dict[float, list[Scored]]]) -> None:
    print(
        "| labels an item | panel alone | with a student | gain, least of the seeds "
        "| the model alone | random features | labels the panel alone needs |\n|-|-|-|-|-|-|-|"
    )
    mean = {
        name: {n: statistics.fmean(s.accuracy for s in runs) for n, runs in curve.items()}
        for name, curve in found.items()
    }
    most = max(mean["alone"])
    for n in mean["alone"]:
        runs = {name: curve[n] for name, curve in found.items()}
        scores = {name: [s.accuracy for s in some] for name, some in runs.items()}
        least = min(b - a for a, b in zip(scores["alone"], scores["student"], strict=True))
        alone = [s.alone for s in runs["student"] if s.alone is not None]
        saved = needed(mean["alone"], mean["student"][n])
        print(
            f"| {statistics.fmean(s.labels for s in runs['student']):.2f} "
            f"| {told(scores['alone'])} | {told(scores['student'])} | {100 * least:+.1f} "
            f"| {told(alone) if alone else '-'} | {told(scores['random'])} "
            f"| {f'more than {most:g}' if saved is None else f'{saved:.2f}'} |"
        )


def comments(folder: Path, seeds: int, levels: Sequence[float]) -> None:
    """Right verdicts on comments by LLM judges: a student, gold, and both."""
    table, truth = load(folder)
    with open(folder / "items.csv", encoding="utf-8", newline="") as file:
        contents = {row["task"]: row["text"] for row in csv.DictReader(file)}
    print("| labels an item | seed | alone | a student | 100 gold labels | both |\n|-|-|-|-|-|-|")
    for per_item in levels:
        for seed in range(seeds):
            some = np.random.default_rng([seed, 5]).permutation(len(table.items))[:COMMENTS]
            right = {table.items[i]: table.classes[truth[i]] for i in some if truth[i] >= 0}
            drawn = [table.items[i] for i in some[:GOLD]]
            gold = {item: right[item] for item in drawn if item in right}
            place = np.full(len(table.items), -1)
            place[some] = np.arange(len(some))
            there = place[table.item] >= 0
            codes = place[table.item[there]], table.labeler[there], table.said[there]
            names = [table.items[i] for i in some]
            part = LabelTable.from_codes(*codes, names, table.labelers, table.classes)
            cells = []
            for known in (None, gold):
                for student in (None, Student()):
                    done = label_recorded(
                        part,
                        Budget(labels=int(per_item * COMMENTS)),
                        seed=seed,
                        gold=known,
                        student=student,
                        contents={item: contents.get(str(item)) for item in part.items},
                    )
                    hits = [
                        done.verdicts[item].label == label
                        for item, label in right.items()
                        if item not in drawn
                    ]
                    silent = student is not None and not (done.student or {})["ready"]
                    cells.append(f"{100 * np.mean(hits):.1f}{' (silent)' if silent else ''}")
            print(f"| {per_item:g} | {seed} | {' | '.join(cells)} |", flush=True)


def main(options: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", choices=("digits", "texts"))
    parser.add_argument("--way", choices=tuple(WAYS))
    parser.add_argument("--labels", default=",".join(map(str, LABELS)))
    parser.add_argument("--comments", type=Path)
    chosen = parser.parse_args(list(options))
    levels = [float(n) for n in chosen.labels.split(",")]
    warnings.simplefilter("ignore")
    if chosen.comments is not None:
        comments(chosen.comments, chosen.seeds, levels)
        return
    for name, make in {"digits": digits, "texts": texts}.items():
        if chosen.only in (None, name):
            job = make()
            skills = (job.said == job.truth[:, None]).mean(axis=0)
            print(f"\n{name}: {len(job.names)} items, {len(job.classes)} classes, labelers right "
                  f"{100 * skills.min():.0f} to {100 * skills.max():.0f} %")  # fmt: skip
            for title, way in WAYS.items():
                if chosen.way in (None, title):
                    print(f"\n{name}, {title}, {chosen.seeds} seeds\n")
                    report(measure(job, way, range(chosen.seeds), levels))
