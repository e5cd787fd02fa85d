"""What `venire label` and `venire judge` share: budgets, progress, and what is written and said."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from venire.cli.shared import screen
from venire.cli.shared.guarantees import Guaranteed, Promise, guarantee_html, guarantee_lines
from venire.cli.shared.tables import CostsGiven, Probabilities, related_lines
from venire.errors import FileError, InputError

if TYPE_CHECKING:
    from venire.audits import Guarantee
    from venire.batch import Labelled, Progress
    from venire.files.audits import KnownLabels
    from venire.model import Budget


BUDGET = "The most to spend, in the currency of the prices."
LABELS = "The most labels to buy."
PER_ITEM = "The most labels to buy, on average per item."
TARGET = "An item is done when its verdict has this confidence."
TRUTH = "Known true labels, for the report only: a file with task,label."
GOLD = "Known true labels to learn from, in every round: a file with task,label."
EXPERT_SHARE = (
    "The share of --budget for the trusted labeler, who sees the least certain items at the end. "
    "[default: 0.1 if there is one]"
)
ALONE = (
    "With --gold: let one labeler label the rest alone, if that loses at most this share of "
    "right verdicts, such as 0.01. All label the items with gold, and as many others, before that."
)
LABELS_OUT = "Write the labels that were bought, as other commands read them: task,worker,label."
OUT = (
    "Write the verdicts, .jsonl, .csv, .parquet or .dataset: "
    "task,label,confidence,labels,cost,reason."
)
REPORT = "Write the report as one HTML file."
JOURNAL = (
    "Where every answer is kept, so that a run can resume. [default: the name of --out + .journal]"
)
SEED = "Seed of the draws of labelers."
STUDENT = "Let a model learn from the labels and vote too; this field of an item is what it sees."


@dataclass(frozen=True, kw_only=True)
class Buying:
    """What is paid for, what is known, and what is written: the options of `label` and `judge`."""

    budget: Annotated[float | None, typer.Option(metavar="X", help=BUDGET)] = None
    labels: Annotated[int | None, typer.Option(metavar="N", help=LABELS)] = None
    labels_per_item: Annotated[float | None, typer.Option(metavar="X", help=PER_ITEM)] = None
    target: Annotated[float | None, typer.Option(metavar="X", help=TARGET)] = None
    costs: CostsGiven = None
    truth: Annotated[Path | None, typer.Option(metavar="FILE", help=TRUTH)] = None
    gold: Annotated[Path | None, typer.Option(metavar="FILE", help=GOLD)] = None
    expert_share: Annotated[float | None, typer.Option(metavar="X", help=EXPERT_SHARE)] = None
    alone: Annotated[float | None, typer.Option(metavar="X", help=ALONE)] = None
    guaranteed: Guaranteed
    labels_out: Annotated[Path | None, typer.Option(metavar="FILE", help=LABELS_OUT)] = None
    probabilities: Probabilities = False
    report: Annotated[Path | None, typer.Option(metavar="FILE", help=REPORT)] = None
    journal: Annotated[Path | None, typer.Option(metavar="FILE", help=JOURNAL)] = None
    student: Annotated[str | None, typer.Option(metavar="FIELD", help=STUDENT)] = None
    seed: Annotated[int, typer.Option(help=SEED)] = 0

    def checked(self, out: Path | None, *sources: Any) -> tuple[Path | None, Promise | None]:
        """The gold that teaches and what is promised, after checks of all files."""
        from venire.files import check_targets

        gold, promise = self.guaranteed.promise(self.gold)
        check_targets(
            (out, self.labels_out), (*sources, self.truth, gold, promise and promise.gold)
        )
        if self.probabilities and out is None:
            raise InputError("--probabilities needs --out: give the file for the verdicts")
        report = self.report
        if report and (report.suffix != ".html" or not report.resolve().parent.is_dir()):
            raise InputError(
                f"got --report {report}, expected a .html file in a folder that exists"
            )
        return gold, promise

    def terms(self) -> dict[str, Any]:
        """On what terms labels are bought, as `venire.batch` takes them."""
        from venire.costs import costs_of_text

        return {
            "target": self.target,
            "costs": costs_of_text(self.costs) if self.costs else None,
            "seed": self.seed,
            "expert_share": self.expert_share,
            "alone": self.alone,
        }

    def asking(self, out: Path) -> dict[str, Any]:
        """What is needed where somebody is asked: the journal, the student and the truth."""
        from venire.files import read_verdicts
        from venire.student import Student

        return {
            "journal": self.journal or out.with_name(out.name + ".journal"),
            "student": None if self.student is None else Student(field=self.student),
            "truth": None if self.truth is None else dict(read_verdicts(self.truth)),
        }

    def lessons(
        self, known: KnownLabels, promise: Promise | None, tasks: Iterable[Any]
    ) -> dict[str, Any]:
        """What gold there is to learn from, after checks of all gold."""
        from venire.estimators.gold import most_shown

        if promise is not None:
            promise.check(map(str, tasks), known)
        drawn = len(known.labels) - len(known.asked)
        most = most_shown(drawn)
        if self.target is not None and self.target > most:
            screen.warn(
                f"{drawn:,} gold labels can show at most {100 * most:.1f} %, so no verdict reaches "
                f"--target {self.target:g}: give more gold, or a lower target"
            )
        return {"gold": known.labels or None, "asked": known.asked}

    def limit(self, items: int) -> Budget | None:
        """The budget for this number of items; None without any."""
        from venire.model import Budget

        labels, per_item = self.labels, self.labels_per_item
        if labels is not None and per_item is not None:
            raise InputError("--labels and --labels-per-item exclude each other: drop one of them")
        if per_item is not None:
            if not 0 < per_item < 1e6:
                raise InputError(f"got --labels-per-item {per_item!r}, expected a number above 0")
            labels = round(per_item * items)
        if self.budget is None and labels is None:
            return None
        return Budget(money=self.budget, labels=labels)

    def conclude(
        self,
        done: Labelled,
        out: Path | None,
        promise: Promise | None,
        known: KnownLabels,
        as_json: bool,
        more: Mapping[str, Any] | None = None,
        html: Iterable[str] = (),
        order: Sequence[str] = (),
    ) -> None:
        """Write the verdicts, the labels and the report, with `html` at its end, and print it.

        Probabilities stand in the `order` of the classes, where they have one; JSON has `more`.
        """
        held = promise and _held(promise, done, known)
        self._write(done, out, held, order)
        if self.report is not None:
            done.write_report(self.report, [*(guarantee_html(held) if held else ()), *html])
        promised = ["", *guarantee_lines(held)] if held else []

        def record() -> dict[str, Any]:
            return done.record() | ({"guarantee": held.record()} if held else {}) | dict(more or {})

        screen.show(record, chain(_lines(done), promised), as_json)

    def _write(
        self, done: Labelled, out: Path | None, held: Guarantee | None, order: Sequence[str]
    ) -> None:
        from venire.files import columns_output, write_outputs

        outputs = []
        if out is not None:
            columns = done.columns(self.probabilities)
            names = [f"p({name})" for name in order if f"p({name})" in columns]
            columns |= {name: columns.pop(name) for name in names}
            if held is not None:
                marks = ["yes" if str(task) in held.tasks else "no" for task in columns["task"]]
                columns["guaranteed"] = marks
            verdicts = columns_output(out, columns)
            outputs.append(verdicts._replace(classes=list(done.table.classes)))
        if self.labels_out is not None:
            outputs.append(columns_output(self.labels_out, done.bought()))
        write_outputs(outputs)


def _held(promise: Promise, done: Labelled, taught: KnownLabels) -> Guarantee:
    """Which verdicts are guaranteed; what nobody labelled counts as wrong."""
    rows = [(str(task), label, sure) for task, label, sure, *_ in done.rows()]
    verdicts = {task: "" if label is None else str(label) for task, label, _ in rows}
    return promise.kept(verdicts, {task: float(sure) for task, _, sure in rows}, taught)


def gold_of_file(
    path: Path | None,
    tasks: Sequence[Any] = (),
    classes: Collection[str] | None = None,
    advice: str = "name all of them with --classes, or correct it",
) -> KnownLabels:
    """The known labels of a file that is to be learned from; those not filled in are skipped.

    A label that is none of the `classes`, where these are known, is refused with the `advice`, and
    so is a file that knows none of the `tasks`.
    """
    from venire.files import read_known
    from venire.files.audits import KnownLabels

    if path is None:
        return KnownLabels({})
    known = read_known(path)
    odd = next((said for said in known.labels.values() if classes and said not in classes), None)
    if odd is not None:
        raise InputError(
            f"{path} has the label {odd!r}, which is not one of the classes {list(classes or ())}: "
            f"{advice}"
        )
    if known.labels and not set(map(str, tasks)).intersection(known.labels):
        raise FileError(path, None, f"none of its tasks is among the items, such as {tasks[0]!r}")
    return known


def say_continued(journal: Path) -> int:
    """Say it if a journal has answers already, which are paid for; how many there are."""
    from venire.batch.asking import earlier

    answers, spent = earlier(journal)
    if answers:
        screen.say(
            f"continues {journal}: {answers:,} answers, {spent:,.6g} spent (for a run of its own, "
            "give another --journal or --out)"
        )
    return answers


@contextmanager
def watched() -> Iterator[Callable[[Progress], None] | None]:
    """Progress on a terminal: spend, sure items, expected accuracy, time left."""
    began = time.monotonic()
    with screen.progress("asking", 1.0) as update:

        def watch(now: Progress) -> None:
            if update is not None:
                update(completed=now.share or 0.0, description=_words(now, began))

        yield None if update is None else watch


def _words(now: Progress, began: float) -> str:
    """One line: what was spent and reached, and how long it may still take."""
    words = f"{now.labels:,} labels, {now.spent:,.6g} spent"
    if now.expected:
        words += f", {now.sure:,} sure, expected accuracy {100 * now.expected:.1f} %"
    if now.share:
        left = (time.monotonic() - began) * (1 - now.share) / now.share
        words += f", {left:.0f} s left" if left < 120 else f", {left / 60:.0f} min left"
    return words


#: How many labelers are listed, those who cost most.
LISTED = 20


def _lines(done: Labelled) -> Iterator[str]:
    """What was spent and reached, and the labelers."""
    from venire.batch.page import ENDS

    record = done.record()
    budget = record["budget"] or {}
    money = f" of {budget['money']:,.6g}" if budget.get("money") is not None else ""
    most = f" of {budget['labels']:,}" if budget.get("labels") is not None else ""
    yield f"items     {record['items']:,}"
    yield f"labels    {record['labels']:,}{most}, {record['labels_per_item']:.2f} an item"
    yield f"spent     {record['spent']:,.6g}{money}"
    ends = ", ".join(f"{ENDS.get(why, why)} {count:,}" for why, count in record["reasons"].items())
    yield f"ended     {ends}"
    yield f"sure      {record['sure']:,}"
    yield f"expected  {100 * record['expected_accuracy']:.1f} % right, {record['confidence']}"
    if done.stale:
        yield "stale     remove the journal to ask again; what is in the cache costs nothing"
    shares = {"gold": done.checked, "alone": done.alone, "expert": done.expert}
    yield from (f"{name:10}{found.words}" for name, found in shares.items() if found is not None)
    if record["accuracy"] is not None:
        yield f"right     {100 * record['accuracy']:.1f} % of those of known truth"
    if "student" in record:
        yield f"student   {_student(record['student'])}"
    yield from (f"related   {line}" for line in related_lines(done.relations))
    yield ""
    yield from _labelers(record["labelers"])


def _student(record: dict[str, Any]) -> str:
    """What became of a student, in one line."""
    if record["agreement"] is None:
        return "too few labels to learn from"
    agrees = f"agrees with {100 * record['agreement']:.0f} % of the verdicts it was not taught"
    if not record["ready"]:
        return f"learned nothing ({agrees}), and said nothing"
    needed = record["saves"]["labels_per_item_without"]
    without = "more than 12" if needed is None else f"about {needed:.1f}"
    return f"version {record['version']}, {agrees}; without it {without} labels an item"


def _labelers(labelers: list[dict[str, Any]]) -> Iterator[str]:
    compared = any(one["right_without"] is not None for one in labelers)
    ranked = sorted(labelers, key=lambda one: (-one["spent"], -one["labels"]))
    known = any(one["known"] for one in ranked)
    wide = max(7, *(len(str(one["id"])) for one in ranked[:LISTED]))
    heads = "labels      spent  skill  90 % interval" + ("  right on gold" if known else "")
    tail = "  right without" if compared else ""
    yield f"{'labeler':{wide}}  {heads}  verdicts changed without{tail}"
    for one in ranked[:LISTED]:
        changed, right = one["changed"], one["right_without"]
        line = (
            f"{one['id']!s:{wide}}  {one['labels']:6,}  {one['spent']:9,.4g}  {one['skill']:5.2f}"
            f"   {one['low']:.2f} to {one['high']:.2f}"
        )
        on_gold = f"{one['right']:,} of {one['known']:,}"
        line += f"{on_gold:>15}" if known else ""
        line += f"  {'-' if changed is None else f'{changed:,}':>24}"
        if compared:
            line += f"  {'-' if right is None else f'{100 * right:.1f} %':>13}"
        yield line
    if len(ranked) > LISTED:
        yield f"and {len(ranked) - LISTED} more"
