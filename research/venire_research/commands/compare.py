"""`venire compare`: policies on a suite of worlds, with tables, a picture and a report."""

from __future__ import annotations

import json
import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from venire.cli.shared import screen, tables
from venire.cli.shared.callables import policy_of
from venire.cli.shared.tables import JOBS, worker_count
from venire.errors import InputError, UnknownName
from venire_research.commands import suites
from venire_research.commands.parallel import check_data, executor_of, say_long, say_resumable

if TYPE_CHECKING:
    from venire.scheduling import Learning, Policy
    from venire_research.regimes import Regime, Row
    from venire_research.regimes.page import Setting

__all__ = ["STORE", "compare"]

SUITE = "The suite: regimes-1 (which policy earns most where), or trust-2 (adversarial worlds)."
EQUAL = "Compare accuracy at equal numbers of labels on the label sets of --data with even overlap."
POLICY = (
    "A policy, as in `venire simulate`, or best-overlap (regimes-1: the best fixed overlap in "
    "hindsight); may be repeated. [default: all]"
)
REGIME = "Run only this regime, world or label set; may be repeated. [default: all]"
MEASURE = "The measure of regimes-1: share, realised_share, true_share, utility, accuracy, ..."
LEARNING = (
    "known (competences are given; regimes-1 only), or a learning method as in `venire simulate`. "
    "[default: known, or the suite's own]"
)
SEEDS = "Streams per regime, seeds 0 to N - 1. [default: 5, or 2 with --quick]"
QUICK = "Shorter streams and fewer seeds; the numbers are not comparable with the full suite's."
DATA = "Folder of label sets: bluebird/labels.csv, bluebird/truth.csv, rte/labels.csv, ..."
CERTIFICATE = "Compute the upper bound on what anyone could earn; needed for shares."
OUT = "Folder for the tables (regimes-1: and a picture and a page) and the finished points."

#: The suites by name; equal labels has an option of its own.
SUITES = ("regimes-1", "trust-2")

#: The file of finished points.
STORE = "points.sqlite"


def compare(
    suite: Annotated[str, typer.Option(metavar="NAME", help=SUITE)] = "regimes-1",
    equal_labels: Annotated[bool, typer.Option("--equal-labels", help=EQUAL)] = False,
    policy: Annotated[list[str] | None, typer.Option(metavar="TEXT", help=POLICY)] = None,
    regime: Annotated[list[str] | None, typer.Option(metavar="NAME", help=REGIME)] = None,
    measure: Annotated[str, typer.Option(metavar="NAME", help=MEASURE)] = "share",
    learning: Annotated[
        str | None, typer.Option(metavar="TEXT", help=LEARNING, show_default=False)
    ] = None,
    seeds: Annotated[int | None, typer.Option(metavar="N", help=SEEDS)] = None,
    quick: Annotated[bool, typer.Option("--quick", help=QUICK)] = False,
    data: Annotated[Path | None, typer.Option(metavar="DIR", help=DATA)] = None,
    certificate: Annotated[bool, typer.Option(help=CERTIFICATE)] = True,
    out: Annotated[Path, typer.Option(metavar="DIR", help=OUT)] = Path("venire-compare"),
    jobs: Annotated[int | None, typer.Option(metavar="N", help=JOBS)] = None,
    cluster: Annotated[str | None, typer.Option(metavar="ADDRESS", help=tables.CLUSTER)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object only.")] = False,
) -> None:
    """Run policies on a suite of worlds, and say which earns most where.

    It can be interrupted: the same command resumes where it stopped. Regimes that replay real label
    sets are left out if the sets are missing, and the report says so.
    """
    start = time.perf_counter()
    workers = _check(data, seeds, jobs, cluster)
    if equal_labels or suite != "regimes-1":
        _refuse(suite, equal_labels, measure, certificate)
        words = _command(
            policy, regime, measure, learning, seeds, quick, data, certificate, out,
            "--equal-labels" if equal_labels else f"--suite {suite}",
        )  # fmt: skip
        order = suites.Order(
            policy or [], regime or [], learning, seeds, quick, data, out, workers, cluster,
            as_json, words,
        )  # fmt: skip
        (suites.equal_labels if equal_labels else suites.trust)(order)
        return
    from venire.scheduling.by_name import learning_named
    from venire_research.common.drawing import require_matplotlib
    from venire_research.common.files import make_folder
    from venire_research.regimes.page import Setting
    from venire_research.regimes.suite import divide, regimes_named
    from venire_research.regimes.summary import measure_named

    measure_named(measure)
    policies = [_policy(name) for name in policy] if policy else None
    taught = learning_named(learning or "known")
    regimes, missing = divide(regimes_named(regime or []), data, wanted=bool(regime))
    require_matplotlib()
    make_folder(out)
    words = _command(policy, regime, measure, learning, seeds, quick, data, certificate, out)
    setting = Setting(words, regimes, missing, quick)
    rows = _run(policies, regimes, seeds, taught, setting, certificate, data, out, workers,
        cluster,
    )  # fmt: skip
    if as_json:
        _print_json(rows, setting, out)
        return
    _conclude(rows, measure, setting, out, time.perf_counter() - start)


def _policy(name: str) -> Policy | str:
    from venire_research.regimes.hindsight import BEST_OVERLAP

    return name if name == BEST_OVERLAP else policy_of(name)


def _check(data: Path | None, seeds: int | None, jobs: int | None, cluster: str | None) -> int:
    if seeds is not None and not 1 <= seeds <= 1000:
        raise InputError(f"got --seeds {seeds}, expected 1 to 1000 streams")
    check_data(data)
    return worker_count(jobs, cluster)


def _refuse(suite: str, equal_labels: bool, measure: str, certificate: bool) -> None:
    """Refuse options that exclude each other."""
    if suite not in SUITES:
        raise UnknownName("suite", suite, SUITES)
    if equal_labels and suite != SUITES[0]:
        raise InputError(f"got --suite {suite} and --equal-labels, expected one of them")
    if measure != "share" or not certificate:
        raise InputError("got --measure or --no-certificate, which are for the suite regimes-1")


def _command(
    policies: list[str] | None,
    regimes: list[str] | None,
    measure: str,
    learning: str | None,
    seeds: int | None,
    quick: bool,
    data: Path | None,
    certificate: bool,
    out: Path,
    which: str = "",
) -> str:
    words = [
        "venire",
        "compare",
        *which.split(),
        *(w for name in policies or [] for w in ("--policy", name)),
    ]
    words += [w for name in regimes or [] for w in ("--regime", name)]
    words += ["--measure", measure] if measure != "share" else []
    words += ["--learning", learning] if learning and learning != "known" else []
    words += ["--seeds", str(seeds)] if seeds else []
    words += ["--quick"] if quick else []
    words += ["--data", str(data)] if data else []
    words += [] if certificate else ["--no-certificate"]
    return shlex.join([*words, "--out", str(out)])


def _run(
    policies: list[Policy | str] | None,
    regimes: list[Regime],
    seeds: int | None,
    learning: Learning | None,
    setting: Setting,
    certificate: bool,
    data: Path | None,
    out: Path,
    jobs: int,
    cluster: str | None,
) -> list[Row]:
    from venire_research import regimes as suite
    from venire_research.regimes.files import save
    from venire_research.sweeps.store import Store

    try:
        with (
            executor_of(jobs, cluster) as executor,
            screen.bar(1, "run", "drawing") as progress,
            Store(out / STORE) as store,
        ):
            rows = suite.compare(
                policies, regimes, seeds, learning=learning, quick=setting.quick,
                certificate=certificate, data=data, store=store, executor=executor,
                progress=say_long(progress, cluster),
            )  # fmt: skip
            save(out, rows, setting)
            return rows
    except KeyboardInterrupt:
        say_resumable(out / STORE)
        raise


def _print_json(rows: list[Row], setting: Setting, out: Path) -> None:
    from venire_research.regimes import SUITE
    from venire_research.regimes.summary import summarise

    record = {
        "suite": SUITE,
        "quick": setting.quick,
        "command": setting.command,
        "out": str(out),
        "summary": summarise(rows),
        "rows": rows,
        "left_out": dict(setting.missing),
    }
    print(json.dumps(record, indent=2, allow_nan=False))


def _conclude(rows: list[Row], name: str, setting: Setting, out: Path, seconds: float) -> None:
    from rich.console import Console

    from venire_research.regimes.summary import MEASURES, Table
    from venire_research.regimes.table import as_tables

    console = Console(emoji=False, highlight=False, soft_wrap=True)
    if name in ("share", "realised_share") and Table.of(rows, MEASURES[name]).empty():
        screen.warn(f"there is no certificate, and so no {name}: the table shows ratios to greedy")
        name = {"share": "utility_ratio", "realised_share": "realised_ratio"}[name]
    shown = MEASURES[name]
    for drawn in as_tables(rows, shown, console.width, console.options.ascii_only):
        console.print(drawn)
        console.print()
    console.print(f"{shown.title}: {shown.meaning}.", markup=False)
    for regime, remedy in setting.missing.items():
        console.print(f"left out: {regime}: {remedy}", markup=False)
    saved = f"\nSaved {out / 'index.html'} and the rest. That took {seconds:.0f} s."
    console.print(saved, markup=False)
