"""The table of the comparison, on the screen and in files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich import box
from rich.table import Table

from venire_research.common.files import as_csv
from venire_research.digits.comparison import METHODS, Method, Trial, mean_and_spread
from venire_research.digits.equal import Row, equal_rows, summary
from venire_research.digits.outcome import Score
from venire_research.digits.panel import RATE, SLOTS, TRAINING_IMAGES, DigitJob

__all__ = ["EQUAL_NOTES", "NOTES", "as_equal_table", "as_table", "document", "save"]

#: heading, measure, factor, decimals
_COLUMNS = (
    ("right,\nof all\n%", "right_of_all", 100.0, 1),
    ("right, of\nanswered\n%", "right_of_answered", 100.0, 1),
    ("\nanswered\n%", "answered", 100.0, 1),
    ("\nlabels\neach", "labels_per_item", 1.0, 2),
    ("\nmoney\neach", "money_per_item", 1.0, 2),
    ("slots\nto\nexit", "response", 1.0, 2),
    ("true\nutility\neach", "true_utility", 1.0, 2),
)

EQUAL_TITLE = "At equal labels and equal money"

EQUAL_NOTES = (
    "Rivals spread as many labels as venire bought, or as much money, evenly over the same images, "
    "on labelers drawn at random, and take as long as they like. They decide at the end; venire "
    "decides at once, and again at the end by the same labels. Which judge is best is known by the "
    "truth."
)

NOTES = (
    "All label the same images, at the same times, and get the same labels. Answered: left with "
    "a verdict before the stream ended; a learning phase skips images, a growing queue "
    "leaves them waiting. Slots are means from the arrival on; what still waits counts up to the "
    "end. True utility: the weight (3 to 10) if the verdict is right, else 0, less the slots to "
    "the exit and the money. Dawid-Skene decides when the stream is over, by all of its labels."
)


def as_table(trials: Sequence[Trial], ascii_only: bool = False) -> Table:
    """Mean over the seeds, and under it the standard deviation."""
    sign = "+-" if ascii_only else "±"
    seeds = len({trial.seed for trial in trials})
    streams = f"{seeds} streams" if seeds > 1 else "one stream"
    title = f"Mean over {streams}" + (f", {sign} standard deviation" if seeds > 1 else "")
    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    table.padding, table.show_edge = (0, 0), False
    table.add_column("\n\nwho labels what", no_wrap=True)
    for heading, *_ in _COLUMNS:
        table.add_column(heading, justify="right", no_wrap=True)
    for method in METHODS:
        cells = [_cell(trials, method, sign, *column[1:]) for column in _COLUMNS]
        table.add_row(method.title.replace(", ", ",\n"), *cells)
    return table


def as_equal_table(rows: Sequence[Row], ascii_only: bool = False) -> Table:
    """Venire beside the simplest rivals that spend as much: the first table."""
    sign, several = "+-" if ascii_only else "±", len({row.seed for row in rows}) > 1
    table = Table(title=EQUAL_TITLE, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    table.padding, table.show_edge = (0, 1), False
    table.add_column("with the same labels or money", no_wrap=True)
    for heading in ("right, of all, %", "labels each", "money each"):
        table.add_column(heading, justify="right", no_wrap=True)
    for one in summary(rows):
        right = f"{100 * float(one['right']):.1f}"
        right += f" {sign}{100 * float(one['right_spread']):.1f}" if several else ""
        table.add_row(str(one["title"]), right, f"{one['labels']:.2f}", f"{one['money']:.3f}")
    return table


def _cell(
    trials: Sequence[Trial], method: Method, sign: str, measure: str, factor: float, decimals: int
) -> str:
    mean, spread = (factor * value for value in mean_and_spread(trials, method, measure))
    if abs(mean) >= 100:
        decimals = 1
    several = len({trial.seed for trial in trials}) > 1
    return f"{mean:.{decimals}f}" + (f"\n{sign}{spread:.{decimals}f}" if several else "")


def document(job: DigitJob, trials: Sequence[Trial], learning_slots: int) -> dict[str, Any]:
    """Everything that was measured, with what it takes to measure it again."""
    panel = zip(job.labelers, job.kinds, job.capacity, job.prices, job.competences, strict=True)
    return {
        "images": len(job.names),
        "training_images": TRAINING_IMAGES,
        "slots": SLOTS,
        "arrivals_per_slot": RATE,
        "learning_slots": learning_slots,
        "seeds": sorted({trial.seed for trial in trials}),
        "panel": [
            {"labeler": n, "kind": k, "capacity": c, "price": price, "competence": float(p)}
            for n, k, c, price, p in panel
        ],
        "equal": summary(equal_rows(job, trials)),
        "methods": [_summary(trials, method) for method in METHODS],
        "trials": [trial.record() for trial in trials],
        "learned": {
            str(t.seed): dict(zip(job.labelers, t.learned.tolist(), strict=True))
            for t in trials
            if t.method is METHODS[0] and t.learned is not None
        },
    }


def _summary(trials: Sequence[Trial], method: Method) -> dict[str, Any]:
    row: dict[str, Any] = {"method": method.key, "title": method.title}
    for measure in Score.measures():
        row[measure], row[f"{measure}_spread"] = mean_and_spread(trials, method, measure)
    return row


def save(folder: Path, record: dict[str, Any]) -> tuple[Path, Path]:
    """Write `demo.csv`, a row for each method and seed, and `demo.json`, everything."""
    table, everything = folder / "demo.csv", folder / "demo.json"
    table.write_text(as_csv(record["trials"]), encoding="utf-8", newline="")
    everything.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    return table, everything
