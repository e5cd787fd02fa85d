"""Anything that holds labels, as a `LabelTable`: dataframes, arrays, rows, CSV and Parquet files.

`as_table` takes what people have; the estimators call it, so that each of them takes the same
things. `as_truth` does the same for what is known of the truth.
"""

from __future__ import annotations

from venire.tables.build import COLUMNS, as_table
from venire.tables.truth import TRUTH_COLUMNS, as_truth

__all__ = ["COLUMNS", "TRUTH_COLUMNS", "as_table", "as_truth"]
