"""`venire simulate`: run a policy on the paper's synthetic stream, or on your own trace."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from venire.cli import screen
from venire.cli.worlds import PANEL, make_world, names_of, warn_below_chance
from venire.errors import InputError

if TYPE_CHECKING:
    from venire.scheduling import Learning, Policy
    from venire.simulation import Run, World

__all__ = ["simulate"]

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
CERTIFY = "Compute an upper bound on what anyone could have earned, and the share of it."
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
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Run a policy on a stream, and report what it earned.

    The stream is the paper's synthetic one (30 labelers, 5 items per slot), or your own: --items
    and --panel. With --panel alone, synthetic items are assigned to your labelers.
    """
    from venire.cli.policies import policy_of
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
        from venire.cli.report import print_report

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
