"""Who labels what: policies, and how competences come to be known while they run.

Names are loaded when they are first used, so that nothing compiles before it must. Adding a
policy is one file and one line below.
"""

from typing import TYPE_CHECKING

from venire.lazy import attach

if TYPE_CHECKING:
    from venire.scheduling.base import Kernels as Kernels
    from venire.scheduling.base import Learning as Learning
    from venire.scheduling.base import Policy as Policy
    from venire.scheduling.everyone import Everyone as Everyone
    from venire.scheduling.fixed_overlap import FixedOverlap as FixedOverlap
    from venire.scheduling.greedy import Greedy as Greedy
    from venire.scheduling.learning import Algorithm2 as Algorithm2
    from venire.scheduling.learning import LearnThenServe as LearnThenServe
    from venire.scheduling.lookahead import LookAhead as LookAhead
    from venire.scheduling.random import Random as Random
    from venire.scheduling.realised import Realised as Realised
    from venire.scheduling.realised import RealisedProxy as RealisedProxy
    from venire.scheduling.round_robin import RoundRobin as RoundRobin
    from venire.scheduling.waterfill import Waterfill as Waterfill
    from venire.scheduling.while_serving import LearnWhileServing as LearnWhileServing
else:
    __getattr__, __dir__ = attach(__name__)
