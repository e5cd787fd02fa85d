"""Who is how good: estimators of competence, and what the theory says about learning it.

Names are loaded when they are first used, so that `Known` and the theory need neither Numba
nor SciPy. Adding an estimator is one file and one line below.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from venire.competence.base import CompetenceEstimator
    from venire.competence.known import Known
    from venire.competence.monitor import Monitor, Step
    from venire.competence.one_coin import OneCoin
    from venire.competence.planning import Plan, plan
    from venire.competence.spectral import agreement_moments, spectral_start

_HOME = {
    "CompetenceEstimator": "base",
    "Known": "known",
    "Monitor": "monitor",
    "OneCoin": "one_coin",
    "Plan": "planning",
    "Step": "monitor",
    "agreement_moments": "spectral",
    "plan": "planning",
    "spectral_start": "spectral",
}

__all__ = [
    "CompetenceEstimator",
    "Known",
    "Monitor",
    "OneCoin",
    "Plan",
    "Step",
    "agreement_moments",
    "plan",
    "spectral_start",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return __all__
