"""The engine: one state machine, four verbs, no clock and no I/O."""

from venire.engine.scheduler import Scheduler
from venire.engine.untracked import untracked
from venire.engine.version import engine_version

__all__ = ["Scheduler", "engine_version", "untracked"]
