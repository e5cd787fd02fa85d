"""Who is how good: estimators of competence, and what the theory says about learning it.

Names are loaded when they are first used, so that `Known` and the theory need neither Numba
nor SciPy. Adding an estimator is one file and one line below.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from venire.competence.base import CompetenceEstimator
    from venire.competence.dawid_skene import DawidSkene
    from venire.competence.drift import Drift, DriftMonitor
    from venire.competence.intervals import skill_intervals
    from venire.competence.known import Known
    from venire.competence.monitor import Monitor, Step
    from venire.competence.one_coin import OneCoin
    from venire.competence.planning import Plan, plan
    from venire.competence.spectral import agreement_moments, spectral_start
    from venire.competence.streaming import Streaming
    from venire.competence.subtypes import Subtypes

_HOME = {
    "CompetenceEstimator": "base",
    "DawidSkene": "dawid_skene",
    "Drift": "drift",
    "DriftMonitor": "drift",
    "Known": "known",
    "Monitor": "monitor",
    "OneCoin": "one_coin",
    "Plan": "planning",
    "Step": "monitor",
    "Streaming": "streaming",
    "Subtypes": "subtypes",
    "agreement_moments": "spectral",
    "plan": "planning",
    "skill_intervals": "intervals",
    "spectral_start": "spectral",
}

__all__ = [
    "CompetenceEstimator",
    "DawidSkene",
    "Drift",
    "DriftMonitor",
    "Known",
    "Monitor",
    "OneCoin",
    "Plan",
    "Step",
    "Streaming",
    "Subtypes",
    "agreement_moments",
    "plan",
    "skill_intervals",
    "spectral_start",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return __all__
