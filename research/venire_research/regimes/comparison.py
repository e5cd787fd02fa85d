"""Compare policies over the suite: one row for each regime, seed and policy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

from venire.errors import InputError
from venire.scheduling import Greedy
from venire.scheduling.base import Learning, Policy
from venire.scheduling.by_name import KNOWN, exported, policy_named
from venire_research.common.runs import run_points
from venire_research.regimes.hindsight import BEST_OVERLAP, best_of, overlaps
from venire_research.regimes.measures import Stream, certified, served
from venire_research.regimes.suite import (
    QUICK_SEEDS,
    SEEDS,
    SUITE,
    Regime,
    divide,
    regimes_named,
)
from venire_research.sweeps.executors import Executor
from venire_research.sweeps.store import Store
from venire_research.sweeps.sweep import Point

__all__ = ["ACCOUNTS", "COLUMNS", "Row", "compare", "default_policies"]

Row: TypeAlias = dict[str, Any]

#: Each accounting with its share of the certificate, and its ratio to Algorithm 1's.
ACCOUNTS: Final = {
    "utility": ("share", "utility_ratio"),
    "realised_utility": ("realised_share", "realised_ratio"),
    "true_utility": ("true_share", "true_ratio"),
}

#: The columns of a row, in this order.
COLUMNS: Final = (
    *("suite", "regime", "seed", "slots", "policy", "learning"),
    *("items", "labels", "weight", "judged_weight"),
    *("utility", "realised_utility", "true_utility", "accuracy"),
    *("labels_per_item", "mean_response", "p95_response"),
    *("certificate", "certificate_gap", "certificate_method"),
    *("share", "realised_share", "true_share"),
    *("utility_ratio", "realised_ratio", "true_ratio"),
)


def default_policies() -> list[Policy]:
    """Every policy that `venire.scheduling` exports and that needs no setting, by name.

    >>> [policy.describe() for policy in default_policies()][:2]
    ['everyone', 'fixed-overlap:3']
    """
    made = []
    for name in sorted(exported(Policy)):
        try:
            made.append(policy_named(name))
        except InputError:  # it has a setting without a default
            continue
    return made


def compare(
    policies: Iterable[Policy | str] | None = None,
    regimes: Iterable[Regime | str] | None = None,
    seeds: int | Sequence[int] | None = None,
    *,
    learning: Learning | None = None,
    quick: bool = False,
    certificate: bool = True,
    data: Path | None = None,
    store: Store | None = None,
    executor: Executor | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[Row]:
    """Run every policy on every regime and seed; one row of `COLUMNS` for each.

    Parameters
    ----------
    policies
        Policies, your own too, or names of ours, or "best-overlap", the fixed overlap that turns
        out to be the best; None: all of these.
    regimes
        Regimes, your own too, or names; None: all whose label sets are there.
    seeds
        How many, or which; None: the suite's.
    learning
        How competences are learned; None: they are known.
    quick
        Shorter streams and fewer seeds.
    certificate
        Whether to compute the certificates.
    data
        The folder of label sets; None: those that `venire datasets` has.
    store, executor, progress
        Where finished points are stored (by default nowhere), where they run, and a progress
        callback.

    >>> rows = compare(["greedy", "fixed-overlap:3"], ["bursts"], seeds=1, quick=True)
    >>> [(row["policy"], round(row["utility_ratio"], 2)) for row in rows]
    [('greedy', 1.0), ('fixed-overlap:3', 0.89)]
    """
    chosen = _candidates([*default_policies(), BEST_OVERLAP] if policies is None else policies)
    worlds = _regimes(regimes, data)
    streams = [
        Stream(regime, seed, regime.quick_slots if quick else regime.slots, data)
        for regime in worlds
        for seed in _seeds(seeds, quick)
    ]
    genie = Greedy()
    points: list[Point] = [certified(s, learning) for s in streams] if certificate else []
    everybody = [genie, *(policy for some in chosen.values() for policy in some)]
    points += [served(s, policy, learning) for s in streams for policy in everybody]
    results = run_points(points, store, executor, progress)
    rows = []
    for stream in streams:
        bound = results[certified(stream, learning).key] if certificate else {}
        paced = results[served(stream, genie, learning).key]
        for name, some in chosen.items():
            found = best_of([results[served(stream, p, learning).key] for p in some])
            rows.append(_row(stream, name, learning, found, bound, paced))
    return rows


def _candidates(given: Iterable[Policy | str]) -> dict[str, list[Policy]]:
    """By name the policy, or those of which the best counts."""
    found: dict[str, list[Policy]] = {}
    for one in given:
        if one == BEST_OVERLAP:
            found[BEST_OVERLAP] = [*overlaps()]
            continue
        policy = policy_named(one) if isinstance(one, str) else one
        (other, *_) = found.setdefault(policy.describe(), [policy])
        if type(other) is not type(policy):
            raise InputError(
                f"two policies are called {policy.describe()!r}: give one another `name`"
            )
    if not found:
        raise InputError("got no policies, expected at least one")
    return found


def _regimes(given: Iterable[Regime | str] | None, data: Path | None) -> list[Regime]:
    if given is None:
        return divide(regimes_named([]), data)[0]
    listed = [regimes_named([r])[0] if isinstance(r, str) else r for r in given]
    names = [regime.name for regime in listed]
    if not names or len(set(names)) < len(names):
        raise InputError(f"got the regimes {names}, expected at least one, and none twice")
    return divide(listed, data, wanted=True)[0]


def _seeds(given: int | Sequence[int] | None, quick: bool) -> list[int]:
    if given is None:
        given = QUICK_SEEDS if quick else SEEDS
    seeds = list(range(given)) if isinstance(given, int) else list(given)
    if not seeds or len(set(seeds)) < len(seeds) or min(seeds) < 0:
        raise InputError(f"got the seeds {given}, expected at least one, from 0 on, none twice")
    return seeds


def _row(
    stream: Stream,
    policy: str,
    learning: Learning | None,
    found: Mapping[str, Any],
    bound: Mapping[str, Any],
    paced: Mapping[str, Any],
) -> Row:
    """What was measured, with its shares and ratios, in the order of `COLUMNS`."""
    row: Row = dict.fromkeys(COLUMNS)
    row |= {
        # a shorter stream is another world: its numbers are not the suite's
        "suite": SUITE if stream.slots == stream.regime.slots else f"{SUITE}-quick",
        "regime": stream.regime.name,
        "seed": stream.seed,
        "slots": stream.slots,
        "policy": policy,
        "learning": KNOWN if learning is None else learning.describe(),
    }
    row |= dict(found) | dict(bound)
    for account, (share, ratio) in ACCOUNTS.items():
        most = row["judged_weight"] if account == "true_utility" else row["certificate"]
        row[share] = _over(row[account], most)
        row[ratio] = _over(row[account], paced[account])
    return row


def _over(value: float | None, of: float | None) -> float | None:
    """A share or a ratio; None where there is nothing to compare with."""
    return None if value is None or of is None or of <= 0 else value / of
