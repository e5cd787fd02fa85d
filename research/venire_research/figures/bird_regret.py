"""Regret and ratio against T on the Bird set.

venire reproduce --figure bird-regret --data DIR
"""

from __future__ import annotations

from venire_research.reproduction.regret import RegretFigure
from venire_research.reproduction.sources import BIRD
from venire_research.reproduction.trials import Expected, Grid

__all__ = ["FIGURE"]

FIGURE = RegretFigure(
    name="bird-regret",
    title="Regret and ratio against the horizon, Bird set",
    paper=(
        "On the Bird set (39 workers, 108 images), with the genie's confusion matrices learned on "
        "all samples and the best T_L for each T: normalised regret and ratio of Algorithm 2 to "
        "Algorithm 1, with the same reading as for the synthetic data."
    ),
    sources=(BIRD,),
    full=Grid(
        horizons=(100, 200, 500, 1000, 2000, 4000, 10_000, 20_000),
        lengths=(1, 2, 3, 5, 7, 10, 15, 20, 25, 35, 45, 60, 75, 100, 125, 200, 350, 600, 1000),
        seeds=40,
    ),
    quick=Grid(
        horizons=(100, 200, 500, 1000, 2000, 4000),
        lengths=(1, 3, 5, 10, 15, 25, 45, 75, 125),
        seeds=8,
    ),
    expected=(Expected("bird", "ratio", 4000, target=0.959, tolerance=0.03),),
    assumptions=(
        "Arrivals and weights are not stated for the real sets; we take the synthetic ones "
        "(Poisson of rate 5, weights 3 to 10), and draw images with replacement.",
        "Genie and grading: the competences that Algorithm 3 learns from all labels, kept within "
        "[1/2, 0.99]. Utility is thus graded by the model itself; the share of right verdicts is "
        "against the ground truth, which the paper does not show.",
    ),
)
