"""Error and utility against T_L on the Bird set, T = 4,000.

venire reproduce --figure bird-learning --data DIR
"""

from __future__ import annotations

from venire_research.figures import bird_regret
from venire_research.reproduction.learning import LENGTHS, LearningFigure
from venire_research.reproduction.sources import BIRD
from venire_research.reproduction.trials import Expected, Grid

__all__ = ["FIGURE"]

FIGURE = LearningFigure(
    name="bird-learning",
    title="Error and utility against the length of the learning phase, Bird set",
    paper=(
        "For T = 4,000 on the Bird set: the accuracy of the learned confusion matrices and the "
        "utilities of both algorithms, against T_L."
    ),
    sources=(BIRD,),
    full=Grid(horizons=(4000,), lengths=LENGTHS, seeds=40),
    quick=Grid(horizons=(4000,), lengths=LENGTHS, seeds=6),
    expected=(Expected("bird", "ratio", 45, target=0.95, tolerance=0.02),),
    assumptions=(
        *bird_regret.FIGURE.assumptions,
        "The error is against the competences learned on all labels, which are not the truth.",
    ),
)
