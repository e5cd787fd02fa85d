"""Estimators: verdicts from labels, and how good each labeler is.

    auto          the default
    votes         majority and weighted; `anchor`: the vote that learns a little
    one_coin      the paper's Algorithm 3; `dawid_skene`: confusion matrices
    genie         competences that are given
    streaming     labels that come in batches
    ratings       classes with an order, numbers, comparisons
    gold          items of known class, and how sure to be by them; `questions`: which to ask about
    mixture       what gold teaches, explanations weighed by it; `teaching`: an estimator so taught
    screening     labelers who never look or share errors; `clones`: copies of each other
    dependence    how much errors have in common, and labelers who share them
    voices        a labeler who says how sure it is, as two: when it is sure and when it is not
    intervals     confidence intervals of the skills
    metrics       how right verdicts are, how far labelers agree
    passes        the compiled loops; `blocks`: how threads share them

Names are loaded when they are first used, so that `Known` needs neither Numba nor SciPy. Adding
an estimator is one file and one line below.
"""

from typing import TYPE_CHECKING

from venire.tools.lazy import attach

if TYPE_CHECKING:
    from venire.estimators.anchor import Anchored as Anchored
    from venire.estimators.auto import Auto as Auto
    from venire.estimators.base import BaseEstimator as BaseEstimator
    from venire.estimators.base import Monitor as Monitor
    from venire.estimators.base import Step as Step
    from venire.estimators.clones import CloneGroup as CloneGroup
    from venire.estimators.clones import ClonePair as ClonePair
    from venire.estimators.clones import Clones as Clones
    from venire.estimators.clones import find_clones as find_clones
    from venire.estimators.dawid_skene import DawidSkene as DawidSkene
    from venire.estimators.dependence import calibrated as calibrated
    from venire.estimators.dependence import certainty as certainty
    from venire.estimators.dependence import merge_clones as merge_clones
    from venire.estimators.dependence import residual_dependence as residual_dependence
    from venire.estimators.dependence import temper as temper
    from venire.estimators.genie import Known as Known
    from venire.estimators.intervals import skill_intervals as skill_intervals
    from venire.estimators.metrics import krippendorff_alpha as krippendorff_alpha
    from venire.estimators.metrics import vote_entropy as vote_entropy
    from venire.estimators.one_coin import OneCoin as OneCoin
    from venire.estimators.one_coin import agreement_moments as agreement_moments
    from venire.estimators.one_coin import spectral_start as spectral_start
    from venire.estimators.ratings.bradley_terry import BradleyTerry as BradleyTerry
    from venire.estimators.ratings.ordinal import Ordinal as Ordinal
    from venire.estimators.ratings.robust_mean import RobustMean as RobustMean
    from venire.estimators.screening import find_constant as find_constant
    from venire.estimators.streaming.drift import Drift as Drift
    from venire.estimators.streaming.drift import DriftMonitor as DriftMonitor
    from venire.estimators.streaming.estimator import Streaming as Streaming
    from venire.estimators.votes import MajorityVote as MajorityVote
    from venire.estimators.votes import WeightedMajority as WeightedMajority
else:
    __getattr__, __dir__ = attach(__name__)
