"""From labels to verdicts: votes, the blend that is the default, and labelers who are copies.

Names are loaded when they are first used. Adding a method is one file and one line below.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from venire.aggregation.agreement import krippendorff_alpha, vote_entropy
    from venire.aggregation.anchored import Anchored
    from venire.aggregation.auto import Auto
    from venire.aggregation.calibration import calibrated, residual_dependence, temper
    from venire.aggregation.clones import CloneGroup, ClonePair, Clones, find_clones
    from venire.aggregation.constant import find_constant
    from venire.aggregation.majority import MajorityVote
    from venire.aggregation.merging import merge_clones
    from venire.aggregation.ordinal import Ordinal
    from venire.aggregation.pairwise import BradleyTerry
    from venire.aggregation.robust import RobustMean
    from venire.aggregation.weighted import WeightedMajority

_HOME = {
    "Anchored": "anchored",
    "Auto": "auto",
    "BradleyTerry": "pairwise",
    "CloneGroup": "clones",
    "ClonePair": "clones",
    "Clones": "clones",
    "MajorityVote": "majority",
    "Ordinal": "ordinal",
    "RobustMean": "robust",
    "WeightedMajority": "weighted",
    "calibrated": "calibration",
    "find_clones": "clones",
    "find_constant": "constant",
    "krippendorff_alpha": "agreement",
    "merge_clones": "merging",
    "residual_dependence": "calibration",
    "temper": "calibration",
    "vote_entropy": "agreement",
}

__all__ = [
    "Anchored",
    "Auto",
    "BradleyTerry",
    "CloneGroup",
    "ClonePair",
    "Clones",
    "MajorityVote",
    "Ordinal",
    "RobustMean",
    "WeightedMajority",
    "calibrated",
    "find_clones",
    "find_constant",
    "krippendorff_alpha",
    "merge_clones",
    "residual_dependence",
    "temper",
    "vote_entropy",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return __all__
