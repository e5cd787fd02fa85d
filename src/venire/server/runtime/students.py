"""The students of all streams: they learn and look at items in threads, and no request waits.

A student learns from what is in the store: the items that left last, with the labels of the others
and gold. What it learned is kept in the store, with its version and a digest; after a restart it
goes on from there. Its labels are ordinary ones, in the log like anybody's, so a log replays
without it.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import logging
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from venire.errors import InputError, NotFound, StoreDown, StreamDown
from venire.model import StreamStatus
from venire.server.actors import audit_row
from venire.server.admin_messages import Lesson
from venire.server.runtime.ticker import run_chunk
from venire.server.store import SetMeta, Storage
from venire.server.stream.change_batch import Batch
from venire.server.stream.labels import STUDENT, Known, Row, accept_labels
from venire.server.stream.live_stream import LiveStream

if TYPE_CHECKING:
    from venire.server.runtime.runtime import Runtime
    from venire.student import Student, Taught

#: Items to label in one step: a few milliseconds.
CHUNK: Final = 100

#: Models of more bytes are not kept: after a restart they are learned again.
LARGEST: Final = 16 * 2**20

_log = logging.getLogger("venire.service")


def kept_under(stream: str) -> str:
    """The name under which the store keeps what a stream's student has learned.

    >>> kept_under("posts")
    'student posts'
    """
    return f"student {stream}"


def lessons_under(stream: str) -> str:
    """The name under which the store keeps how a stream's student learned.

    >>> lessons_under("posts")
    'lessons posts'
    """
    return f"lessons {stream}"


class Students:
    """Lets the students of the streams of a runtime learn and label, each in its own time."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._busy: dict[str, asyncio.Task[None]] = {}

    def look(self, live: LiveStream) -> None:
        """See whether a stream's student has anything to do, and let it do it."""
        if live.status == StreamStatus.ARCHIVED:
            return
        if live.settings.student is None and live.pupil.student is not None:
            live.pupil.follow(live)  # it is dismissed
        if live.settings.student is None or live.name in self._busy:
            return
        pupil = live.pupil
        pupil.follow(live)
        due = _is_due(live)
        speaks = pupil.taught is not None and pupil.taught.ready and bool(pupil.unseen)
        if due or speaks or not pupil.loaded:
            task = self._runtime.spawn(self._work(live.name))
            self._busy[live.name] = task
            task.add_done_callback(lambda _: self._busy.pop(live.name, None))

    async def idle(self, stream: str) -> None:
        """Wait until the student of a stream has done what it does now."""
        while stream in self._busy:
            await asyncio.wait({self._busy[stream]})

    async def _work(self, name: str) -> None:
        try:
            live = await self._runtime.live_stream(name)
            live.pupil.follow(live)
            if not live.pupil.loaded:
                await self._load(name)
            while await self._label(name):
                pass
            if _is_due(live):
                await self._learn(name)
                while await self._label(name):
                    pass
        except (StoreDown, StreamDown, NotFound):
            pass  # at the next tick again
        except Exception:
            _log.exception("the student of stream %r failed; it goes on at the next tick", name)
            await asyncio.sleep(1.0)

    async def _load(self, name: str) -> None:
        """Go on with what was kept in the store."""
        runtime = self._runtime
        kept = await runtime.read(runtime.storage.meta, kept_under(name))
        told = await runtime.read(runtime.storage.meta, lessons_under(name))
        found = None
        try:
            found = await runtime.threads.compute(_read, kept) if kept else None
        except InputError as error:
            _log.warning("stream %r: what its student knew is lost: %s", name, error)
        live = await runtime.live_stream(name)
        live.pupil.loaded = True
        if live.pupil.student is None:
            return
        live.pupil.lessons.extend(_lessons(told, _about(live.pupil.student)))
        if found is None:
            return
        taught, used, about = found
        live.pupil.version = taught.version
        if about == _about(live.pupil.student):
            batch = Batch()
            live.pupil.know(live, taught, used, fresh=False)
            live.collect(batch, runtime.moment())
            await runtime.commit(live, batch)

    async def _learn(self, name: str) -> None:
        runtime = self._runtime
        live = await runtime.live_stream(name)
        pupil, student, left = live.pupil, live.pupil.student, live.statistics.left
        if student is None:
            return
        await runtime.flush()
        classes, version = tuple(live.settings.classes), pupil.version + 1
        pupil.used = left
        found = await runtime.threads.learn(
            _learn_from, runtime.storage, name, student, classes, version
        )
        if found is None:
            return
        kept, taught = await runtime.threads.compute(_written, found, left, _about(student))
        live = await runtime.live_stream(name)
        if live.pupil.student is not student:  # reloaded, or changed: what was learned is old
            return
        batch, moment = Batch(), runtime.moment()
        live.pupil.know(live, taught, left)
        live.pupil.lessons.append(_lesson(taught, moment.wall, left))
        live.collect(batch, moment)
        if kept is not None:
            batch.last.append(SetMeta(kept_under(name), kept))
        told = {"of": _about(student), "lessons": [asdict(x) for x in live.pupil.lessons]}
        batch.last.append(SetMeta(lessons_under(name), json.dumps(told)))
        batch.audit.append(
            audit_row("venire", moment.wall, "student.learn", name, **taught.record())
        )
        await runtime.commit(live, batch)

    async def _label(self, name: str) -> bool:
        """Label some of the items that it has not looked at; whether there are more."""
        runtime = self._runtime
        live = await runtime.live_stream(name)
        pupil, student, taught = live.pupil, live.pupil.student, live.pupil.taught
        if student is None or taught is None or not taught.ready or not pupil.unseen:
            return False
        some = [pupil.unseen.popleft() for _ in range(min(CHUNK, len(pupil.unseen)))]
        shown = [(item, live.open[item].payload) for item in some if item in live.open]
        if not shown:
            return True
        rows = await runtime.threads.compute(
            _answers, runtime.storage, name, student, taught, live.settings.classes, shown
        )
        live = await runtime.live_stream(name)
        if live.pupil.taught is not taught:
            return True
        rows = [row for row in rows if _open_to(live, row, student)]
        if rows:
            batch, moment = Batch(), runtime.moment()
            step = partial(accept_labels, live, rows, Known(), batch, moment, source=STUDENT)
            commits: list[asyncio.Future[None]] = []
            await run_chunk(runtime, live, batch, slice(0, len(rows)), step, commits)
            await asyncio.gather(*commits)
        return bool(live.pupil.unseen)


def _is_due(live: LiveStream) -> bool:
    from venire.student.seat import is_due

    return is_due(live.statistics.left, live.pupil.used)


def _open_to(live: LiveStream, row: Row, student: Student) -> bool:
    entry = live.open.get(row[0])
    return (
        entry is not None
        and entry.may(row[1])
        and frozenset(student.voices).isdisjoint(entry.labels)
    )


def _about(student: Student) -> list[Any]:
    """What must be the same for what was learned to be of use."""
    return [student.id, student.field, student.bins]


def _lesson(taught: Taught, at: float, exits: int) -> Lesson:
    return Lesson(
        version=taught.version,
        at=at,
        exits=exits,
        verdicts=taught.items,
        agreement=taught.agreement,
        commonest=taught.commonest,
        ready=taught.ready,
    )


def _lessons(told: str | None, about: list[Any]) -> list[Lesson]:
    """The lessons that were kept, if they are of this student."""
    kept: dict[str, Any] = json.loads(told) if told else {}
    return [Lesson(**row) for row in kept["lessons"]] if kept.get("of") == about else []


def _learn_from(
    storage: Storage, stream: str, student: Student, classes: tuple[str, ...], version: int
) -> Taught | None:
    from venire.student.seat import teach
    from venire.student.student import MOST

    items = [row.item for row in reversed(storage.recent_exits(stream, MOST))]
    voices = frozenset(student.voices)
    said: dict[str, dict[str, str]] = {item: {} for item in items}
    for label in sorted(storage.labels_among(stream, items)):
        if label.labeler not in voices:
            said[label.item][label.labeler] = label.said
    payloads = storage.payloads(stream, [item for item in items if said[item]])
    contents = {item: json.loads(payload) for item, payload in payloads.items()}
    try:
        return teach(student, said, contents, classes, storage.gold_of(stream, items), version)
    except InputError as error:
        _log.warning("stream %r: its student cannot learn: %s", stream, error)
        return None


def _answers(
    storage: Storage,
    stream: str,
    student: Student,
    taught: Taught,
    classes: Sequence[str],
    shown: Sequence[tuple[str, str | None]],
) -> list[Row]:
    """What the student says of items: item, voice, class."""
    large = storage.payloads(stream, [item for item, payload in shown if payload is None])
    contents = [json.loads(payload or large.get(item, "null")) for item, payload in shown]
    seen = student.look(contents, taught)
    bins, said = taught.answers(taught.model.shares(seen.rows))
    answers = zip(shown, seen.usable.tolist(), bins.tolist(), said.tolist(), strict=True)
    return [Row(x[0], student.voices[b], classes[k]) for x, usable, b, k in answers if usable]


def _written(taught: Taught, used: int, about: list[Any]) -> tuple[str | None, Taught]:
    """What is kept in the store, None if that is too much; and what was learned, as it is kept."""
    from venire.student.student import pack, unpack

    body = pack(taught)
    if len(body) > LARGEST:
        return None, taught
    digest = hashlib.sha256(body).hexdigest()
    text = base64.b64encode(body).decode()
    return json.dumps({"sha256": digest, "used": used, "of": about, "body": text}), unpack(body)


def _read(kept: str) -> tuple[Taught, int, list[Any]]:
    from venire.student.student import unpack

    try:
        said = json.loads(kept)
        body = base64.b64decode(said["body"])
        if hashlib.sha256(body).hexdigest() != said["sha256"]:
            raise InputError("the digest differs")
        return unpack(body), int(said["used"]), list(said["of"])
    except (KeyError, ValueError, TypeError) as error:
        raise InputError(f"what is kept cannot be read: {error}") from None
