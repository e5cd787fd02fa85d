"""Who labels what: policies, and how competences come to be known while they run.

Names are loaded when they are first used, so that nothing compiles before it must. Adding a
policy is one file and one line in `_HOME`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from venire.scheduling.base import Kernels, Learning, Policy
    from venire.scheduling.everyone import Everyone
    from venire.scheduling.fixed_overlap import FixedOverlap
    from venire.scheduling.greedy import Greedy
    from venire.scheduling.learning import LearnThenServe
    from venire.scheduling.random import Random
    from venire.scheduling.round_robin import RoundRobin
    from venire.scheduling.while_serving import LearnWhileServing

_HOME = {
    "Everyone": "everyone",
    "FixedOverlap": "fixed_overlap",
    "Greedy": "greedy",
    "Kernels": "base",
    "LearnThenServe": "learning",
    "LearnWhileServing": "while_serving",
    "Learning": "base",
    "Policy": "base",
    "Random": "random",
    "RoundRobin": "round_robin",
}

__all__ = [
    "Everyone",
    "FixedOverlap",
    "Greedy",
    "Kernels",
    "LearnThenServe",
    "LearnWhileServing",
    "Learning",
    "Policy",
    "Random",
    "RoundRobin",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return __all__
