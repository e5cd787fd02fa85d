"""Speed, each figure as a ratio against a reference in the same run: sh scripts/bench."""

from __future__ import annotations

import sys

from benchmarks import greedy

SUITES = {"greedy": greedy.main}

for name in sys.argv[1:] or SUITES:
    if name not in SUITES:
        sys.exit(f"unknown benchmark {name!r}. Known: {', '.join(SUITES)}")
    SUITES[name]()
