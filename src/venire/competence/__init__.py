"""Who is how good: estimators of competence, and what the theory says about learning it.

Names are loaded when they are first used, so that `Known` and the theory need neither Numba
nor SciPy. Adding an estimator is one file and one line below.
"""

from typing import TYPE_CHECKING

from venire.lazy import attach

if TYPE_CHECKING:
    from venire.competence.base import CompetenceEstimator as CompetenceEstimator
    from venire.competence.dawid_skene import DawidSkene as DawidSkene
    from venire.competence.drift import Drift as Drift
    from venire.competence.drift import DriftMonitor as DriftMonitor
    from venire.competence.intervals import skill_intervals as skill_intervals
    from venire.competence.known import Known as Known
    from venire.competence.monitor import Monitor as Monitor
    from venire.competence.monitor import Step as Step
    from venire.competence.one_coin import OneCoin as OneCoin
    from venire.competence.planning import Plan as Plan
    from venire.competence.planning import plan as plan
    from venire.competence.spectral import agreement_moments as agreement_moments
    from venire.competence.spectral import spectral_start as spectral_start
    from venire.competence.subtypes import Subtypes as Subtypes
else:
    __getattr__, __dir__ = attach(__name__)
