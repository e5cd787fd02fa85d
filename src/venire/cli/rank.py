"""`venire rank`: scores from pairwise comparisons."""

from __future__ import annotations

import json
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from venire.cli.aggregate import finite
from venire.cli.shared import AsJson, screen
from venire.cli.shared.tables import columns_of

if TYPE_CHECKING:
    from venire.estimators import BradleyTerry


COMPARISONS = (
    "The comparisons: CSV, Parquet or JSON Lines with left,right,worker,winner, or other usual "
    "names, such as model_a,model_b,judge,winner."
)
COLUMNS = (
    "The names of the columns. [default: left,right,worker,winner, or those that look like it]"
)
OUT = "Write the scores: thing,score,standard_error,comparisons,wins,group."
SKILLS = "Write the labelers: worker,comparisons,reliability."
SPREAD = "Prior standard deviation of the scores, in logits. [default: learned]"
HONEST = "Assume that every labeler is honest: the plain Bradley-Terry model."

#: How many of the best and of the worst to list.
NAMED = 5


def rank(
    comparisons: Annotated[Path, typer.Argument(metavar="COMPARISONS", help=COMPARISONS)],
    columns: Annotated[str | None, typer.Option(metavar="NAMES", help=COLUMNS)] = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help=OUT)] = None,
    skills: Annotated[Path | None, typer.Option(metavar="FILE", help=SKILLS)] = None,
    spread: Annotated[float | None, typer.Option(help=SPREAD)] = None,
    honest: Annotated[bool, typer.Option("--honest", help=HONEST)] = False,
    as_json: AsJson = False,
) -> None:
    """Rank things by pairwise comparisons, and estimate the reliability of labelers.

    The winner is the name of one of the two sides or of its column, such as model_a, or "tie".
    """
    from venire.estimators import BradleyTerry
    from venire.files import check_targets, columns_output, write_outputs
    from venire.labels.sources import COMPARISON_COLUMNS

    called = columns_of(columns, COMPARISON_COLUMNS)
    check_targets([path for path in (out, skills) if path is not None], [comparisons])
    model = BradleyTerry(spread=spread)
    if honest:
        model.set_params(prior=None)
    with screen.working(f"ranking {comparisons.name}"):
        start = time.perf_counter()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fitted = model.fit(comparisons, called)
        seconds = round(time.perf_counter() - start, 6)
        made = [(out, fitted.score_columns()), (skills, fitted.labeler_columns())]
        write_outputs(columns_output(path, cells) for path, cells in made if path is not None)
    for warning in caught:
        screen.warn(str(warning.message))
    record = _record(fitted, seconds)
    if as_json:
        print(json.dumps(record, indent=2, allow_nan=False))
    else:
        _print(fitted, record)


def _record(fitted: BradleyTerry, seconds: float) -> dict[str, Any]:
    data = fitted.data_
    return {
        "method": fitted.name,
        "things": len(data.things),
        "labelers": len(data.labelers),
        "comparisons": len(data.left),
        "ties": int((data.won_left == 0.5).sum()),
        "groups": 1 + max(fitted.groups_.values()),
        "spread": fitted.spread_,
        "iterations": fitted.n_iter_,
        "converged": fitted.converged_,
        "log_likelihood": finite(fitted.log_likelihood_),
        "seconds": seconds,
    }


def _print(fitted: BradleyTerry, record: dict[str, Any]) -> None:
    print(
        f"bradley-terry: {record['comparisons']:,} comparisons ({record['ties']:,} ties) of "
        f"{record['things']:,} things by {record['labelers']:,} labelers"
    )
    print()
    ended = "converged" if record["converged"] else "stopped before it converged"
    likelihood = record["log_likelihood"]
    shown = "" if likelihood is None else f", log-likelihood {likelihood:,.1f}"
    print(f"fit      {record['iterations']} iterations, {ended}{shown}")
    scores, errors = fitted.scores_, fitted.standard_errors_
    ranking = fitted.ranking_
    for word, things in (("best", ranking[:NAMED]), ("last", ranking[NAMED:][-NAMED:])):
        if things:
            print(
                f"{word:8} {', '.join(f'{t} {scores[t]:+.2f} ± {errors[t]:.2f}' for t in things)}"
            )
    eta = fitted.reliabilities_
    ranked = sorted(eta, key=lambda who: -eta[who])
    for word, who in (("relied", ranked[:NAMED]), ("doubted", ranked[NAMED:][-NAMED:])):
        if who:
            print(f"{word:8} {', '.join(f'{m} {eta[m]:.2f}' for m in who)}")
    print()
    print(f"fitted in {record['seconds']:.2f} s")
