"""From labels to verdicts: votes, the blend that is the default, and labelers who are copies.

Names are loaded when they are first used. Adding a method is one file and one line below.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from venire.aggregation.anchored import Anchored
    from venire.aggregation.auto import Auto
    from venire.aggregation.calibration import calibrated, residual_dependence, temper
    from venire.aggregation.clones import CloneGroup, ClonePair, Clones, find_clones
    from venire.aggregation.constant import find_constant
    from venire.aggregation.majority import MajorityVote
    from venire.aggregation.merging import merge_clones
    from venire.aggregation.weighted import WeightedMajority

_HOME = {
    "Anchored": "anchored",
    "Auto": "auto",
    "CloneGroup": "clones",
    "ClonePair": "clones",
    "Clones": "clones",
    "MajorityVote": "majority",
    "WeightedMajority": "weighted",
    "calibrated": "calibration",
    "find_clones": "clones",
    "find_constant": "constant",
    "merge_clones": "merging",
    "residual_dependence": "calibration",
    "temper": "calibration",
}

__all__ = [
    "Anchored",
    "Auto",
    "CloneGroup",
    "ClonePair",
    "Clones",
    "MajorityVote",
    "WeightedMajority",
    "calibrated",
    "find_clones",
    "find_constant",
    "merge_clones",
    "residual_dependence",
    "temper",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return __all__
