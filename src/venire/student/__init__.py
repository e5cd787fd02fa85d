"""A student: a model that learns from the verdicts, and joins the panel.

    student       `Student`: what it is taught, its held-out confidence, its voices; as bytes
    models        what it sees (text or vectors) and learns with: the default model, or yours
    seat          its place on the panel of a `Scheduler`, and in a batch (`venire label`)

Names are loaded when they are first used.
"""

from typing import TYPE_CHECKING

from venire.tools.lazy import attach

if TYPE_CHECKING:
    from venire.student.seat import Seat as Seat
    from venire.student.student import Student as Student
    from venire.student.student import Taught as Taught
else:
    __getattr__, __dir__ = attach(__name__)
