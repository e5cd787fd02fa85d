"""The engine: one state machine, four verbs, no clock and no I/O."""

from venire.engine.scheduler import Scheduler

__all__ = ["Scheduler"]
