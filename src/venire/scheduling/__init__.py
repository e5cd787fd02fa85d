"""Who labels what: policies, and how competences are learned while they run.

Names are loaded when they are first used, so that nothing is compiled before it is needed. Adding
a policy is one file and one line below, which also makes its name known to `--policy`.
"""

from typing import TYPE_CHECKING

from venire.tools.lazy import attach

if TYPE_CHECKING:
    from venire.scheduling.base import Kernels as Kernels
    from venire.scheduling.base import Learning as Learning
    from venire.scheduling.base import Policy as Policy
    from venire.scheduling.learning import Algorithm2 as Algorithm2
    from venire.scheduling.learning import LearnThenServe as LearnThenServe
    from venire.scheduling.learning import LearnWhileServing as LearnWhileServing
    from venire.scheduling.policies.baselines import Everyone as Everyone
    from venire.scheduling.policies.baselines import FixedOverlap as FixedOverlap
    from venire.scheduling.policies.baselines import Random as Random
    from venire.scheduling.policies.baselines import RoundRobin as RoundRobin
    from venire.scheduling.policies.greedy import Greedy as Greedy
    from venire.scheduling.policies.lookahead import LookAhead as LookAhead
    from venire.scheduling.policies.plain import ItemView as ItemView
    from venire.scheduling.policies.plain import LabelerView as LabelerView
    from venire.scheduling.policies.plain import PythonPolicy as PythonPolicy
    from venire.scheduling.policies.realised import Realised as Realised
    from venire.scheduling.policies.realised import RealisedProxy as RealisedProxy
    from venire.scheduling.policies.waterfill import Waterfill as Waterfill
else:
    __getattr__, __dir__ = attach(__name__)
