"""The suite of regimes: worlds on which schedulers are compared.

    from venire_research.regimes import compare

    rows = compare([MyPolicy(), "greedy"], seeds=5)

synthetic.py   the made worlds
replayed.py    the real label sets as streams
suite.py       which worlds there are, and the name of the suite
measures.py    what is measured on one stream
hindsight.py   the fixed overlap that turns out to be the best
comparison.py  every policy on every regime and seed: rows
summary.py     means with spread over the seeds, and one line for each policy
table.py       the terminal
picture.py     regimes.png
page.py        index.html
files.py       all of the files, or none
"""

from __future__ import annotations

from venire_research.regimes.comparison import COLUMNS, Row, compare, default_policies
from venire_research.regimes.suite import REGIMES, SUITE, Regime, regimes_named

__all__ = [
    "COLUMNS",
    "REGIMES",
    "SUITE",
    "Regime",
    "Row",
    "compare",
    "default_policies",
    "regimes_named",
]
