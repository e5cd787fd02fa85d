"""Anything that holds labels, as a `LabelTable`: dataframes, arrays, rows and files.

`as_table` takes what people have; the estimators call it, so that each of them takes the same
things. `as_truth` does the same for what is known of the truth, `as_ordered` for classes that
have an order, `as_ratings` for numbers and `as_comparisons` for comparisons of two things.
"""

from __future__ import annotations

from venire.labels.sources.build import COLUMNS, as_labels, as_table
from venire.labels.sources.families import FAMILY_COLUMNS, as_families
from venire.labels.sources.truth import (
    COMPARISON_COLUMNS,
    TRUTH_COLUMNS,
    as_comparisons,
    as_ordered,
    as_ratings,
    as_true_values,
    as_truth,
)

__all__ = [
    "COLUMNS",
    "COMPARISON_COLUMNS",
    "FAMILY_COLUMNS",
    "TRUTH_COLUMNS",
    "as_comparisons",
    "as_families",
    "as_labels",
    "as_ordered",
    "as_ratings",
    "as_table",
    "as_true_values",
    "as_truth",
]
