"""The engine: one state machine, four verbs, no clock and no I/O."""

from venire.engine.registry import NOBODY
from venire.engine.scheduler import Scheduler
from venire.engine.untracked import untracked
from venire.engine.version import engine_version

__all__ = ["NOBODY", "Scheduler", "engine_version", "untracked"]
