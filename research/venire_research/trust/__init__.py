"""The suite `trust-2`: worlds that violate the model, and whether streamed verdicts can be trusted.

    from venire import LearnWhileServing, Realised
    from venire_research.trust import measure

    row = measure("spammers-6", Realised(), LearnWhileServing(), seed=0)

worlds.py      the worlds
posts.py       that of docs/serve.md
measures.py    what is measured in one cell: world, policy, way of learning, seed
comparison.py  all cells: rows
summary.py     means over the seeds, and whether each cell passes
"""

from __future__ import annotations

from venire_research.trust.comparison import compare
from venire_research.trust.measures import SUITE, labels_of, measure
from venire_research.trust.worlds import SLOTS, WORLDS, world_named

__all__ = ["SLOTS", "SUITE", "WORLDS", "compare", "labels_of", "measure", "world_named"]
