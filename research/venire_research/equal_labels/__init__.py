"""Accuracy at equal labels: venire against even overlap, 2 + 1 and a plain loop on real label sets.

    from venire_research.equal_labels import measure

    rows = measure("rte", "chosen", 3, seed=0, data="shared/data")

replay.py      a label set as a stream in which every item comes once
buying.py      what venire does with a budget of labels
rivals.py      even overlap with random labelers, and two labels and a third if they differ
plain_loop.py  the simplest adaptive loop, which streams too
measures.py    what is measured in one cell: set, mode, number of labels, seed
comparison.py  all cells: rows
summary.py     means over the seeds, differences to the best rival, tables
"""

from __future__ import annotations

from venire_research.equal_labels.buying import MODES, Bought, buy
from venire_research.equal_labels.comparison import POINTS, compare
from venire_research.equal_labels.measures import RULE, SUITE, measure, measure_stream
from venire_research.equal_labels.plain_loop import PLAIN_LOOP, plain_loop
from venire_research.equal_labels.replay import Replay, replay, sets_in
from venire_research.equal_labels.rivals import even_overlap, two_plus_one

__all__ = [
    "MODES",
    "PLAIN_LOOP",
    "POINTS",
    "RULE",
    "SUITE",
    "Bought",
    "Replay",
    "buy",
    "compare",
    "even_overlap",
    "measure",
    "measure_stream",
    "plain_loop",
    "replay",
    "sets_in",
    "two_plus_one",
]
