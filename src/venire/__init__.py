"""venire draws labelers for the items of a stream, and learns how good they are.

    import venire as vn

The names below are loaded when they are first used, so that importing the package is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from venire.aggregation import (
        Anchored,
        Auto,
        BradleyTerry,
        MajorityVote,
        Ordinal,
        RobustMean,
        WeightedMajority,
        find_clones,
        find_constant,
        krippendorff_alpha,
        vote_entropy,
    )
    from venire.client import AsyncClient, Client
    from venire.competence import DawidSkene, Known, OneCoin, Streaming, Subtypes
    from venire.engine import Scheduler
    from venire.errors import (
        FetchError,
        FileError,
        InputError,
        MissingExtra,
        ReplayError,
        StateError,
        UnknownName,
        VenireError,
    )
    from venire.labels import LabelTable
    from venire.model import Assignment, Bounds, Exit, Item, Label, Labeler, Revision, Verdict
    from venire.scheduling import (
        Everyone,
        FixedOverlap,
        Greedy,
        Learning,
        LearnThenServe,
        LearnWhileServing,
        LookAhead,
        Policy,
        Random,
        Realised,
        RealisedProxy,
        RoundRobin,
        Waterfill,
    )
    from venire.simulation import Bursty, Fixed, Poisson, Run, Trace, World, simulate
    from venire.tables import as_table

__version__ = "0.1.0"

_HOME = {
    "aggregation": (
        "Anchored",
        "Auto",
        "BradleyTerry",
        "MajorityVote",
        "Ordinal",
        "RobustMean",
        "WeightedMajority",
        "find_clones",
        "find_constant",
        "krippendorff_alpha",
        "vote_entropy",
    ),
    "client": ("AsyncClient", "Client"),
    "competence": ("DawidSkene", "Known", "OneCoin", "Streaming", "Subtypes"),
    "engine": ("Scheduler",),
    "errors": (
        "FetchError",
        "FileError",
        "InputError",
        "MissingExtra",
        "ReplayError",
        "StateError",
        "UnknownName",
        "VenireError",
    ),
    "labels": ("LabelTable",),
    "model": ("Assignment", "Bounds", "Exit", "Item", "Label", "Labeler", "Revision", "Verdict"),
    "scheduling": (
        "Everyone",
        "FixedOverlap",
        "Greedy",
        "LearnThenServe",
        "LearnWhileServing",
        "Learning",
        "LookAhead",
        "Policy",
        "Random",
        "Realised",
        "RealisedProxy",
        "RoundRobin",
        "Waterfill",
    ),
    "tables": ("as_table",),
    "simulation": ("Bursty", "Fixed", "Poisson", "Run", "Trace", "World", "simulate"),
}
_MODULE = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "Anchored",
    "Assignment",
    "AsyncClient",
    "Auto",
    "Bounds",
    "BradleyTerry",
    "Bursty",
    "Client",
    "DawidSkene",
    "Everyone",
    "Exit",
    "FetchError",
    "FileError",
    "Fixed",
    "FixedOverlap",
    "Greedy",
    "InputError",
    "Item",
    "Known",
    "Label",
    "LabelTable",
    "Labeler",
    "LearnThenServe",
    "LearnWhileServing",
    "Learning",
    "LookAhead",
    "MajorityVote",
    "MissingExtra",
    "OneCoin",
    "Ordinal",
    "Poisson",
    "Policy",
    "Random",
    "Realised",
    "RealisedProxy",
    "ReplayError",
    "Revision",
    "RobustMean",
    "RoundRobin",
    "Run",
    "Scheduler",
    "StateError",
    "Streaming",
    "Subtypes",
    "Trace",
    "UnknownName",
    "VenireError",
    "Verdict",
    "Waterfill",
    "WeightedMajority",
    "World",
    "as_table",
    "find_clones",
    "find_constant",
    "krippendorff_alpha",
    "simulate",
    "vote_entropy",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULE[name]}"), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
