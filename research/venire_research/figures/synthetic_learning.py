"""Error and utility against T_L on synthetic data, T = 10,000 (the paper's appendix).

venire reproduce --figure synthetic-learning
"""

from __future__ import annotations

from venire_research.reproduction.learning import LENGTHS, LearningFigure
from venire_research.reproduction.sources import SYNTHETIC
from venire_research.reproduction.trials import Expected, Grid

__all__ = ["FIGURE"]

FIGURE = LearningFigure(
    name="synthetic-learning",
    title="Error and utility against the length of the learning phase, synthetic data",
    paper=(
        "For T = 10,000 and T_L in {5, 15, 25, 45, ..., 1250}: the infinity norm of the error in "
        "the learned confusion matrices, and the utilities of both algorithms. The genie's curve "
        "is not constant, because arrivals and weights are random."
    ),
    sources=(SYNTHETIC,),
    full=Grid(horizons=(10_000,), lengths=LENGTHS, seeds=40),
    quick=Grid(horizons=(10_000,), lengths=LENGTHS, seeds=6),
    expected=(
        Expected("synthetic", "ratio", 45, target=0.990, tolerance=0.003),
        Expected("synthetic", "norm", 1250, target=0.025, tolerance=0.004),
    ),
    assumptions=(
        "The dots in {5, 15, 25, 45, ..., 1250} are not spelled out; ours are in the CSV.",
        "The norm is the largest error of an entry of any confusion matrix, as in Lemma 13; in the "
        "one-coin model with two classes that is the largest error of a competence.",
        "We run every T_L on the same streams, so that our genie is a flat line with a band; the "
        "paper drew new streams for each T_L, hence its uneven line.",
    ),
)
