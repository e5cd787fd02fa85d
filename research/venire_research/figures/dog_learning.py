"""Error and utility against T_L on the DOG set, T = 4,000, in two classes and in four.

venire reproduce --figure dog-learning --data DIR
"""

from __future__ import annotations

from venire_research.figures import dog_regret
from venire_research.reproduction.learning import LENGTHS, LearningFigure
from venire_research.reproduction.sources import DOG, DOG_BINARY
from venire_research.reproduction.trials import Expected, Grid

__all__ = ["FIGURE"]

FIGURE = LearningFigure(
    name="dog-learning",
    title="Error and utility against the length of the learning phase, DOG set",
    paper=(
        "For T = 4,000 on the DOG set: the accuracy of the learned confusion matrices and the "
        "utilities of both algorithms, against T_L."
    ),
    sources=(DOG_BINARY, DOG),
    full=Grid(horizons=(4000,), lengths=LENGTHS, seeds=16),
    quick=Grid(horizons=(4000,), lengths=(5, 15, 45, 125, 450, 1250), seeds=3),
    expected=(
        Expected("dog-binary", "ratio", 45, target=0.987, tolerance=0.006),
        Expected("dog", "ratio", 45, target=0.98, tolerance=0.01),
    ),
    assumptions=(
        *dog_regret.FIGURE.assumptions,
        "A worker who has labelled nothing in the phase stays at Algorithm 3's start and counts "
        "in the norm, which is therefore large however long the phase.",
    ),
)
