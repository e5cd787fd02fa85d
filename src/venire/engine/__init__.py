"""The engine: one state machine, four verbs, no clock and no I/O.

Names are loaded when they are first used.
"""

from typing import TYPE_CHECKING

from venire.tools.lazy import attach

if TYPE_CHECKING:
    from venire.engine.queue import untracked as untracked
    from venire.engine.replay import engine_version as engine_version
    from venire.engine.scheduler import Scheduler as Scheduler
else:
    __getattr__, __dir__ = attach(__name__)
