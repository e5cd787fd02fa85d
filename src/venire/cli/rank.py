"""`venire rank`: scores from pairwise comparisons."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from venire.cli.shared import AsJson, screen
from venire.cli.shared.tables import columns_of

if TYPE_CHECKING:
    from venire.estimators import BradleyTerry


COMPARISONS = (
    "The comparisons: CSV, Parquet or JSON Lines with left,right,worker,winner, or other usual "
    "names, such as model_a,model_b,judge,winner."
)
COLUMNS = (
    "The names of the columns. [default: left,right,worker,winner, or those that look like them]"
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
    check_targets((out, skills), (comparisons,))
    model = BradleyTerry(spread=spread)
    if honest:
        model.set_params(prior=None)
    with screen.working(f"ranking {comparisons.name}"):
        start = time.perf_counter()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fitted = model.fit(comparisons, called)
        seconds = round(time.perf_counter() - start, 6)
        made = [(out, fitted.value_columns()), (skills, fitted.labeler_columns())]
        write_outputs(columns_output(path, cells) for path, cells in made if path is not None)
    for warning in caught:
        screen.warn(str(warning.message))
    record = _record(fitted, seconds)
    screen.show(record, _lines(fitted, record), as_json)


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
        "log_likelihood": screen.finite(fitted.log_likelihood_),
        "seconds": seconds,
    }


def _lines(fitted: BradleyTerry, record: dict[str, Any]) -> Iterator[str]:
    yield (
        f"bradley-terry: {record['comparisons']:,} comparisons ({record['ties']:,} ties) of "
        f"{record['things']:,} things by {record['labelers']:,} labelers"
    )
    yield ""
    ended = "converged" if record["converged"] else "stopped before it converged"
    likelihood = record["log_likelihood"]
    shown = "" if likelihood is None else f", log-likelihood {likelihood:,.1f}"
    yield f"fit      {record['iterations']} iterations, {ended}{shown}"
    scores, errors = fitted.scores_, fitted.standard_errors_
    yield from _ends(
        "best", "last", [f"{t} {scores[t]:+.2f} ± {errors[t]:.2f}" for t in fitted.ranking_]
    )
    eta = fitted.reliabilities_
    ranked = sorted(eta, key=lambda who: -eta[who])
    yield from _ends("relied", "doubted", [f"{who} {eta[who]:.2f}" for who in ranked])
    yield ""
    yield f"fitted in {record['seconds']:.2f} s"


def _ends(first: str, last: str, ranked: list[str]) -> Iterator[str]:
    """The best and the worst."""
    for word, some in ((first, ranked[:NAMED]), (last, ranked[NAMED:][-NAMED:])):
        if some:
            yield f"{word:8} {', '.join(some)}"
