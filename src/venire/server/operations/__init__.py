"""What a client may do, without HTTP: a class for each noun, and `Service` is all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from venire.errors import TooMuch

if TYPE_CHECKING:
    from venire.server.reports.skill_report import ReviewQuestions, Skills
    from venire.server.reports.trends import Trends
    from venire.server.runtime.runtime import Runtime


class Operations:
    """What the operations of all nouns share; the reports are those of the service."""

    skills: Skills
    _trends: Trends
    _questions: ReviewQuestions

    def __init__(self, runtime: Runtime) -> None:
        self.runtime, self.settings = runtime, runtime.settings

    def _forget(self, stream: str) -> None:
        """Drop what is remembered of a deleted stream."""
        self.skills.forget(stream)
        self._trends.forget(stream)

    def _check_batch(self, count: int, noun: str) -> None:
        most = self.settings.max_batch
        if count > most:
            raise TooMuch(f"got {count:,} {noun} in one request, expected at most {most:,}")
