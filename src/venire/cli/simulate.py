"""`venire simulate`, `plan` and `replay`: what a policy would do with a stream."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from venire.cli.shared import AsJson, counted, screen
from venire.cli.shared.stores import STORE, StorageUrl, StreamName, open_stream
from venire.cli.shared.tables import gold_of, names_of
from venire.errors import InputError

if TYPE_CHECKING:
    from rich.table import Table

    from venire.model import Budget, ItemId, Labeler
    from venire.scheduling import Learning, Policy
    from venire.server.store import Storage
    from venire.simulation import Run, World
    from venire.whatif import Comparison, Paired, Recorded


PANEL = "Your labelers: CSV with labeler,competence and optionally capacity, price."
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
    from venire.paper import lemmas

    if max_delay is not None and weights is None:
        raise InputError("--max-delay needs --weights: give the weights of the items, such as 3,4")
    count = len(names_of(classes) or (1, 2))
    labelers = read_panel(panel)
    warn_below_chance(labelers, count)
    made = lemmas.plan(
        [labeler.competence or 0.0 for labeler in labelers],
        epsilon,
        delta,
        count,
        weights=_weights(weights),
        max_delay=max_delay or 0,
    )
    values = asdict(made) | {"kappa_3": made.kappa_3, "large_enough": made.large_enough}
    numbers = {name: x for name, x in values.items() if isinstance(x, float)}
    record = values | {name: screen.finite(x) for name, x in numbers.items()}
    screen.show(record, made.describe(), as_json)


def _weights(text: str | None) -> tuple[float, ...] | None:
    if text is None:
        return None
    from venire.simulation.world import weights_named

    return weights_named(text)


def _lines(run: Run, seconds: float, certified: bool) -> Iterator[str | Table]:
    """The report of a run; `certified` adds its share of the certificate."""
    yield from _heading(run)
    yield _utilities(run)
    if certified:
        yield from _certificate(run)
    yield from _comparison(run, seconds)


def _heading(run: Run) -> list[str]:
    learning = f"learning {run.learning.describe()}" if run.learning else "competences known"
    lines = [
        f"{run.policy.describe()}, {learning}: {counted(run.slots, 'slot')}, "
        f"{counted(len(run.world.panel), 'labeler')}, seed {run.world.seed}",
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


def _unfinished(run: Run) -> str:
    from venire.scheduling.kernel.desk import HORIZON

    count = int((run.rows["reason"] == HORIZON).sum())
    return f", {count:,} still waiting at the end" if count else ""


def _utilities(run: Run) -> Table:
    values = [
        ("paper's", run, run.utility, "with the delay to the last label"),
        ("realised", run, run.realised_utility, "with the delay to the exit"),
        ("true", run, run.true_utility, "by right verdicts, with the delay to the exit"),
        ("genie's", run.genie, run.genie.utility, "paper's, greedy with competences known"),
    ]
    rows = []
    for name, whose, value, meaning in values:
        if value is not None:
            each = value / max(1, int(whose.ledger.counts.sum()))
            rows.append((name, f"{value:,.1f}", f"{each:.3f}", meaning))
    return screen.table(("utility", "total", "per item", ""), rows, words=("",))


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
    "Without --items: poisson[:RATE], fixed[:N] or bursty[:SIZE[:EVERY[:TRICKLE]]]. "
    "[default: poisson:5]"
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
    from venire.cli.shared.callables import policy_of
    from venire.files import check_targets
    from venire.scheduling.by_name import learning_named

    _check_numbers(slots, seed, c)
    chosen, taught = policy_of(policy, seed), learning_named(learning, seed)
    check_targets((assignments, exits), (items, panel))
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

    def record() -> dict[str, Any]:
        return run.summary() | (_certified(run) if certify else {}) | {"seconds": seconds}

    screen.show(record, _lines(run, seconds, certify), as_json)


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


def make_world(
    items: Path | None,
    panel: Path | None,
    classes: Sequence[str] | None,
    arrivals: str | None,
    weights: str | None,
    slots: int,
    seed: int,
) -> World:
    """Your own items and panel, the synthetic stream with your panel, or all synthetic."""
    if items is None:
        return _synthetic(panel, classes, arrivals, weights, seed)
    if panel is None:
        raise InputError("--items needs --panel: give the labelers in a file of their own")
    for option, given in (("--arrivals", arrivals), ("--weights", weights)):
        if given is not None:
            raise InputError(f"--items and {option} exclude each other: {items} has its own")
    return _trace(items, panel, classes, slots, seed)


def _trace(items: Path, panel: Path, classes: Sequence[str] | None, slots: int, seed: int) -> World:
    from venire.files import read_items, read_panel
    from venire.simulation import World

    labelers = read_panel(panel)
    table = read_items(items, [labeler.id for labeler in labelers], slots, classes)
    return World.columns(
        table.ids,
        table.arrival,
        table.weight,
        labelers,
        table.allowed,
        table.truth,
        table.classes,
        seed,
    )


def _synthetic(
    panel: Path | None,
    classes: Sequence[str] | None,
    arrivals: str | None,
    weights: str | None,
    seed: int,
) -> World:
    from venire.files import read_panel
    from venire.simulation import World
    from venire.simulation.world import arrivals_named, weights_named

    world = World.synthetic(
        seed,
        arrivals=arrivals_named(arrivals or "poisson:5"),
        weights=weights_named(weights or "3-10"),
        classes=len(classes or (1, 2)),
    )
    if panel is not None:
        world = replace(world, panel=read_panel(panel))
    return replace(world, classes=tuple(classes)) if classes else world


def warn_below_chance(panel: Sequence[Labeler], classes: int) -> None:
    low = [who.id for who in panel if (who.competence or 0) <= 1 / classes]
    if not low:
        return
    names = ", ".join(low[:3]) + (f" and {len(low) - 3} more" if len(low) > 3 else "")
    verb = "is" if len(low) == 1 else "are"
    screen.warn(
        f"{names} {verb} at or below chance ({1 / classes:.3g} with {classes} classes): utility "
        "gives no credit for such labels"
    )


OTHER_POLICY = "Another policy, such as fixed-overlap:3. [default: as it was]"
OTHER_LEARNING = "Another way of learning, such as while-serving. [default: as it was]"
WITHOUT = "A labeler who is left out; may be given several times."
BUDGET = "The most to spend: money:50 or labels:3000. Then items leave with the labels they have."
CONFIDENCE = "The confidence that a verdict must reach. [default: as it was]"
OVERLAP = "The most labels of an item. [default: as it was]"
PRICES = "What one label of each labeler costs: a file with labeler,price. [default: as in the log]"
TRUTH = "Known true labels, to measure accuracy by: a file with task,label."
GOLD = "Known true labels to learn from while it runs, each told when its item leaves: task,label."
SEEDS = "How many times to run it, for policies that draw at random."
SIMULATE = "Draw the labels that the log does not hold, instead of never asking for them."


def replay(
    storage: StorageUrl = STORE,
    stream: StreamName = None,
    policy: Annotated[str | None, typer.Option(metavar="TEXT", help=OTHER_POLICY)] = None,
    learning: Annotated[str | None, typer.Option(metavar="TEXT", help=OTHER_LEARNING)] = None,
    panel_without: Annotated[list[str] | None, typer.Option(metavar="NAME", help=WITHOUT)] = None,
    budget: Annotated[str | None, typer.Option(metavar="TEXT", help=BUDGET)] = None,
    min_confidence: Annotated[float | None, typer.Option(metavar="P", help=CONFIDENCE)] = None,
    max_labels: Annotated[int | None, typer.Option(metavar="N", help=OVERLAP)] = None,
    prices: Annotated[Path | None, typer.Option(metavar="FILE", help=PRICES)] = None,
    truth: Annotated[Path | None, typer.Option(metavar="FILE", help=TRUTH)] = None,
    gold: Annotated[Path | None, typer.Option(metavar="FILE", help=GOLD)] = None,
    seeds: Annotated[int, typer.Option(metavar="N", help=SEEDS)] = 1,
    simulate_missing: Annotated[bool, typer.Option("--simulate-missing", help=SIMULATE)] = False,
    as_json: AsJson = False,
) -> None:
    """Run a recorded stream again by another policy, panel or budget, and compare.

    Items, gold, who comes when and the time that labels took are those of the log; with nothing
    changed, so are the verdicts. A labeler can be asked only for labels that the log holds. It says
    what could not be repeated, and how much that matters. The server may be running.
    """
    from venire.whatif import Plan, what_if

    without = frozenset(panel_without or ())
    plan = Plan(policy, learning, without, _budget(budget), min_confidence, max_labels)
    with open_stream(storage, stream) as (opened, name):
        recorded = _recorded(opened, name)
    if prices is not None:
        from venire.files import read_prices

        recorded.prices |= read_prices(prices)
    asked: frozenset[ItemId] = frozenset()
    if gold is not None:
        from venire.labels.sources import COLUMNS

        known = gold_of(gold, recorded.table(), COLUMNS)
        plan, asked = replace(plan, gold=known.labels), known.asked
    with screen.bar(1, unit="event", last="comparing") as progress:
        found = what_if(recorded, plan, seeds, truth, simulate_missing, progress, asked)
    screen.show(lambda: {"stream": name, **asdict(found)}, _changes(name, found), as_json)


def _budget(text: str | None) -> Budget | None:
    from venire.model import Budget

    if text is None:
        return None
    what, _, amount = text.partition(":")
    try:
        value = float(amount)
    except ValueError:
        value = -1.0
    if what not in ("money", "labels") or value < 0:
        raise InputError(f"got --budget {text!r}, expected money:50 or labels:3000")
    return Budget(money=value) if what == "money" else Budget(labels=int(value))


def _recorded(storage: Storage, stream: str) -> Recorded:
    from venire.server.reports.replays import recorded_of

    with screen.working(f"reading {stream}") as working, storage.frozen():
        return recorded_of(storage, stream, lambda n: working(f"{n:,} events"))


def _changes(name: str, found: Comparison) -> Iterator[str | Table]:
    yield (
        f"{name}: {found.items:,} items, {found.compared:,} of them left both then and now, "
        f"{counted(found.seeds, 'run')}"
    )
    yield ""
    rows = [
        _row(key, paired, found.measured)
        for key, paired in found.measures.items()
        if key != "money" or paired.was or paired.would_be.value
    ]
    yield screen.table(("per item", "was", "would be", "change"), rows)
    yield ""
    yield from found.notes


def _row(key: str, paired: Paired, measured: bool) -> tuple[str, str, str, str]:
    words = {"right": "right" if measured else "right (expected)", "wait": "slots to the exit"}
    scale, unit = (100, " %") if key == "right" else (1, "")
    change = paired.change
    return (
        words.get(key, key),
        f"{paired.was * scale:.2f}{unit}",
        f"{paired.would_be.value * scale:.2f} ± {paired.would_be.error * scale:.2f}{unit}",
        f"{change.value * scale:+.2f} ± {change.error * scale:.2f}{unit}",
    )
