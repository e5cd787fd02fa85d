"""Runs and certificates where labels have no price, as totals in data/without-prices.json.

    python -m tests.without_prices          writes them again, by the code of now

They are compared to a hundredth: processors differ in the last digit of a logarithm, and a tie that
falls the other way changes who is asked. The file is written again only where a policy or the
learner is changed on purpose.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

from venire import LearnWhileServing, Policy, Run, scheduling, simulate
from venire_research.regimes import regimes_named
from venire_research.regimes.suite import REGIMES

STORED = Path(__file__).parent / "data" / "without-prices.json"

#: Regimes without a download.
MADE = [regime.name for regime in REGIMES if regime.uses is None]

#: Every policy that the package exports; those in plain Python are made by whoever subclasses one.
POLICIES: dict[str, Policy] = {
    kind.name: kind()
    for kind in (getattr(scheduling, name) for name in dir(scheduling))
    if isinstance(kind, type) and issubclass(kind, Policy) and hasattr(kind, "name")
}

SLOTS = 60


def run_of(regime: str, policy: str) -> Run:
    """A policy on a regime of the suite; `four-classes` is learned while it is served."""
    (found,) = regimes_named([regime])
    learning = LearnWhileServing() if regime == "four-classes" else None
    return simulate(found.world(3, SLOTS), POLICIES[policy], learning, SLOTS)


def totals(run: Run) -> list[float]:
    """Labels, rounds of waiting, and the utility: as believed, as realised, and the true one."""
    waits = float((run.rows["exit"] - run.rows["arrival"]).sum())
    ledger = run.ledger.utility, run.ledger.realised, run.ledger.true
    return [float(len(run.touches)), waits, *(float(np.sum(part)) for part in ledger)]


def certified(regime: str) -> list[float]:
    """The bounds of a certificate on a regime."""
    found = run_of(regime, "greedy").certificate()
    return [found.bound, found.lower]


def main() -> None:
    only = sys.argv[1:]
    stored = json.loads(STORED.read_text()) if STORED.exists() else {}
    for regime in MADE:
        for policy in POLICIES:
            if not only or policy in only:
                stored[f"{regime} {policy}"] = totals(run_of(regime, policy))
        if not only and regime in CERTIFIED:
            stored[regime] = certified(regime)
    STORED.write_text(json.dumps(dict(sorted(stored.items())), indent=1) + "\n")


#: Regimes whose certificate takes no more than some seconds.
CERTIFIED = ("one-expert", "bursts", "capacities")


if __name__ == "__main__":
    main()
