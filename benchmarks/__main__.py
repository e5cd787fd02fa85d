"""Speed, each figure as a ratio against a reference in the same run: sh scripts/bench.

Names of benchmarks choose some of them; options (--peers, --huge) go to those that know them.
"""

from __future__ import annotations

import sys
from importlib import import_module

from benchmarks import aggregation, batch, certificates, greedy, plain_policy, priors, waterfill


def greedy_main(*_: str) -> None:
    greedy.main()


def waterfill_main(*_: str) -> None:
    waterfill.main()


SUITES = {
    "aggregation": aggregation.main,
    "batch": batch.main,
    "certificates": certificates.main,
    "greedy": greedy_main,
    "plain-policy": plain_policy.main,
    "priors": priors.main,
    "waterfill": waterfill_main,
}

#: These measure quality, or the server, and take options of their own.
QUALITY = {
    "audits": "audits",
    "budget": "budget",
    "clones": "clones",
    "cluster": "cluster",
    "comparisons": "comparisons",
    "console": "console",
    "costs": "costs",
    "expert": "expert",
    "families": "families",
    "first-run": "first_run",
    "footprint": "footprint",
    "gold": "gold",
    "gold-streams": "gold_streams",
    "guarantee": "guarantee",
    "guarantee-streams": "guarantee_streams",
    "judge-panels": "judge_panels",
    "judges": "judges",
    "learning": "learning",
    "leave-one-out": "leave_one_out",
    "overlaps": "overlaps",
    "rates": "rates",
    "ratings": "ratings",
    "real-data": "real_data",
    "realised": "realised",
    "restart": "restart",
    "shared": "shared",
    "starts": "starts",
    "voices": "voices",
    "student": "student",
    "zoo": "zoo",
}

if sys.argv[1:2] and sys.argv[1] in QUALITY:
    import_module(f"benchmarks.{QUALITY[sys.argv[1]]}").main(sys.argv[2:])
    sys.exit()

options = [a for a in sys.argv[1:] if a.startswith("--")]
for name in [a for a in sys.argv[1:] if not a.startswith("--")] or SUITES:
    if name not in SUITES:
        sys.exit(f"unknown benchmark {name!r}. Known: {', '.join([*SUITES, *QUALITY])}")
    SUITES[name](*options)
