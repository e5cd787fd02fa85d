"""The student of a stream in memory: what it learned, and which items it has not looked at."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from venire.model import Labeler
from venire.server.admin_messages import Lesson
from venire.server.settings import StreamSettings
from venire.student import Student, Taught

if TYPE_CHECKING:
    from venire.server.stream.live_stream import LiveStream

#: How many of the latest lessons are kept.
LESSONS: Final = 200


class StreamPupil:
    """What a stream keeps of its student; `loaded` once the store was asked what it knew.

    `used` is how many items had left when it learned last, `version` the number of the last
    version, whatever came of it; `lessons` are the latest versions.
    """

    def __init__(self) -> None:
        self.student: Student | None = None
        self.taught: Taught | None = None
        self.loaded = False
        self.version = self.used = 0
        self.unseen: deque[str] = deque()
        self.lessons: deque[Lesson] = deque(maxlen=LESSONS)
        self._voices: tuple[StreamSettings | None, frozenset[str]] = None, frozenset()

    def voices(self, settings: StreamSettings) -> frozenset[str]:
        """The labelers that are the student's by these settings."""
        if self._voices[0] is not settings:
            self._voices = settings, settings.voices
        return self._voices[1]

    def follow(self, live: LiveStream) -> None:
        """Be the student of the settings of now; a new one knows nothing."""
        wanted = None if live.settings.student is None else live.settings.student.student
        if wanted is not None and _same(wanted, self.student):
            return
        if self.student is not None:
            self.taught, self.used = None, 0
            self.lessons.clear()
        self.student = wanted
        self.unseen = deque(() if wanted is None else live.open)

    def know(self, live: LiveStream, taught: Taught, used: int, fresh: bool = True) -> None:
        """Know this from now on, `fresh` from a lesson; when it first speaks it joins the panel.

        It is away there, so that nobody waits for it: it hands in labels without being asked.
        """
        assert self.student is not None
        self.taught, self.version, self.used = taught, taught.version, used
        known = {who.id for who in live.engine.panel}
        if not taught.ready:
            return
        for voice, skill in zip(self.student.voices, taught.skills.tolist(), strict=True):
            if voice not in known or (fresh and live.engine.learning is None):
                live.engine.join(Labeler(voice, skill))
                live.engine.leave(voice)
            live.labelers.record(voice).kind = "student"
        self.unseen = deque(_silent(live, self.student))

    def record(self, live: LiveStream) -> dict[str, Any] | None:
        """What the view of the stream says of it."""
        if live.settings.student is None:
            return None
        learned: dict[str, Any] = {"version": 0, "verdicts": 0, "agreement": None}
        if self.taught is not None:
            learned = self.taught.record()
        voices = live.settings.student.voices
        labels = sum(live.labelers[v].labels for v in voices if v in live.labelers)
        said = {"ready": False, "id": live.settings.student.id, "labels": labels}
        return {**said, **learned}


def _silent(live: LiveStream, student: Student) -> Iterable[str]:
    """The open items of which it has said nothing."""
    voices = frozenset(student.voices)
    return (name for name, entry in live.open.items() if voices.isdisjoint(entry.labels))


def _same(one: Student, other: Student | None) -> bool:
    return other is not None and vars(one) == vars(other)
