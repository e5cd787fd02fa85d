"""Verdicts as a data set of Hugging Face `datasets`: in memory, or as a folder.

    to_dataset(vn.label(items, panel, budget))      # or of a fitted estimator
    venire aggregate labels.csv --out verdicts.dataset --probabilities

A folder that ends in .dataset is what `Dataset.save_to_disk` writes: `datasets.load_from_disk`
reads it. The label is a `ClassLabel`, so that its names come along.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from venire.errors import FileError, InputError
from venire.estimators.frames import verdict_columns
from venire.tools.lazy import library


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
