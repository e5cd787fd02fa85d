"""The engine: one state machine, four verbs, no clock and no I/O."""

from venire.engine.queue import untracked
from venire.engine.replay import engine_version
from venire.engine.scheduler import Scheduler

__all__ = ["Scheduler", "engine_version", "untracked"]
