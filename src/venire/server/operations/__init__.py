"""What a client may do, without HTTP: a class for each noun, and `Service` is all of them."""

from __future__ import annotations

from venire.server.reports.skill_report import ReviewQuestions, Skills
from venire.server.reports.trends import Trends
from venire.server.runtime.runtime import Runtime


class Operations:
    """What the operations of all nouns share."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime, self.settings = runtime, runtime.settings
        self.skills, self._trends = Skills(runtime), Trends(runtime)
        self._questions = ReviewQuestions(runtime)
