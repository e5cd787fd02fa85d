"""`venire aggregate --numeric`: a robust mean of each task."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from venire.cli import screen

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from venire.estimators import RobustMean
    from venire.labels import Repeats
    from venire.tools.addresses import PathOrAddress

__all__ = ["aggregate_numbers"]

#: How many labelers to list.
NAMED = 3


def aggregate_numbers(
    labels: PathOrAddress,
    truth: PathOrAddress | None,
    columns: Sequence[str],
    repeats: Repeats,
    out: Path | None,
    skills: Path | None,
    as_json: bool,
    wide: bool = False,
) -> None:
    """Read, fit, write the files, and print the result."""
    from venire.estimators import RobustMean
    from venire.files import columns_output, write_outputs
    from venire.labels.sources import TRUTH_COLUMNS, as_ratings, as_true_values

    with screen.working(f"reading {labels.name}") as working:
        table = as_ratings(labels, repeats, columns, wide=wide, tell=screen.say)
        names = TRUTH_COLUMNS if wide else (columns[0], columns[2])
        right = None if truth is None else as_true_values(truth, table, names)
        working(f"robust mean of {len(table.said):,} numbers")
        start = time.perf_counter()
        fitted = RobustMean().fit(table)
        seconds = round(time.perf_counter() - start, 6)
        made = [(out, fitted.value_columns()), (skills, fitted.labeler_columns())]
        write_outputs(columns_output(path, cells) for path, cells in made if path is not None)
    record = _record(fitted, right, seconds)
    if as_json:
        print(json.dumps(record, indent=2, allow_nan=False))
    else:
        _print(fitted, record)


def _record(
    fitted: RobustMean, right: NDArray[np.float64] | None, seconds: float
) -> dict[str, Any]:
    import numpy as np

    from venire.cli.aggregate import finite
    from venire.estimators.ratings.agreement import alpha_of

    table = fitted.table_
    record = {
        "method": fitted.name,
        "items": len(table.items),
        "labelers": len(table.labelers),
        "labels": len(table.said),
        "iterations": fitted.n_iter_,
        "converged": fitted.converged_,
        "freedom": fitted.freedom_,
        "alpha_interval": finite(alpha_of(table, "interval")),
        "standard_error": float(np.mean(list(fitted.standard_errors_.values()))),
    }
    if right is not None:
        known = ~np.isnan(right)
        off = np.array(list(fitted.values_.values()))[known] - right[known]
        record["rmse"] = float(np.sqrt((off**2).mean()))
        record["mean_absolute_error"] = float(np.abs(off).mean())
    return record | {"seconds": seconds}


def _print(fitted: RobustMean, record: dict[str, Any]) -> None:
    print(
        f"robust mean: {record['labels']:,} numbers for {record['items']:,} tasks by "
        f"{record['labelers']:,} labelers"
    )
    print()
    ended = "converged" if record["converged"] else "stopped before it converged"
    print(f"fit      {record['iterations']} iterations, {ended}; {_outliers(record['freedom'])}")
    print(f"values   mean standard error {record['standard_error']:.4g}")
    alpha = record["alpha_interval"]
    print(f"agreed   Krippendorff's alpha {'-' if alpha is None else f'{alpha:.3f}'} interval")
    ranked = sorted(fitted.spreads_, key=fitted.spreads_.__getitem__)
    best, worst = ranked[:NAMED], ranked[NAMED:][-NAMED:][::-1]
    for word, who in (("precise", best), ("rough", worst)):
        if who:
            parts = [
                f"{m} (bias {fitted.biases_[m]:+.3g}, spread {fitted.spreads_[m]:.3g})" for m in who
            ]
            print(f"{word:8} {', '.join(parts)}")
    if "rmse" in record:
        off = f"RMSE {record['rmse']:.4g}, mean absolute error {record['mean_absolute_error']:.4g}"
        print(f"truth    {off}")
    print()
    print(f"fitted in {record['seconds']:.2f} s")


def _outliers(freedom: float) -> str:
    shown = f"t with {freedom:g} degrees of freedom"
    return f"{shown}: {'outliers are down-weighted' if freedom < 10 else 'hardly any outliers'}"
