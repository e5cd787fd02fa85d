"""The demo's job: a stream of handwritten digits and a panel of weak classifiers.

panel.py        the images, the labelers and what they say
shift.py        the main job, done by the engine slot by slot
view.py         the job as it goes, on a terminal or in plain lines
served.py       the stream as a server gets it
crowd.py        the labelers as clients of a server
comparison.py   the same streams under other rules
equal.py        the simplest rivals at equal labels and equal money
outcome.py      what came of a stream, and what is counted of it
report.py       the table, on the screen and in files
picture.py      the picture
"""

from __future__ import annotations

from venire_research.digits.comparison import METHODS, Method, Trial, compare
from venire_research.digits.outcome import Outcome, Score
from venire_research.digits.panel import SLOTS, DigitJob, load_job
from venire_research.digits.shift import LEARNING_SLOTS, Progress, hire, work

__all__ = [
    "LEARNING_SLOTS",
    "METHODS",
    "SLOTS",
    "DigitJob",
    "Method",
    "Outcome",
    "Progress",
    "Score",
    "Trial",
    "compare",
    "hire",
    "load_job",
    "work",
]
