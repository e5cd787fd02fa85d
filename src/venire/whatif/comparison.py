"""What another plan would have bought, beside what was bought, with standard errors.

Items of a stream wait for the same labelers, so what happens to one depends on its neighbours.
Standard errors come from means of consecutive items (batch means, 20 blocks), of the difference to
what happened to the same items. Where the truth is not known, verdicts are judged by the posteriors
of all labels in the log (`venire.panels.yardstick`), and their doubt is part of the error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from venire.errors import InputError
from venire.estimators.auto import Auto
from venire.events import Changed
from venire.labels import LabelTable
from venire.labels.sources import as_truth
from venire.model import Exit, ItemId, LabelerId
from venire.panels.yardstick import Estimate, Yardstick
from venire.tools.arrays import Floats
from venire.whatif.reruns import Drawn, Plan, Recorded, Rerun, rerun

#: Blocks of consecutive items whose means are compared.
BLOCKS: Final = 20

MEASURES: Final = ("right", "labels", "money", "wait")


@dataclass(frozen=True, slots=True)
class Paired:
    """A measure as it was, as it would have been, and the difference, per item."""

    was: float
    would_be: Estimate
    change: Estimate


@dataclass(frozen=True, slots=True)
class Comparison:
    """What a plan would have bought: of the items that left in both cases, per item.

    `right` is the share of right verdicts on items without `gold` in the plan (this many of those
    compared have some), `labels` and `money` what was bought, `wait` the slots
    to the exit. `items` arrived, `compared` left in both.

    How far to trust it: with nothing changed, `repeated` of the `recorded` verdicts come out as
    they were, to the bit. `held` is the share of the labels asked for that the log holds: the
    others were drawn, or were not to be had. `hanging` is the share of verdicts that would rest on
    one of them, `turned` the share that is another than it was, `turned_hanging` that of both.
    `ran_out` is the share of items that left when nobody was left to ask; `idle` the share of
    visits on which a labeler was given nothing. `notes` say what that means, in words.
    """

    items: int
    compared: int
    left: int
    seeds: int
    measured: bool
    measures: dict[str, Paired]
    recorded: int
    repeated: int
    held: float
    hanging: float
    turned: float
    turned_hanging: float
    ran_out: float
    idle: float
    notes: tuple[str, ...]
    gold: int = 0


def what_if(
    recorded: Recorded,
    plan: Plan,
    seeds: int = 1,
    truth: Any = None,
    simulate_missing: bool = False,
    progress: Callable[[int, int], None] | None = None,
    asked: Collection[Hashable] = (),
) -> Comparison:
    """Run a recorded stream again by a plan, and compare with what happened.

    Parameters
    ----------
    recorded
        The stream.
    plan
        What to do otherwise.
    seeds
        How often to run it: policies and ways of learning that draw at random draw anew. With
        nothing changed it is run once.
    truth
        Known classes of items, in any form that `as_truth` takes.
    simulate_missing
        Offer items to labelers whose label the log does not hold, and draw that label. By default
        only recorded labels can be had.
    progress
        Called with how much is done, of how much.
    asked
        Items with gold in the plan that were chosen (`questions`), and not drawn at random.

    Examples
    --------
    >>> from venire import Everyone, Item, Label, Labeler, Scheduler
    >>> rng = np.random.default_rng(0)
    >>> panel = [Labeler(name, 0.8) for name in ("ann", "bob", "cem")]
    >>> start, s = (Scheduler(panel, [0, 1], Everyone()) for _ in range(2))
    >>> for n in range(60):
    ...     s.arrive(Item(f"post-{n}", weight=8))
    ...     s.observe([Label(a.item, a.labeler, int(rng.random() < 0.2)) for a in s.assign()])
    ...     _ = s.close()
    >>> fewer = what_if(Recorded.of(start, s.log), Plan(policy="fixed-overlap:1"))
    >>> fewer.measures["labels"].was, fewer.measures["labels"].would_be.value
    (3.0, 1.0)
    """
    if seeds < 1:
        raise InputError(f"got {seeds} seeds, expected 1 or more")
    if not recorded.said:
        raise InputError("the log holds no label: there is nothing to replay")
    table = recorded.table()
    _check_gold(table, plan)
    fitted = Auto().fit(table, plan.gold or None, asked)
    rule = Yardstick.of_posteriors(fitted.posteriors_)
    if truth is not None:
        rule = Yardstick.of_truth(as_truth(truth, fitted.table_), len(fitted.table_.classes))
    total = seeds + (plan != Plan())
    same = rerun(recorded, Plan(), progress=_part(progress, 0, total))
    if plan == Plan():
        # where this version decides otherwise than the one that wrote the log, the plan is the same
        runs = [replace(same, exits=recorded.exits, labels=recorded.labelled_by)]
    else:
        runs = []
        for seed in range(seeds):
            drawn = Drawn(recorded, fitted, seed) if simulate_missing else None
            runs.append(rerun(recorded, plan, seed, drawn, _part(progress, 1 + seed, total)))
    return _Judged(recorded, fitted, rule, runs, plan.gold).compare(truth is not None, same)


def _part(
    progress: Callable[[int, int], None] | None, number: int, parts: int
) -> Callable[[int, int], None] | None:
    if progress is None:
        return None
    return lambda done, of: progress(number * of + done, parts * of)


def _check_gold(table: LabelTable, plan: Plan) -> None:
    """Refuse gold that would teach nothing, or that is of no class of the stream."""
    odd = next((k for k in plan.gold.values() if k not in set(table.classes)), None)
    if odd is not None:
        raise InputError(
            f"got gold {odd!r}, expected one of the classes {list(table.classes)}: correct it"
        )
    if plan.gold and not set(plan.gold).intersection(table.items):
        raise InputError(
            f"got gold of {next(iter(plan.gold))!r} and others, none of which has a label in the "
            f"log, expected items such as {table.items[0]!r}"
        )


class _Judged:
    """The runs of a plan, by what they did with each item that left in all of them."""

    def __init__(
        self,
        recorded: Recorded,
        fitted: Auto,
        rule: Yardstick,
        runs: list[Rerun],
        gold: Collection[ItemId],
    ) -> None:
        self.recorded, self.runs, self.rule = recorded, runs, rule
        self.row = {name: s for s, name in enumerate(fitted.table_.items)}
        self.code = {name: k for k, name in enumerate(fitted.table_.classes)}
        every = [recorded.exits, *(run.exits for run in runs)]
        self.items = [i for i in recorded.items if all(i in exits for exits in every)]
        if not self.items:
            raise InputError(
                "no item left both then and now, expected at least one: the log is too short"
            )
        judged = [self.row.get(item, -1) for item in self.items]
        self.places = np.array(judged, np.int64)
        taught = np.array([item in gold for item in self.items])
        self.gold = int(taught.sum())
        self.used = (self.places >= 0) & rule.used[self.places] & ~taught

    def compare(self, measured: bool, same: Rerun) -> Comparison:
        recorded, runs = self.recorded, self.runs
        was = self._measure(recorded.exits, recorded.labelled_by)
        now = [self._measure(run.exits, run.labels) for run in runs]
        left, visits = sum(len(r.exits) for r in runs), sum(r.visits for r in runs)
        missing = sum(sum(run.missing.values()) for run in runs)
        had = sum(len(each) for run in runs for each in run.labels.values())
        had -= sum(run.drawn for run in runs)
        turned = [(run, item) for run in runs for item in self.items if self._turns(run, item)]
        verdicts = len(runs) * len(self.items)
        found = Comparison(
            items=len(recorded.items),
            compared=len(self.items),
            left=round(left / len(runs)),
            seeds=len(runs),
            measured=measured,
            measures={
                name: self._paired(name, was[name], np.mean([each[name] for each in now], axis=0))
                for name in MEASURES
            },
            recorded=len(recorded.exits),
            repeated=sum(same.exits.get(item) == exit for item, exit in recorded.exits.items()),
            held=had / max(had + missing, 1),
            hanging=sum(item in run.missing for run in runs for item in self.items) / verdicts,
            turned=len(turned) / verdicts,
            turned_hanging=sum(item in run.missing for run, item in turned) / verdicts,
            ran_out=sum(run.ran_out for run in runs) / max(left, 1),
            idle=sum(run.idle for run in runs) / max(visits, 1),
            notes=(),
            gold=self.gold,
        )
        return replace(found, notes=tuple(notes_of(found, recorded, runs)))

    def _turns(self, run: Rerun, item: ItemId) -> bool:
        return run.exits[item].verdict.label != self.recorded.exits[item].verdict.label

    def _measure(
        self, exits: Mapping[ItemId, Exit], labels: Mapping[ItemId, list[LabelerId]]
    ) -> dict[str, Floats]:
        """Each measure, of each item: an array, for `right` items x classes."""
        said = np.zeros((len(self.items), len(self.code)))
        paid, money, wait = (np.zeros(len(self.items)) for _ in range(3))
        for i, item in enumerate(self.items):
            exit, given = exits[item], labels.get(item, [])
            if exit.verdict.label is not None:
                said[i, self.code[exit.verdict.label]] = 1.0
            paid[i] = len(given)
            money[i] = sum(self.recorded.prices.get(who, 0.0) for who in given)
            wait[i] = exit.slot - exit.arrival
        return {"right": said, "labels": paid, "money": money, "wait": wait}

    def _paired(self, name: str, was: Floats, now: Floats) -> Paired:
        if name != "right":
            mean = float(was.mean())
            return Paired(mean, _blocked(now), _blocked(now - was))
        if not self.used.any():
            raise InputError(
                "no item that left and is not gold has a known truth, expected at least one"
            )
        used, q = self.used, self.rule.q[self.places[self.used]]
        before, after = was[used], now[used]
        mean = float((before * q).sum(axis=1).mean())
        return Paired(mean, _doubted(after, q), _doubted(after - before, q))


def notes_of(found: Comparison, recorded: Recorded, runs: Sequence[Rerun]) -> list[str]:
    """What could not be repeated, and how much that matters; counts are those of one run."""
    notes = [f"with nothing changed it repeats {found.repeated:,} of {found.recorded:,} verdicts"]
    if found.repeated < found.recorded:
        notes[0] += (
            ": another version of venire decided the others, so differences that are no larger "
            "than that may be no effect of the plan"
        )
    if found.gold:
        notes.append(
            f"{found.gold:,} gold labels teach, each from when its item leaves: right verdicts are "
            f"counted on the other {found.compared - found.gold:,} items"
        )
    departed = [run.departed for run in runs if run.departed is not None]
    if departed:
        notes.append(f"it does as the log says up to slot {min(departed):,} of {recorded.slots:,}")
    missing = sum(sum(run.missing.values()) for run in runs) / len(runs)
    if missing:
        drawn = any(run.drawn for run in runs)
        had = "were drawn from the learned confusion matrices" if drawn else "cannot be had"
        rest = "rest on them" if drawn else "lack them, or rest on labels of others instead"
        notes.append(
            f"{missing:,.0f} labels that were asked for ({_percent(1 - found.held)} of all) are "
            f"not in the log and {had}: {_percent(found.hanging)} of the verdicts {rest}. Of the "
            f"{_percent(found.turned)} of the verdicts that are others than they were, "
            f"{_percent(found.turned_hanging / max(found.turned, 1e-12))} are among these"
        )
    if found.ran_out:
        notes.append(f"{_percent(found.ran_out)} of the items left because nobody was left to ask")
    if found.idle:
        notes.append(f"{_percent(found.idle)} of the visits of labelers were of no use")
    if found.left < found.items:
        notes.append(f"{found.items - found.left:,} items had not left when the log ends")
    return notes + (_unrepeated(recorded, runs) if departed else [])


def _unrepeated(recorded: Recorded, runs: Sequence[Rerun]) -> list[str]:
    """What is done as it was done, although another plan might have led to something else."""
    notes = []
    moved = sum(run.gold_moved for run in runs) / len(runs)
    if moved:
        notes.append(
            f"gold of {moved:,.0f} items came before they left in one case, and after that in the "
            "other"
        )
    first = {pair: every[0].event for pair, every in recorded.asked.items()}
    unasked = sum(n < 0 and who not in recorded.voices for (_, who), n in first.items())
    if unasked:
        notes.append(
            f"{unasked:,} labels came unasked: whoever gave one is given work at that time, by the "
            "plan"
        )
    taught = sum(labeler in recorded.voices for _, labeler in recorded.said)
    if taught:
        notes.append(
            f"{taught:,} labels are the student's: it says what it said, though other verdicts "
            "would have taught it otherwise"
        )
    changes = [event for event in recorded.log if isinstance(event, Changed)]
    spent = [event.slot for event in changes if event.bounds is not None and event.bounds.spent]
    if spent:
        notes.append(f"the label budget is spent in slot {spent[0]:,}, as it was")
    return notes


def _percent(share: float) -> str:
    return f"{share * 100:.1f} %"


def _blocked(values: Floats) -> Estimate:
    return Estimate(float(values.mean()), math.sqrt(_variance(values)))


def _doubted(shares: Floats, q: Floats) -> Estimate:
    """The mean of shares[item, class] over classes drawn from q; their doubt adds to the error."""
    values = (shares * q).sum(axis=1)
    doubt = ((shares * shares * q).sum(axis=1) - values * values).sum() / len(values) ** 2
    error = math.sqrt(_variance(values) + max(float(doubt), 0.0))
    return Estimate(float(values.mean()), error)


def _variance(values: Floats) -> float:
    blocks = min(BLOCKS, len(values))
    if blocks < 2:
        return math.inf
    means = [float(part.mean()) for part in np.array_split(values, blocks)]
    return float(np.var(means, ddof=1)) / blocks
