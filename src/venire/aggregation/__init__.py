"""From labels to verdicts: votes, the blend that is the default, and labelers who are copies.

Names are loaded when they are first used. Adding a method is one file and one line below.
"""

from typing import TYPE_CHECKING

from venire.lazy import attach

if TYPE_CHECKING:
    from venire.aggregation.agreement import krippendorff_alpha as krippendorff_alpha
    from venire.aggregation.agreement import vote_entropy as vote_entropy
    from venire.aggregation.anchored import Anchored as Anchored
    from venire.aggregation.auto import Auto as Auto
    from venire.aggregation.calibration import calibrated as calibrated
    from venire.aggregation.calibration import certainty as certainty
    from venire.aggregation.calibration import residual_dependence as residual_dependence
    from venire.aggregation.calibration import temper as temper
    from venire.aggregation.clones import CloneGroup as CloneGroup
    from venire.aggregation.clones import ClonePair as ClonePair
    from venire.aggregation.clones import Clones as Clones
    from venire.aggregation.clones import find_clones as find_clones
    from venire.aggregation.constant import find_constant as find_constant
    from venire.aggregation.majority import MajorityVote as MajorityVote
    from venire.aggregation.merging import merge_clones as merge_clones
    from venire.aggregation.ordinal import Ordinal as Ordinal
    from venire.aggregation.pairwise import BradleyTerry as BradleyTerry
    from venire.aggregation.robust import RobustMean as RobustMean
    from venire.aggregation.streaming import Streaming as Streaming
    from venire.aggregation.weighted import WeightedMajority as WeightedMajority
else:
    __getattr__, __dir__ = attach(__name__)
