"""What came of a batch: verdicts, what they cost, the curve, and the labelers.

**How many labels a panel would need for an accuracy: a batch of made-up items is labelled.**

The labelers of the rehearsal label as they were found to (`Anchored`), each for itself. It is an
estimate: labelers who share errors need more labels than that, and those of whom few labels are
known, one or two an item, are better than they were found to be and need fewer (docs/student.md).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from venire.batch.choice import Alone, decide, owned
from venire.batch.labelers import FREE, Pupil, Recorded, recorded_work
from venire.batch.rounds import (
    SURE,
    Book,
    Consulted,
    Point,
    Terms,
    run_rounds,
    share_right,
    truth_codes,
)
from venire.display import block, facts, table
from venire.estimators.anchor import Anchored
from venire.estimators.base import winners
from venire.estimators.clones import CloneGroup
from venire.estimators.dependence import relations
from venire.estimators.frames import Backend, frame_of
from venire.estimators.teaching import ALONE, Checked, ToldSkills
from venire.estimators.voices import Voices
from venire.labels import LabelTable
from venire.model import Budget, ExitReason, Verdict
from venire.tools.arrays import Floats, Ints

#: So many labelers, those who cost or said most, are left out one by one for the report.
MOST_LEFT_OUT = 50


#: The items of a report whose rationales are shown.
SHOWN_REASONS = 20


class LabelerReport(NamedTuple):
    """One labeler of a batch.

    `skill` is the probability that a label of theirs is right, `low` and `high` its 90 % interval.
    `changed` counts the verdicts that would be others without their labels, None where that was not
    worked out; `right_without` is the share of right verdicts then, None without truth. Of the
    labels on items with gold, `known`, `right` are right.
    """

    id: Hashable
    labels: int
    spent: float
    price: float
    skill: float
    low: float
    high: float
    changed: int | None
    right_without: float | None
    known: int = 0
    right: int = 0


@dataclass(frozen=True, eq=False)
class Labelled:
    """The verdicts of a batch; `venire.batch.label` returns it.

    Attributes
    ----------
    table : LabelTable
        The labels that were bought, and what a student said.
    posteriors : array, items x classes
        The probability of each class for each item, by `Auto`.
    confidence : array
        How sure each verdict is, by `Auto`; 0 without a label.
    codes : array
        The verdict of each item, as the number of its class.
    counts, costs_paid : arrays
        The labels of each item that were bought, and what was paid for it.
    reasons : tuple of ExitReason
        Why an item got no further label: `confident` (it reached its target), `exhausted` (all who
        may label it did), `budget`, or `no_gain` (no label was worth it); `undecided` for
        an item that nobody is left to label and that is below its target.
    spent : float
        What was paid for all labels.
    curve : tuple of Point
        Expected accuracy against labels and money; with truth, also the share of right verdicts.
    student : dict or None
        Of a student: version, verdicts it was taught, agreement, what it saves (docs/student.md).
    families : tuple of CloneGroup
        Labelers who count as a family, with the correlation of their errors and their worth.
    undecided : int
        How many verdicts hang on who shares errors.
    relations : tuple of str
        Who shares errors or may share them, a sentence each (`Auto.relations_`).
    rests_on : str
        What the confidences rest on: "by labels alone", or "checked on 50 gold labels".
    checked : Checked or None
        With gold: which explanations it speaks for (`Auto.checked_`).
    panel : int
        How many labelers were asked: the first ones of the table; a student comes after them.
    said : dict
        Confidence and rationale of labels that came with them, by (item, labeler).
    expert : Consulted or None
        What a trusted labeler was asked and said: the verdicts on these items; not in `table`.
    told_skills : ToldSkills or None
        With gold: how good the labelers are by it (`Auto.told_skills_`).
    stale : tuple of str
        Whose answers in the journal are of another configuration, a sentence each.
    alone : Alone or None
        Who was good enough to label most items alone, and what that is expected to lose.
    declared : dict
        The family of each labeler of whom one was declared.
    """

    table: LabelTable
    posteriors: Floats
    confidence: Floats
    codes: Ints
    counts: Ints
    costs_paid: Floats
    reasons: tuple[ExitReason, ...]
    spent: float
    asked: int
    curve: tuple[Point, ...]
    budget: Budget | None
    target: Floats
    weight: Floats
    truth: Ints | None = None
    student: dict[str, Any] | None = None
    families: tuple[CloneGroup, ...] = ()
    undecided: int = 0
    relations: tuple[str, ...] = ()
    rests_on: str = ALONE
    checked: Checked | None = None
    panel: int = 0
    said: Mapping[tuple[Any, Any], tuple[float | None, str | None]] = field(default_factory=dict)
    expert: Consulted | None = None
    stale: tuple[str, ...] = ()
    alone: Alone | None = None
    told_skills: ToldSkills | None = None
    declared: Mapping[Any, Hashable] = field(default_factory=dict)
    _paid: Floats = field(default_factory=lambda: np.empty(0), repr=False)
    _price: Floats = field(default_factory=lambda: np.empty(0), repr=False)

    def __repr__(self) -> str:
        spent = f"labels={self.asked}, spent={self.spent:g}"
        sure = f"expected_accuracy={self.expected_accuracy:.3f}"
        return f"Labelled(items={len(self.table.items)}, {spent}, {sure})"

    def _repr_html_(self) -> str:
        """What a notebook shows: what was bought, and the first verdicts."""
        spent = {"labels": int(self.asked), "spent": self.spent}
        right = {"expected accuracy": self.expected_accuracy, "right": self.accuracy}
        return block("Labelled", [facts(spent | right), table(self.columns())])

    @cached_property
    def verdicts(self) -> dict[Any, Verdict]:
        """The verdict of each item; an item without a label has none."""
        return {item: Verdict(label, confidence) for item, label, confidence, *_ in self.rows()}

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Of each item: id, label, confidence, labels, cost, reason."""
        names, sure = self.table.classes, self.confidence.tolist()
        columns = (self.codes.tolist(), sure, self.counts.tolist(), self.costs_paid.tolist())
        for item, k, q, labels, cost, reason in zip(
            self.table.items, *columns, self.reasons, strict=True
        ):
            yield item, names[k] if q else None, q, labels, cost, str(reason)

    def columns(self, probabilities: bool = True) -> dict[str, list[Any]]:
        """The verdicts as columns: task, label, confidence, labels, cost, reason, p(class).

        >>> from venire.batch import label_recorded
        >>> rows = [(i, w, i % 2) for i in range(40) for w in "abcde"]
        >>> list(label_recorded(rows, 80.0).columns())
        ['task', 'label', 'confidence', 'labels', 'cost', 'reason', 'p(0)', 'p(1)']
        """
        names = ("task", "label", "confidence", "labels", "cost", "reason")
        found = dict(zip(names, map(list, zip(*self.rows(), strict=True)), strict=True))
        if probabilities:
            named = zip(self.table.classes, self.posteriors.T.tolist(), strict=True)
            found |= {f"p({name})": values for name, values in named}
        return found

    def bought(self) -> dict[str, list[Any]]:
        """The labels that were bought, as columns that `as_table` takes: task, worker, label.

        Also `confidence` and `rationale`, where labelers stated any, and `family`, where any is
        declared.

        >>> from venire.batch import label_recorded
        >>> done = label_recorded([(i, w, i % 2) for i in range(9) for w in "abc"], 12.0)
        >>> [len(column) for column in done.bought().values()]
        [12, 12, 12]
        """
        table = self.table
        asked = np.flatnonzero(table.labeler < self.panel)
        item, who, said = (a[asked].tolist() for a in (table.item, table.labeler, table.said))
        found = {
            "task": [table.items[i] for i in item],
            "worker": [table.labelers[m] for m in who],
            "label": [table.classes[k] for k in said],
        }
        told = [
            self.said.get(row, (None, None)) for row in zip(*list(found.values())[:2], strict=True)
        ]
        for place, name in enumerate(("confidence", "rationale")):
            column = [one[place] for one in told]
            if any(value is not None for value in column):
                found[name] = column
        if self.declared:
            found["family"] = [self.declared.get(name) for name in found["worker"]]
        return found

    def explained(self, most: int = SHOWN_REASONS) -> list[dict[str, Any]]:
        """The items with rationales whose verdicts are least sure: what was said of each, and why.

        >>> from venire.batch import label_recorded
        >>> label_recorded([(i, w, i % 2) for i in range(9) for w in "abc"], 12.0).explained()
        []
        """
        with_reasons = {item for (item, _), (_, why) in self.said.items() if why}
        rows = sorted(
            (r for r in self.rows() if r[0] in with_reasons), key=lambda r: (r[2], str(r[0]))
        )
        votes: dict[Any, list[dict[str, Any]]] = {row[0]: [] for row in rows[:most]}
        bought = self.bought()
        for item, labeler, label in zip(*list(bought.values())[:3], strict=True):
            if item in votes:
                sure, why = self.said.get((item, labeler), (None, None))
                votes[item].append(
                    {"labeler": labeler, "label": label, "confidence": sure, "rationale": why}
                )
        return [
            {"item": item, "label": label, "confidence": sure, "votes": votes[item]}
            for item, label, sure, *_ in rows[:most]
        ]

    def to_frame(self, backend: Backend | None = None) -> Any:
        """The verdicts as a dataframe of pandas, polars or pyarrow, with p(class).

        >>> from venire.batch import label_recorded
        >>> rows = [(i, w, i % 2) for i in range(40) for w in "abcde"]
        >>> done = label_recorded(rows, 80.0)
        >>> done
        Labelled(items=40, labels=80, spent=80, expected_accuracy=...)
        >>> done.to_frame("pandas").shape
        (40, 8)
        """
        return frame_of(self.columns(), backend)

    def of_day(self, day: date | None) -> Labelled:
        """The same, with the day of the gold that confidences were checked on."""
        if self.checked is None or day is None:
            return self
        known = self.checked._replace(day=day)
        return replace(self, checked=known, rests_on=known.rests_on)

    @property
    def expected_accuracy(self) -> float:
        """The mean confidence of the verdicts, by the weights of the items."""
        return float(np.average(self.confidence, weights=self.weight))

    @property
    def sure(self) -> int:
        """How many items have reached their target, or 0.95 without one."""
        goal = np.where(np.isfinite(self.target), self.target, SURE)
        return int((self.confidence >= goal).sum())

    @property
    def accuracy(self) -> float | None:
        """The share of right verdicts among items of known truth; None without truth."""
        return None if self.truth is None else share_right(self.codes, self.truth)

    @cached_property
    def labelers(self) -> tuple[LabelerReport, ...]:
        """Each labeler: skill, cost, and what the verdicts would have been without them.

        Left out are the labels, and everybody's skills are learned again without them (by
        `Anchored`), so it is what would have been made of the other labels; without this labeler
        others would have been asked more.
        """
        fitted, told = Anchored().fit(self.table), self.told_skills
        given = np.bincount(self.table.labeler, minlength=len(self.table.labelers))
        left_out = self._left_out(fitted, given)
        skills, ends = fitted.competences_, fitted.skill_intervals_
        hits = np.zeros((2, len(given)), np.int64)
        if told is not None:
            skills, ends, hits = told.skills, told.intervals(), np.array([told.known, told.right])
        return tuple(
            LabelerReport(
                name,
                int(given[m]),
                float(self._paid[m]),
                float(self._price[m]),
                float(skills[m]),
                float(ends[m, 0]),
                float(ends[m, 1]),
                *left_out.get(m, (None, None)),
                known=int(hits[0, m]),
                right=int(hits[1, m]),
            )
            for m, name in enumerate(self.table.labelers)
        )

    def _left_out(
        self, fitted: Anchored, given: Ints
    ) -> dict[int, tuple[int | None, float | None]]:
        from venire.labels.table import keep_labels

        found: dict[int, tuple[int | None, float | None]] = {}
        usual = np.argmax(fitted.posteriors_, axis=1)
        by_size = np.lexsort((-given, -self._paid))
        for m in by_size[given[by_size] > 0][:MOST_LEFT_OUT].tolist():
            rest = keep_labels(self.table, self.table.labeler != m)
            if not rest.labeler.size:
                continue
            other = np.argmax(Anchored().fit(rest).posteriors_, axis=1)
            none = np.diff(rest.start) == 0
            changed = int(((other != usual) | (none & (self.counts > 0))).sum())
            right = None
            if self.truth is not None:
                right = share_right(np.where(none, -2, other), self.truth)
            found[m] = changed, right
        return found

    def record(self) -> dict[str, Any]:
        """The report, for JSON: see docs/budget.md for its fields.

        >>> from venire.batch import label_recorded
        >>> rows = [(i, w, i % 2) for i in range(40) for w in "abcde"]
        >>> record = label_recorded(rows, 80.0, truth={0: 0}).record()
        >>> record["items"], record["budget"]["money"], record["labelers"][0]["id"]
        (40, 80.0, 'a')
        """
        limit = self.budget
        return {
            "items": len(self.table.items),
            "labels": int(self.asked),
            "spent": self.spent,
            "budget": limit and {"money": limit.money, "labels": limit.labels},
            "expected_accuracy": _plain(self.expected_accuracy),
            "sure": self.sure,
            "accuracy": _plain(self.accuracy),
            "labels_per_item": self.asked / len(self.table.items),
            "reasons": {str(why): self.reasons.count(why) for why in sorted(set(self.reasons))},
            "classes": [str(name) for name in self.table.classes],
            "curve": [_record(point) for point in self.curve],
            "labelers": [_record(one) for one in self.labelers],
            "relations": list(self.relations),
            "families": [group.record() for group in self.families],
            "undecided": self.undecided,
            "confidence": "; stale: ".join([self.rests_on, *self.stale]),
            "stale": list(self.stale),
            "checked": self.checked and self.checked.record(),
            **({} if self.student is None else {"student": self.student}),
            **({} if self.expert is None else {"expert": self.expert.record()}),
            **({} if self.alone is None else {"alone": self.alone.record()}),
            **({"explained": shown} if (shown := self.explained()) else {}),
        }

    def html(self, more: Iterable[str] = ()) -> str:
        """The report as one HTML page; `more` is HTML after the labelers.

        >>> from venire.batch import label_recorded
        >>> rows = [(i, w, i % 2) for i in range(40) for w in "abcde"]
        >>> "<svg" in label_recorded(rows, 80.0).html()
        True
        """
        from venire.batch.page import page_of

        return page_of(self.record(), more)

    def write_report(self, path: str | Path, more: Iterable[str] = ()) -> None:
        """Write the HTML page to a file; `more` is HTML after the labelers."""
        Path(path).write_text(self.html(more), encoding="utf-8")


def stale_words(stale: Mapping[str, int]) -> tuple[str, ...]:
    """Whose answers in a journal are of another configuration, in words.

    >>> stale_words({"strict": 312})
    ('the prompt or the model of strict changed after 312 of its answers',)
    """
    return tuple(
        f"the prompt or the model of {name} changed after {count:,} of its answers"
        for name, count in stale.items()
    )


def _record(row: Point | LabelerReport) -> dict[str, Any]:
    return {key: _plain(value) for key, value in row._asdict().items()}


def _plain(value: Any) -> Any:
    """A value for JSON: NaN is null, a name is text."""
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return value if isinstance(value, int | str | None) else str(value)


def settle(book: Book, curve: Sequence[Point], expert: Consulted | None = None) -> Labelled:
    """The verdicts of all labels, and what there is to say of them."""
    work, source, terms, bought = book.work, book.source, book.terms, book.table()
    pupil, truth = terms.pupil, terms.truth
    found = book.hear(now=True, seed=terms.seed)[1]
    table = bought if pupil is None else pupil.join(bought)
    q, n, counts = found.posterior, len(work.items), np.diff(bought.start)
    there, paid_too = np.diff(table.start) > 0, np.zeros(n)
    if expert is not None:
        known = [expert.answers.get(item) for item in table.items]
        settled = [i for i, label in enumerate(known) if label is not None]
        code = {name: k for k, name in enumerate(table.classes)}
        q[settled] = np.eye(q.shape[1])[[code[known[i]] for i in settled]]
        there[settled] = True
        paid_too = np.array([expert.costs.get(item, 0.0) for item in table.items])
    matrix = book.costs
    if matrix is None:
        codes = winners(q, table.items, table.classes, terms.seed)
    else:
        codes = decide(q, matrix)[0]
    confidence = np.where(there, q[np.arange(n), codes], 0.0)
    spent = book.spent + float(paid_too.sum())
    right = None if truth is None else truth_codes(truth, work.items, source.classes)
    last = float(np.average(confidence, weights=work.weight))
    end = Point(book.labels, spent, last, None if right is None else share_right(codes, right))
    points = [p for p in curve if p.labels < book.labels]
    voices = len(table.labelers) - len(work.labelers)
    paid = np.bincount(work.labeler, book.cost, minlength=len(table.labelers))
    spoke, fitted = book.voices, found.fitted
    kin, alike = (
        owned(groups, spoke, work.labelers) for groups in (fitted.families_, fitted.suspects_)
    )
    return Labelled(
        table,
        q,
        confidence,
        codes,
        counts,
        np.bincount(work.item, book.cost, minlength=n) + paid_too,
        tuple(_reasons(book, confidence * found.learned)),
        spent,
        book.labels,
        (*points, end),
        terms.budget,
        work.target,
        work.weight,
        right,
        None if pupil is None else _told(pupil, bought, last if voices else None, terms.seed),
        kin,
        fitted.undecided_,
        relations(kin, alike, fitted.undecided_, fitted.checked_ is not None),
        fitted.rests_on_,
        fitted.checked_,
        len(work.labelers),
        _said(book),
        expert,
        (),
        book.alone,
        _told_skills(fitted.told_skills_, spoke, len(table.labelers)),
        work.families or {},
        paid.astype(np.float64),
        np.concatenate([source.price, np.zeros(voices)]),
    )


def _said(book: Book) -> dict[tuple[Any, Any], tuple[float | None, str | None]]:
    """Confidence and rationale of the labels that have one, by item and labeler."""
    sure, work, source = book.source.confidence, book.work, book.source
    known = set(source.rationales)
    if sure is not None:
        known |= set(np.flatnonzero(~np.isnan(sure)).tolist())
    item, found = work.item, {}
    for e in sorted(known):
        if book.said[e] >= 0:
            value = None if sure is None or np.isnan(sure[e]) else float(sure[e])
            name = work.items[item[e]], work.labelers[work.labeler[e]]
            found[name] = value, source.rationales.get(e)
    return found


def _told_skills(
    told: ToldSkills | None, voices: Voices | None, labelers: int
) -> ToldSkills | None:
    """Skills of voices as those of the labelers who have them; a student comes last in both."""
    if told is None or voices is None:
        return told
    more = np.arange(labelers)[labelers - (len(told.known) - len(voices.names)) :]
    return told.merged(np.concatenate([voices.labeler, more]), labelers)


def _told(pupil: Pupil, bought: LabelTable, reached: float | None, seed: int) -> dict[str, Any]:
    """What is reported of a student: its record, and what it saves if it says anything."""
    record: dict[str, Any] = pupil.record()
    if reached is None:
        return record | {"saves": None}
    used = bought.labeler.size / len(bought.items)
    needed = labels_needed(bought, reached, seed)
    without = None if needed is None else max(used, needed)
    return record | {"saves": {"labels_per_item": used, "labels_per_item_without": without}}


def _reasons(book: Book, confidence: Floats) -> Iterator[ExitReason]:
    work, source, budget = book.work, book.source, book.terms.budget
    free = (book.said == FREE) & source.open[work.labeler]
    cheapest = np.full(len(confidence), np.inf)  # of those who may still label the item
    np.minimum.at(cheapest, work.item[free], source.most[work.labeler[free]])
    left = budget and budget.left(book.spent, book.labels)
    broke = np.full(len(confidence), source.ended or (left is not None and left.labels == 0))
    if left is not None and left.money is not None:
        broke |= left.money + 1e-9 < cheapest
    wanted = np.isfinite(work.target)
    reached = wanted & (confidence >= work.target)
    found = wanted, reached, np.isfinite(cheapest), broke
    for has_goal, is_sure, others, spent in zip(*found, strict=True):
        if is_sure:
            yield ExitReason.CONFIDENT
        elif not others:
            yield ExitReason.UNDECIDED if has_goal else ExitReason.EXHAUSTED
        else:
            yield ExitReason.BUDGET if spent else ExitReason.NO_GAIN


#: Made-up items, and the most labels for each.
ITEMS: Final = 1000
MOST: Final = 12


def labels_needed(bought: LabelTable, accuracy: float, seed: int = 0) -> float | None:
    """Labels an item with which the panel alone would be as accurate; None for more than MOST.

    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(2, size=(300, 1))
    >>> said = np.where(rng.random((300, 6)) < 0.7, truth, 1 - truth)
    >>> few, many = (labels_needed(LabelTable.from_matrix(said), a) for a in (0.75, 0.8))
    >>> 1 <= few < many
    True
    """
    truth, table = _made_up(bought, seed)
    n = len(table.items)
    work, source = recorded_work(table), Recorded(table, np.ones(len(table.labelers)))

    budget = Budget(labels=n * min(MOST, len(table.labelers)))
    known = dict(enumerate(truth.tolist()))
    _, curve = run_rounds(work, source, Terms(budget, seed=seed, truth=known))
    before, low = 0.0, 0.0
    for point in curve:
        here, reached = point.labels / n, point.right or 0.0
        if reached >= accuracy:
            return before + (accuracy - low) / (reached - low) * (here - before) if before else here
        before, low = here, max(low, reached)
    return None


def _made_up(bought: LabelTable, seed: int) -> tuple[NDArray[np.int64], LabelTable]:
    """Items of classes as frequent as they were found to be, each labelled by everybody."""
    fitted, rng = Anchored().fit(bought), np.random.default_rng(seed)
    n, K = min(ITEMS, len(bought.items)), len(bought.classes)
    truth = rng.choice(K, p=fitted.priors_ / fitted.priors_.sum(), size=n)
    gave = np.bincount(bought.labeler, minlength=len(bought.labelers)) > 0
    sums = fitted.confusions_[gave].cumsum(axis=2)[:, truth]  # labelers x items x classes
    said = (sums[..., :-1] < rng.random((*sums.shape[:2], 1))).sum(axis=2)
    return truth, LabelTable.from_matrix(said.T, K)
