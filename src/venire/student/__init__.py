"""A student: a model that learns from the verdicts, and joins the panel.

    student       `Student`: what it learns with, its held-out confidence, and its voices
    features      what it sees: hashed words and characters of text, or vectors
    models        scikit-learn models: the default one, and yours
    lessons       what it is taught: posteriors without its own votes
    keeping       what it learned as bytes
    seat          its place on the panel of a `Scheduler`
    batch         its place in a batch (`venire label`)

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
