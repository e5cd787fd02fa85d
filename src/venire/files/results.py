"""The output files of a run: who labelled what, and the exit of each item.

A file whose name ends in .parquet is written as Parquet, in .jsonl or .ndjson as JSON Lines, in
.dataset as a folder of Hugging Face `datasets`, any other as CSV. Files are written under temporary
names and moved into place when all of them are complete, so an interrupted or failing run leaves no
partial files.

The output files of an aggregation: the verdict on each task, the skill of each worker.

Verdicts as a data set of Hugging Face `datasets`: in memory, or as a folder that
`datasets.load_from_disk` reads. The label is a `ClassLabel`, so that its names come along.

    to_dataset(vn.label(items, panel, budget))      # or of a fitted estimator
    venire aggregate labels.csv --out verdicts.dataset --probabilities
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, NamedTuple

from venire.costs import Costs
from venire.errors import FileError, InputError, MissingExtra
from venire.estimators.frames import part_columns, skill_columns, verdict_columns
from venire.labels.partitions import Partitions, pieces
from venire.model import Assignment, Exit
from venire.tools.addresses import PathOrAddress
from venire.tools.lazy import library
from venire.tools.untrusted import harmless

if TYPE_CHECKING:
    from venire.estimators.base import BaseEstimator


#: Known file name endings; .pq is Parquet, .ndjson is JSON Lines.
ENDINGS: Final = (".csv", ".parquet", ".pq", ".jsonl", ".ndjson", ".dataset")

#: Rows of a Parquet file that are written at a time.
PIECE: Final = 1 << 20


class Output(NamedTuple):
    """A CSV, Parquet or JSON Lines file, or a data set, to be written.

    `classes` are those of the column `label`; a data set keeps them.
    """

    path: Path
    columns: tuple[str, ...]
    rows: Iterable[tuple[Any, ...]]
    classes: Sequence[Any] | None = None


def assignments_output(path: str | Path, assignments: Iterable[Assignment]) -> Output:
    """Who labelled what: slot,item,labeler,gain (empty while competences are unknown).

    >>> output = assignments_output("a.csv", [Assignment(0, "post-1", "ann", 4.5)])
    >>> output.columns, list(output.rows)
    (('slot', 'item', 'labeler', 'gain'), [(0, 'post-1', 'ann', 4.5)])
    """
    rows = ((a.slot, a.item, a.labeler, a.gain if a.gain == a.gain else None) for a in assignments)
    return Output(Path(path), ("slot", "item", "labeler", "gain"), rows)


def exits_output(path: str | Path, exits: Iterable[Exit]) -> Output:
    """The exit of each item: item,arrival,exit,labels,verdict,confidence,reason.

    The verdict is empty where an item left without a label.

    >>> from venire.model import Verdict
    >>> output = exits_output("e.csv", [Exit("a", 0, 2, 1, Verdict("spam", 0.9), "no_gain")])
    >>> list(output.rows)
    [('a', 0, 2, 1, 'spam', 0.9, 'no_gain')]
    """
    columns = ("item", "arrival", "exit", "labels", "verdict", "confidence", "reason")
    rows = (
        (e.item, e.arrival, e.slot, e.labels, e.verdict.label, e.verdict.confidence, e.reason)
        for e in exits
    )
    return Output(Path(path), columns, rows)


def write_outputs(outputs: Iterable[Output]) -> None:
    """Write all of the files, or none.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "a.csv")
    ...     write_outputs([assignments_output(path, [Assignment(3, "x", "ann", 0.1)])])
    ...     print(path.read_text().strip())
    slot,item,labeler,gain
    3,x,ann,0.1
    """
    with ExitStack() as moves:
        folders = []
        for output in outputs:
            if _is_dataset(output.path):
                folders.append(output)
                continue
            moves.enter_context(_explained(output.path))
            file = moves.enter_context(_staged(output.path))
            _writer(output.path)(file, output)
            file.flush()  # a full disk is noticed before any file is moved
        for output in folders:
            _write_dataset(output)


def _writer(path: Path) -> Callable[[BinaryIO, Output], None]:
    if _is_parquet(path):
        return _write_parquet
    return _write_json_lines if path.suffix.lower() in (".jsonl", ".ndjson") else _write_csv


def _write_json_lines(file: BinaryIO, output: Output) -> None:
    """One object a line; what is not a finite number is null, other names are text."""
    for row in output.rows:
        finite = (None if isinstance(x, float) and not math.isfinite(x) else x for x in row)
        record = dict(zip(output.columns, finite, strict=True))
        text = json.dumps(record, ensure_ascii=False, default=str)
        file.write(text.encode() + b"\n")


def _write_csv(file: BinaryIO, output: Output) -> None:
    text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(map(harmless, output.columns))
    writer.writerows(map(harmless, row) for row in output.rows)
    text.detach()


def _write_parquet(file: BinaryIO, output: Output) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    rows = iter(output.rows)
    piece = list(islice(rows, PIECE))
    first = pa.table(_columns(output, piece))
    with parquet.ParquetWriter(file, first.schema) as writer:
        writer.write_table(first)
        while piece := list(islice(rows, PIECE)):
            writer.write_table(pa.table(_columns(output, piece), schema=first.schema))


def _write_dataset(output: Output) -> None:
    write_dataset(output.path, _columns(output, output.rows), output.classes)


def _columns(output: Output, rows: Iterable[tuple[Any, ...]]) -> dict[str, list[Any]]:
    values = list(zip(*rows, strict=True)) or [()] * len(output.columns)
    named = zip(output.columns, values, strict=True)
    return {name: list(column) for name, column in named}


def _is_dataset(path: Path) -> bool:
    return path.suffix.lower() == ".dataset"


def _is_parquet(path: Path) -> bool:
    return path.suffix.lower() in (".parquet", ".pq")


def check_targets(
    targets: Iterable[Path | None], sources: Iterable[PathOrAddress | None] = ()
) -> None:
    """Raise an error, before anything runs, if a file could not be written afterwards.

    None is a file that was not given.

    >>> check_targets([Path("no-such-folder/a.csv")])
    Traceback (most recent call last):
    venire.errors.FileError: no-such-folder/a.csv: cannot be written, there is no folder ...
    """
    taken = {source.resolve() for source in sources if isinstance(source, Path)}
    for target in filter(None, targets):
        if _is_parquet(target) and find_spec("pyarrow") is None:
            raise MissingExtra("pyarrow", "data")
        if _is_dataset(target) and find_spec("datasets") is None:
            raise MissingExtra("datasets", "datasets")
        fault = _fault(target, taken)
        if fault:
            raise FileError(target, None, f"cannot be written, {fault}")
        if not _special(target):
            taken.add(target.resolve())


def _fault(target: Path, taken: set[Path]) -> str | None:
    folder = target.resolve().parent
    if target.is_dir() and not (_is_dataset(target) and (target / "dataset_info.json").is_file()):
        return "it is a folder: give the name of a file, or of a data set to be replaced"
    if target.is_file() and _is_dataset(target):
        return "it is a file: a data set is a folder"
    if not _special(target) and target.suffix.lower() not in ENDINGS:
        got = f"its ending is {target.suffix!r}"
        return f"{got}, expected .csv, .parquet, .jsonl or .dataset: give it one of them"
    if target.resolve() in taken:
        return "it is another file of this command: give it a name of its own"
    if not folder.is_dir():
        return f"there is no folder {folder}: make it first"
    if not os.access(folder, os.W_OK) and not _special(target):
        return f"the folder {folder} is read-only: choose another one"
    return None


def _special(target: Path) -> bool:
    """Whether it is a device or a pipe, which must be written to and not replaced."""
    return target.exists() and not target.is_file() and not target.is_dir()


@contextmanager
def _staged(target: Path) -> Iterator[BinaryIO]:
    """A temporary file, moved onto the target at the end if nothing failed."""
    if _special(target):
        with open(target, "wb") as file:
            yield file
        return
    place = target.resolve()
    draft = place.with_name(f".{place.name}.{os.getpid()}.part")
    try:
        with open(draft, "wb") as file:
            yield file
        os.replace(draft, place)
    finally:
        draft.unlink(missing_ok=True)


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise FileError(path, None, f"cannot be written ({reason})") from None


def verdicts_output(
    path: str | Path,
    fitted: BaseEstimator,
    probabilities: bool = False,
    costs: Costs | None = None,
    guaranteed: Collection[str] | None = None,
) -> Output:
    """The verdict on each task: task,label,confidence,entropy; also one column for each class.

    `entropy` is that of the votes, in bits: 0 where all agree. With `guaranteed`, the names of
    some tasks as text, a column says which they are: yes or no.

    >>> from venire import LabelTable, OneCoin
    >>> table = LabelTable.from_matrix([[0, 0, 0], [1, 1, 0], [0, 0, 0]])
    >>> output = verdicts_output("v.csv", OneCoin(prior=(7, 3)).fit(table), probabilities=True)
    >>> output.columns, [row[:2] for row in output.rows]
    (('task', 'label', 'confidence', 'entropy', 'p(0)', 'p(1)'), [(0, 0), (1, 1), (2, 0)])
    """
    if isinstance(fitted.table_, Partitions):
        return _partitions_output(path, fitted, probabilities, costs)
    columns = verdict_columns(fitted, probabilities, costs)
    if guaranteed is not None:
        marks = ["yes" if str(task) in guaranteed else "no" for task in columns["task"]]
        columns["guaranteed"] = marks
    return columns_output(path, columns)._replace(classes=fitted.classes_)


def _partitions_output(
    path: str | Path, fitted: BaseEstimator, probabilities: bool, costs: Costs | None
) -> Output:
    """The same, of one partition after the other: they need not fit in memory together."""
    given = fitted.posterior_rows(), fitted.seed, probabilities, costs
    found = pieces(fitted.table_, part_columns, *given)
    columns = next(found)
    rows = (row for one in chain([columns], found) for row in zip(*one.values(), strict=True))
    return Output(Path(path), tuple(columns), rows, fitted.classes_)


def columns_output(path: str | Path, columns: dict[str, list[Any]]) -> Output:
    """A file of these columns.

    >>> output = columns_output("v.csv", {"task": ["a", "b"], "value": [1.5, 2.0]})
    >>> output.columns, list(output.rows)
    (('task', 'value'), [('a', 1.5), ('b', 2.0)])
    """
    return Output(Path(path), tuple(columns), zip(*columns.values(), strict=True))


def skills_output(path: str | Path, fitted: BaseEstimator) -> Output:
    """The skill of each worker: worker,labels,skill,low,high; with gold also gold,right.

    `skill` is the probability that a label of theirs is right, `low` and `high` its 90 %
    interval.

    >>> from venire import LabelTable, OneCoin
    >>> table = LabelTable.from_matrix([[0, 0, 0], [1, 1, 0], [0, 0, 0]])
    >>> [row[:2] for row in skills_output("s.csv", OneCoin(prior=(7, 3)).fit(table)).rows]
    [(0, 3), (1, 3), (2, 3)]
    """
    return columns_output(path, skill_columns(fitted, intervals=True))


def to_dataset(result: Any, probabilities: bool = True) -> Any:
    """The verdicts of a fitted estimator or of `vn.label` as a `datasets.Dataset`.

    Columns are those of `venire aggregate --out` and `venire label --out`, with `p(class)` for each
    class.

    >>> from venire import MajorityVote
    >>> rows = [("a", "ann", "no"), ("a", "bob", "no"), ("b", "ann", "yes"), ("b", "bob", "yes")]
    >>> verdicts = to_dataset(MajorityVote().fit(rows))
    >>> verdicts.features["label"].names, verdicts["label"][:]
    (['no', 'yes'], [0, 1])
    """
    if hasattr(result, "columns") and hasattr(result, "table"):
        return dataset_of(result.columns(probabilities), result.table.classes)
    if hasattr(result, "posteriors_"):
        return dataset_of(verdict_columns(result, probabilities), result.classes_)
    raise InputError(
        f"got {type(result).__name__}, expected a fitted estimator, or what vn.label returns"
    )


def dataset_of(columns: Mapping[str, Sequence[Any]], classes: Sequence[Any] | None = None) -> Any:
    """Columns as a data set; with classes, the column `label` is a `ClassLabel`."""
    datasets = library("datasets", "datasets")
    values = {name: list(column) for name, column in columns.items()}
    if classes is None or "label" not in values:
        return datasets.Dataset.from_dict(values)
    names = [str(name) for name in classes]
    said = ["" if label is None else str(label) for label in values["label"]]
    code = {name: k for k, name in enumerate(names)}
    values["label"] = [code.get(label) for label in said]
    features = datasets.Dataset.from_dict(values).features
    features["label"] = datasets.ClassLabel(names=names)
    return datasets.Dataset.from_dict(values, features=features)


def write_dataset(
    path: Path, columns: Mapping[str, Sequence[Any]], classes: Sequence[Any] | None = None
) -> None:
    """Save a data set as a folder, whole or not at all; one that is there is replaced."""
    place = path.resolve()
    draft = place.with_name(f".{place.name}.{os.getpid()}.part")
    try:
        made = dataset_of(columns, classes)
        with _quiet():
            made.save_to_disk(str(draft))
        if place.exists():
            shutil.rmtree(place)
        os.replace(draft, place)
    except OSError as error:
        raise FileError(path, None, f"cannot be written ({error.strerror or error})") from None
    finally:
        shutil.rmtree(draft, ignore_errors=True)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the progress bars of the library."""
    datasets = library("datasets", "datasets")
    shown = not datasets.are_progress_bars_disabled()
    datasets.disable_progress_bars()
    try:
        yield
    finally:
        if shown:
            datasets.enable_progress_bars()
