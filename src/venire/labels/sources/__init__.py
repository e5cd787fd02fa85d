"""Anything that holds labels, as a `LabelTable`: dataframes, arrays, rows and files.

`as_table` takes what people have; the estimators call it, so that each of them takes the same
things. `as_truth` does the same for what is known of the truth, `as_ordered` for classes that
have an order, `as_ratings` for numbers and `as_comparisons` for comparisons of two things.
"""

from venire.labels.sources.build import as_labels as as_labels
from venire.labels.sources.build import as_table as as_table
from venire.labels.sources.sheets import COLUMNS as COLUMNS
from venire.labels.sources.sheets import COMPARISON_COLUMNS as COMPARISON_COLUMNS
from venire.labels.sources.sheets import TRUTH_COLUMNS as TRUTH_COLUMNS
from venire.labels.sources.truth import FAMILY_COLUMNS as FAMILY_COLUMNS
from venire.labels.sources.truth import as_comparisons as as_comparisons
from venire.labels.sources.truth import as_families as as_families
from venire.labels.sources.truth import as_ordered as as_ordered
from venire.labels.sources.truth import as_ratings as as_ratings
from venire.labels.sources.truth import as_true_values as as_true_values
from venire.labels.sources.truth import as_truth as as_truth
