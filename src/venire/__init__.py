"""venire draws labelers for the items of a stream, and learns how good they are.

    import venire as vn

The names below are loaded when they are first used, so that importing the package is quick.
"""

from typing import TYPE_CHECKING

from venire.lazy import attach

__version__ = "0.1.0"

if TYPE_CHECKING:
    from venire.aggregation import Anchored as Anchored
    from venire.aggregation import Auto as Auto
    from venire.aggregation import BradleyTerry as BradleyTerry
    from venire.aggregation import MajorityVote as MajorityVote
    from venire.aggregation import Ordinal as Ordinal
    from venire.aggregation import RobustMean as RobustMean
    from venire.aggregation import Streaming as Streaming
    from venire.aggregation import WeightedMajority as WeightedMajority
    from venire.aggregation import find_clones as find_clones
    from venire.aggregation import find_constant as find_constant
    from venire.aggregation import krippendorff_alpha as krippendorff_alpha
    from venire.aggregation import vote_entropy as vote_entropy
    from venire.client import AsyncClient as AsyncClient
    from venire.client import Client as Client
    from venire.competence import DawidSkene as DawidSkene
    from venire.competence import Known as Known
    from venire.competence import OneCoin as OneCoin
    from venire.competence import Subtypes as Subtypes
    from venire.engine import Scheduler as Scheduler
    from venire.errors import FetchError as FetchError
    from venire.errors import FileError as FileError
    from venire.errors import InputError as InputError
    from venire.errors import MissingExtra as MissingExtra
    from venire.errors import ReplayError as ReplayError
    from venire.errors import StateError as StateError
    from venire.errors import UnknownName as UnknownName
    from venire.errors import VenireError as VenireError
    from venire.labels import LabelTable as LabelTable
    from venire.model import Assignment as Assignment
    from venire.model import Bounds as Bounds
    from venire.model import Exit as Exit
    from venire.model import ExitReason as ExitReason
    from venire.model import Item as Item
    from venire.model import Label as Label
    from venire.model import Labeler as Labeler
    from venire.model import Revision as Revision
    from venire.model import Verdict as Verdict
    from venire.scheduling import Algorithm2 as Algorithm2
    from venire.scheduling import Everyone as Everyone
    from venire.scheduling import FixedOverlap as FixedOverlap
    from venire.scheduling import Greedy as Greedy
    from venire.scheduling import Learning as Learning
    from venire.scheduling import LearnThenServe as LearnThenServe
    from venire.scheduling import LearnWhileServing as LearnWhileServing
    from venire.scheduling import LookAhead as LookAhead
    from venire.scheduling import Policy as Policy
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
    from venire.tables import as_table as as_table
else:
    __getattr__, __dir__ = attach(__name__, "__version__")
