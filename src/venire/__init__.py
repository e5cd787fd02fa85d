"""venire draws labelers for the items of a stream, and learns how good they are.

    import venire as vn

The names below are loaded when they are first used, so that importing the package is quick.
"""

from typing import TYPE_CHECKING

from venire.tools.lazy import attach

__version__ = "0.1.0"

if TYPE_CHECKING:
    from venire.audits import ErrorBound as ErrorBound
    from venire.audits import Guarantee as Guarantee
    from venire.audits import Rate as Rate
    from venire.audits import audit_bounds as audit_bounds
    from venire.audits import draw_audit as draw_audit
    from venire.audits import draw_for_rate as draw_for_rate
    from venire.audits import guarantee as guarantee
    from venire.audits import precision_of as precision_of
    from venire.audits import rate_difference as rate_difference
    from venire.audits import recall_of as recall_of
    from venire.audits import share_of as share_of
    from venire.audits import win_rate as win_rate
    from venire.batch import Answer as Answer
    from venire.batch import BatchItem as BatchItem
    from venire.batch import Caller as Caller
    from venire.batch import Labelled as Labelled
    from venire.batch import NoAnswer as NoAnswer
    from venire.batch import label as label
    from venire.batch import label_recorded as label_recorded
    from venire.client import AsyncClient as AsyncClient
    from venire.client import Client as Client
    from venire.cluster import partitioned as partitioned
    from venire.engine import Scheduler as Scheduler
    from venire.errors import FetchError as FetchError
    from venire.errors import FileError as FileError
    from venire.errors import InputError as InputError
    from venire.errors import MissingExtra as MissingExtra
    from venire.errors import ReplayError as ReplayError
    from venire.errors import StateError as StateError
    from venire.errors import UnknownName as UnknownName
    from venire.errors import VenireError as VenireError
    from venire.estimators import Anchored as Anchored
    from venire.estimators import Auto as Auto
    from venire.estimators import BradleyTerry as BradleyTerry
    from venire.estimators import DawidSkene as DawidSkene
    from venire.estimators import Known as Known
    from venire.estimators import MajorityVote as MajorityVote
    from venire.estimators import OneCoin as OneCoin
    from venire.estimators import Ordinal as Ordinal
    from venire.estimators import RobustMean as RobustMean
    from venire.estimators import Streaming as Streaming
    from venire.estimators import WeightedMajority as WeightedMajority
    from venire.estimators import find_clones as find_clones
    from venire.estimators import find_constant as find_constant
    from venire.estimators import krippendorff_alpha as krippendorff_alpha
    from venire.estimators import vote_entropy as vote_entropy
    from venire.estimators.questions import Questions as Questions
    from venire.estimators.questions import questions as questions
    from venire.labels import LabelTable as LabelTable
    from venire.labels.sources import as_table as as_table
    from venire.model import Assignment as Assignment
    from venire.model import Bounds as Bounds
    from venire.model import Budget as Budget
    from venire.model import Exit as Exit
    from venire.model import ExitReason as ExitReason
    from venire.model import Item as Item
    from venire.model import Label as Label
    from venire.model import Labeler as Labeler
    from venire.model import Revision as Revision
    from venire.model import Verdict as Verdict
    from venire.panels import PanelReport as PanelReport
    from venire.panels import panel_report as panel_report
    from venire.scheduling import Algorithm2 as Algorithm2
    from venire.scheduling import Everyone as Everyone
    from venire.scheduling import FixedOverlap as FixedOverlap
    from venire.scheduling import Greedy as Greedy
    from venire.scheduling import Learning as Learning
    from venire.scheduling import LearnThenServe as LearnThenServe
    from venire.scheduling import LearnWhileServing as LearnWhileServing
    from venire.scheduling import LookAhead as LookAhead
    from venire.scheduling import Policy as Policy
    from venire.scheduling import PythonPolicy as PythonPolicy
    from venire.scheduling import Random as Random
    from venire.scheduling import Realised as Realised
    from venire.scheduling import RealisedProxy as RealisedProxy
    from venire.scheduling import RoundRobin as RoundRobin
    from venire.scheduling import Waterfill as Waterfill
    from venire.simulation import Bursty as Bursty
    from venire.simulation import Fixed as Fixed
    from venire.simulation import Poisson as Poisson
    from venire.simulation import Run as Run
    from venire.simulation import Trace as Trace
    from venire.simulation import World as World
    from venire.simulation import simulate as simulate
    from venire.student import Student as Student
    from venire.whatif import Plan as Plan
    from venire.whatif import Recorded as Recorded
    from venire.whatif import what_if as what_if
else:
    __getattr__, __dir__ = attach(__name__, "__version__")
