"""`venire simulate`: a policy on a simulated stream; `venire plan`: how long to learn first."""

from __future__ import annotations

import json
import math
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from venire.cli.shared import AsJson, screen
from venire.cli.shared.worlds import PANEL, make_world, names_of, warn_below_chance
from venire.errors import InputError

if TYPE_CHECKING:
    from rich.table import Table

    from venire.paper.learning_length import Plan
    from venire.scheduling import Learning, Policy
    from venire.simulation import Run, World


EPSILON = "The error within which every competence is learned, ..."
DELTA = "... with probability at least 1 - DELTA."
PLAN_CLASSES = "The possible labels, such as spam,ok. [default: 1,2]"
PLAN_WEIGHTS = "The weights of items, such as 3,4 or 3-10: also plan for decisions as if known."
MAX_DELAY = "With --weights: the longest delay of an item, in slots."


def plan(
    panel: Annotated[Path, typer.Option(metavar="FILE", help=PANEL)],
    epsilon: Annotated[float, typer.Option(metavar="X", help=EPSILON)] = 0.1,
    delta: Annotated[float, typer.Option(metavar="X", help=DELTA)] = 0.05,
    classes: Annotated[str | None, typer.Option(metavar="NAMES", help=PLAN_CLASSES)] = None,
    weights: Annotated[str | None, typer.Option(metavar="TEXT", help=PLAN_WEIGHTS)] = None,
    max_delay: Annotated[int | None, typer.Option(metavar="N", help=MAX_DELAY)] = None,
    as_json: AsJson = False,
) -> None:
    """Compute the length of the learning phase that the theory requires."""
    from venire.files import read_panel
    from venire.paper import learning_length

    if max_delay is not None and weights is None:
        raise InputError("--max-delay needs --weights: give the weights of the items, such as 3,4")
    count = len(names_of(classes) or (1, 2))
    labelers = read_panel(panel)
    warn_below_chance(labelers, count)
    made = learning_length.plan(
        [labeler.competence or 0.0 for labeler in labelers],
        epsilon,
        delta,
        count,
        weights=_weights(weights),
        max_delay=max_delay or 0,
    )
    if as_json:
        print(json.dumps(_record(made), indent=2, allow_nan=False))
    else:
        print("\n".join(made.describe()))


def _weights(text: str | None) -> tuple[float, ...] | None:
    if text is None:
        return None
    from venire.simulation.world import weights_named

    return weights_named(text)


def _record(made: Plan) -> dict[str, Any]:
    """The plan as a JSON object; infinities are null."""
    values = asdict(made) | {"kappa_3": made.kappa_3, "large_enough": made.large_enough}
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in values.items()
    }


def print_report(run: Run, seconds: float, certified: bool = False) -> None:
    """Print the report of a run; `certified` adds its share of the certificate."""
    from rich.console import Console

    console = Console(markup=False, emoji=False, highlight=False, soft_wrap=True)
    for line in _heading(run):
        console.print(line)
    console.print(_utilities(run))
    for line in [*(_certificate(run) if certified else []), *_comparison(run, seconds)]:
        console.print(line)


def _heading(run: Run) -> list[str]:
    learning = f"learning {run.learning.describe()}" if run.learning else "competences known"
    lines = [
        f"{run.policy.describe()}, {learning}: {_count(run.slots, 'slot')}, "
        f"{_count(len(run.world.panel), 'labeler')}, seed {run.world.seed}",
        "",
        f"items    {len(run.rows):,} arrived{_unfinished(run)}",
        f"labels   {len(run.touches):,}, {run.labels_per_item:.2f} per item",
        f"delay    {run.mean_delay:.2f} slots to the last label, "
        f"{run.mean_response:.2f} to the exit",
    ]
    if run.money:
        lines.append(f"money    {run.money:,.6g} spent on labels")
    if run.accuracy is not None:
        lines.append(f"verdicts {run.accuracy:.1%} right")
    if run.learning and run.learning.counts_from():
        lines.append(
            f"(delay, verdicts and utility count items from slot {run.learning.counts_from()} on)"
        )
    return [*lines, ""]


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" + ("" if number == 1 else "s")


def _unfinished(run: Run) -> str:
    from venire.scheduling.kernel.desk import HORIZON

    count = int((run.rows["reason"] == HORIZON).sum())
    return f", {count:,} still waiting at the end" if count else ""


def _utilities(run: Run) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    table.add_column("utility", no_wrap=True)
    table.add_column("total", justify="right", no_wrap=True)
    table.add_column("per item", justify="right", no_wrap=True)
    table.add_column("")
    rows = [
        ("paper's", run, run.utility, "with the delay to the last label"),
        ("realised", run, run.realised_utility, "with the delay to the exit"),
        ("true", run, run.true_utility, "by right verdicts, with the delay to the exit"),
        ("genie's", run.genie, run.genie.utility, "paper's, greedy with competences known"),
    ]
    for name, whose, value, meaning in rows:
        if value is not None:
            each = value / max(1, int(whose.ledger.counts.sum()))
            table.add_row(name, f"{value:,.1f}", f"{each:.3f}", meaning)
    return table


def _certificate(run: Run) -> list[str]:
    certificate = run.certificate()
    share, realised = certificate.share(run.utility), certificate.share(run.realised_utility)
    if not certificate.items:
        return ["", "no item counts, so there is nothing to certify"]
    if share is None or realised is None:
        return ["", "nobody could have earned anything on this stream"]
    sure = (
        "the exact optimum"
        if certificate.method == "exact"
        else f"which is too high by {certificate.gap:.2%} at most"
    )
    return [
        "",
        f"at least {_down(share)} of what anyone could have earned, knowing the future "
        f"(realised: {_down(realised)})",
        f"nobody could have earned more than {certificate.bound:,.1f}, {sure}",
    ]


def _down(share: float) -> str:
    """A share rounded down, so that "at least" is true."""
    return f"{math.floor(share * 1000) / 10:.1f} %"


def _comparison(run: Run, seconds: float) -> list[str]:
    lines = ["", f"simulated in {seconds:.2f} s"]
    if run.genie is run:
        return lines
    share = "" if run.ratio is None else f", {run.ratio:.2%} of the genie's utility"
    words = f"regret   {run.regret:,.1f} (normalised {run.normalised_regret:.2f}){share}"
    return ["", words, *lines]


POLICY = (
    "lookahead[:BUDGET] (plans the next slots), waterfill, realised or realised-proxy (an item "
    "leaves when one more slot does not pay off), greedy (the paper's Algorithm 1), "
    "random[:OVERLAP], round-robin[:OVERLAP], fixed-overlap[:OVERLAP], everyone, or your own as "
    "module:Class[:SETTING]."
)
LEARNING = (
    "known (competences are given), while-serving[:MODEL] (learn them from the first slot on; "
    "dawid-skene or one-coin), then-serve:SLOTS[:RHO] (a learning phase, then keep learning), "
    "or algorithm-2:SLOTS[:RHO] (a learning phase, as in the paper)."
)
SEED = "Seed of the stream, the labels, the random policy and the learning phase."
ITEMS = "Your items: CSV with item,arrival,weight and optionally truth, eligible, excluded."
CLASSES = "The possible labels, such as spam,ok. [default: the truths in the items, or 1,2]"
ARRIVALS = (
    "Without --items: poisson[:RATE], fixed[:N] or bursty[:SIZE[:EVERY[:TRICKLE]]]. [poisson:5]"
)
WEIGHTS = "Without --items: a range or a list, equally likely. [default: 3-10]"
C = "Constant of the accuracy formula, 1 - exp(-c * evidence)."
ASSIGNMENTS = "Write the assignments: slot,item,labeler,gain."
CERTIFY = (
    "Compute an upper bound on what anyone could have earned, and the share of it that was earned."
)
EXITS = "Write the exits: item,arrival,exit,labels,verdict,confidence,reason."


def simulate(
    policy: Annotated[str, typer.Option(metavar="TEXT", help=POLICY)] = "realised",
    learning: Annotated[str, typer.Option(metavar="TEXT", help=LEARNING)] = "known",
    slots: Annotated[int, typer.Option(metavar="N", help="How many slots to run.")] = 10_000,
    seed: Annotated[int, typer.Option(metavar="N", help=SEED)] = 0,
    items: Annotated[Path | None, typer.Option(metavar="FILE", help=ITEMS)] = None,
    panel: Annotated[Path | None, typer.Option(metavar="FILE", help=PANEL)] = None,
    classes: Annotated[str | None, typer.Option(metavar="NAMES", help=CLASSES)] = None,
    arrivals: Annotated[str | None, typer.Option(metavar="TEXT", help=ARRIVALS)] = None,
    weights: Annotated[str | None, typer.Option(metavar="TEXT", help=WEIGHTS)] = None,
    c: Annotated[float, typer.Option("--c", metavar="X", help=C)] = 1.0,
    assignments: Annotated[Path | None, typer.Option(metavar="FILE", help=ASSIGNMENTS)] = None,
    exits: Annotated[Path | None, typer.Option(metavar="FILE", help=EXITS)] = None,
    certify: Annotated[bool, typer.Option("--certify", help=CERTIFY)] = False,
    as_json: AsJson = False,
) -> None:
    """Run a policy on a stream, and report what it earned.

    The stream is the paper's synthetic one (30 labelers, 5 items per slot), or your own: --items
    and --panel. With --panel alone, synthetic items are assigned to your labelers.
    """
    from venire.cli.shared.worlds import policy_of
    from venire.files import check_targets
    from venire.scheduling.by_name import learning_named

    _check_numbers(slots, seed, c)
    chosen, taught = policy_of(policy, seed), learning_named(learning, seed)
    targets = [path for path in (assignments, exits) if path is not None]
    check_targets(targets, [path for path in (items, panel) if path is not None])
    world = make_world(items, panel, names_of(classes), arrivals, weights, slots, seed)
    warn_below_chance(world.panel, len(world.classes))
    if taught and taught.counts_from() >= slots:
        screen.warn(f"the learning phase takes all of the {slots} slots: nothing is served")
    with screen.bar(slots) as progress:
        run, seconds = _timed(world, chosen, taught, slots, c, progress)
        _write(run, assignments, exits)
    if certify:
        with screen.bar(1, unit="sweep", last="planning") as progress:
            run.certificate(progress)
    if as_json:
        record = run.summary() | (_certified(run) if certify else {}) | {"seconds": seconds}
        print(json.dumps(record, indent=2, allow_nan=False))
    else:
        print_report(run, seconds, certify)


def _certified(run: Run) -> dict[str, float | str | None]:
    """The certificate's part of the JSON object."""
    certificate = run.certificate()
    return {
        "certificate": certificate.bound,
        "share_of_certificate": certificate.share(run.utility),
        "realised_share_of_certificate": certificate.share(run.realised_utility),
        "certificate_gap": certificate.gap,
        "certificate_method": certificate.method,
    }


def _check_numbers(slots: int, seed: int, c: float) -> None:
    if slots < 1:
        raise InputError(f"got --slots {slots}, expected at least 1")
    if not 0 <= seed < 2**63:
        raise InputError(f"got --seed {seed}, expected a whole number from 0 to 2**63 - 1")
    if not 0 < c <= 1e6:
        raise InputError(f"got --c {c}, expected a number above 0 and at most a million")


def _timed(
    world: World,
    policy: Policy,
    learning: Learning | None,
    slots: int,
    c: float,
    progress: screen.Progress | None,
) -> tuple[Run, float]:
    from venire import simulation

    start = time.perf_counter()
    run = simulation.simulate(world, policy, learning, slots, c, progress)
    seconds = time.perf_counter() - start
    run.genie  # noqa: B018 - a second run: compute it while the progress bar is shown
    return run, round(seconds, 6)


def _write(run: Run, assignments: Path | None, exits: Path | None) -> None:
    from venire.files import Output, assignments_output, exits_output, write_outputs

    outputs: list[Output] = []
    if assignments is not None:
        outputs.append(assignments_output(assignments, run.assignments()))
    if exits is not None:
        outputs.append(exits_output(exits, run.exits()))
    write_outputs(outputs)
