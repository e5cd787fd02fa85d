"""The student of a stream: it learns and labels on its own, is kept, and replays as a labeler."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from tests.unit.server.support import Bench, bench, running, settings_of, until
from venire.errors import InputError
from venire.server import ItemIn, StreamSettings
from venire.server.runtime import students
from venire.server.runtime.students import kept_under, lessons_under
from venire.server.store import SetMeta, open_storage
from venire.server.store.maintenance.verify import verify
from venire.server.stream.live_stream import LiveStream

PANEL = tuple({"id": name, "price": 0.001} for name in ("ann", "bob", "cec"))
TAUGHT: dict[str, Any] = {
    "panel": PANEL,
    "learning": "while-serving",
    "slot_seconds": 500.0,
    "policy": "realised",
    "student": {"field": "text"},
}
WORDS = {"spam": ("buy now", "cheap pills", "free money"), "ok": ("dear ann", "many thanks")}
LABELERS = ("ann", "bob", "cec")


def truth_of(n: int) -> str:
    return "spam" if n % 2 else "ok"


async def send(b: Bench, first: int, last: int, informative: bool = True) -> None:
    """Items come; two of the three say what they are, mostly right."""
    rng = np.random.default_rng(first)
    items, labels = [], []
    for n in range(first, last):
        kind = truth_of(n) if informative else str(rng.choice(["spam", "ok"]))
        text = f"{rng.choice(WORDS[kind])} {rng.integers(10**6)}"
        items.append(ItemIn(f"p{n:04d}", {"text": text}))
        for m in rng.permutation(3)[:2]:
            right = rng.random() < 0.85
            said = truth_of(n) if right else truth_of(n + 1)
            labels.append((f"p{n:04d}", LABELERS[m], said))
    await b.service.add_items("posts", items)
    await b.service.runtime.students.idle("posts")
    await b.service.add_labels("posts", labels)
    await b.pass_time(10_000)
    await b.service.runtime.students.idle("posts")


async def view(b: Bench) -> dict[str, Any]:
    shown = (await b.service.stream("posts")).student
    assert shown is not None
    return shown


@running
async def test_it_learns_from_the_verdicts_and_labels_every_item() -> None:
    async with bench(**TAUGHT) as b:
        assert (await view(b))["version"] == 0
        await send(b, 0, 120)
        learned = await view(b)
        assert (learned["version"], learned["ready"]) == (1, True)
        assert learned["verdicts"] == b.live.statistics.left >= 100
        assert learned["labels"] == len(b.live.open)
        assert learned["agreement"] > 0.7
        await b.add("new")  # its text is "new": it says something, if not much
        await b.service.add_items("posts", [ItemIn("sure", {"text": "free money 1"})])
        await b.service.runtime.students.idle("posts")
        said = {x.labeler: x.said for x in (await b.service.item("posts", "sure")).labels}
        assert list(said.values()) == ["spam"]
        assert next(iter(said)).startswith("student (")
        rows = b.storage.labels_of("posts", "sure")
        assert [row.source for row in rows] == ["student"]
        assert (await view(b))["labels"] == learned["labels"] + 2
        await send(b, 200, 260)
        assert (await view(b))["version"] == 2
        assert verify(b.storage, "posts").differences == ()
        history = [row for row in b.storage.audit() if row.action == "student.learn"]
        assert [json.loads(row.details)["version"] for row in history] == [1, 2]


@running
async def test_its_latest_lessons_are_kept_and_forgotten_with_it() -> None:
    async with bench(**TAUGHT) as b:
        assert (await b.service.lessons("posts")).lessons == ()
        for n in range(0, 500, 100):
            await send(b, n, n + 80)
        view = await b.service.lessons("posts")
        assert view.student == "student"
        assert [one.version for one in view.lessons] == [1, 2, 3, 4]
        assert [one.exits for one in view.lessons] == sorted(one.exits for one in view.lessons)
        assert view.lessons[-1].ready
        assert view.lessons[-1].agreement > view.lessons[-1].commonest
        audited = [json.loads(r.details) for r in b.storage.audit() if r.action == "student.learn"]
        assert [one["agreement"] for one in audited] == [one.agreement for one in view.lessons]
        await b.service.change_stream("posts", {"student": {"bins": 3}}, "me")
        while 1 in {one.version for one in (await b.service.lessons("posts")).lessons}:
            await b.pass_time(1)
            await asyncio.sleep(0.002)  # they are forgotten beside the loop
        await b.service.change_stream("posts", {"student": None}, "me")
        assert (await b.service.lessons("posts")).student is None
        await b.service.close("posts", "me")
        await b.service.delete_stream("posts", "me")
        assert not b.storage.meta(lessons_under("posts"))


@running
async def test_one_that_cannot_learn_says_nothing() -> None:
    async with bench(**TAUGHT) as b:
        await send(b, 0, 150, informative=False)
        shown = await view(b)
        assert (shown["version"], shown["ready"], shown["labels"]) == (1, False, 0)
        await send(b, 200, 210, informative=False)
        assert (await view(b))["labels"] == 0
        assert {who.id for who in b.live.engine.panel} == set(LABELERS)


@running
async def test_it_is_away_and_nobody_can_speak_for_it() -> None:
    async with bench(**{**TAUGHT, "open_panel": True}) as b:
        await send(b, 0, 120)
        voices = b.live.settings.voices
        assert not voices & set(b.live.engine.seated)
        await b.add("new")
        with pytest.raises(InputError, match="is the student of this stream"):
            await b.service.next("posts", "student (1 of 5)")
        (outcome,) = await b.service.add_labels("posts", [("new", "student (5 of 5)", "ok")])
        assert outcome.code == "not_allowed"


@asynccontextmanager
async def of(path: Path) -> AsyncIterator[Bench]:
    with open_storage(f"sqlite:///{path}") as storage:
        async with bench(storage, **TAUGHT) as b:  # type: ignore[arg-type] # any store will do
            yield b


@running
async def test_after_a_restart_it_knows_what_it_knew(tmp_path: Path) -> None:
    async with of(tmp_path / "a.db") as b:
        await send(b, 0, 120)
        before, taught = await view(b), b.live.pupil.taught
        lessons = await b.service.lessons("posts")
        assert [one.version for one in lessons.lessons] == [1]
        fingerprint = b.live.engine.fingerprint()
    async with of(tmp_path / "a.db") as b:
        assert b.live.engine.fingerprint() == fingerprint
        await b.pass_time(1)
        await b.service.runtime.students.idle("posts")
        assert await view(b) == before
        assert await b.service.lessons("posts") == lessons
        again = b.live.pupil.taught
        assert taught is not None
        assert again is not None
        assert again.model.weights.tolist() == taught.model.weights.tolist()  # type: ignore[attr-defined] # it is linear
        await b.service.add_items("posts", [ItemIn("sure", {"text": "free money 1"})])
        await b.service.runtime.students.idle("posts")
        assert len(b.storage.labels_of("posts", "sure")) == 1
        assert b.live.pupil.version == 1
        assert verify(b.storage, "posts").differences == ()


@running
async def test_what_is_damaged_is_learned_again(tmp_path: Path) -> None:
    async with of(tmp_path / "a.db") as b:
        await send(b, 0, 120)
        kept = json.loads(b.storage.meta(kept_under("posts")) or "")
        kept["body"] = "AAAA" + kept["body"][4:]
        await b.service.runtime.write([SetMeta(kept_under("posts"), json.dumps(kept))])
    async with of(tmp_path / "a.db") as b:
        await b.pass_time(1)
        await b.service.runtime.students.idle("posts")
        await b.pass_time(1)
        await b.service.runtime.students.idle("posts")
        assert (await view(b))["ready"]


@running
async def test_it_can_be_dismissed_and_another_hired() -> None:
    async with bench(**TAUGHT) as b:
        await send(b, 0, 120)
        await b.service.change_stream("posts", {"student": None}, "me")
        assert (await b.service.stream("posts")).student is None
        await b.add("quiet")
        await b.service.runtime.students.idle("posts")
        assert b.storage.labels_of("posts", "quiet") == []
        await b.service.change_stream("posts", {"student": {"field": "text", "bins": 2}}, "me")
        await b.pass_time(1)
        await b.service.runtime.students.idle("posts")
        await until(lambda: not b.live.pupil.unseen)
        assert b.live.settings.voices == {"student (1 of 2)", "student (2 of 2)"}


@running
async def test_many_that_learn_at_once_keep_nobody_from_loading(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    free = threading.Event()
    monkeypatch.setattr(students, "_learn_from", lambda *_: free.wait(280) and None)
    async with bench(**TAUGHT) as b:
        runtime = b.service.runtime
        try:
            async with asyncio.timeout(200):
                for name in ("one", "two", "three", "four", "five"):
                    await b.service.create_stream(name, settings_of(**TAUGHT), "me")
                    live = await runtime.live_stream(name)
                    live.pupil.follow(live)
                    runtime.spawn(runtime.students._learn(name))
                    await asyncio.sleep(0.1)
                assert await runtime.threads.compute(int) == 0
        finally:
            free.set()


@running
async def test_a_stream_that_fails_while_it_labels_is_loaded_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def half(live: LiveStream, *_: Any, **__: Any) -> None:
        live.statistics.labels += 1000
        raise ArithmeticError("half-way")

    async with bench(**TAUGHT) as b:
        await send(b, 0, 120)
        before = b.live.statistics.labels
        monkeypatch.setattr(students, "accept_labels", half)
        await b.service.add_items("posts", [ItemIn("sure", {"text": "free money 1"})])
        await b.service.runtime.students.idle("posts")
        monkeypatch.undo()
        assert (await b.service.stream("posts")).labels == before


@running
async def test_one_that_is_hired_again_looks_at_what_came_meanwhile() -> None:
    async with bench(**TAUGHT) as b:
        await send(b, 0, 120)
        await b.service.change_stream("posts", {"student": None}, "me")
        await until(lambda: b.live.pupil.student is None)
        await b.service.add_items("posts", [ItemIn("sure", {"text": "free money 1"})])
        await b.service.change_stream("posts", {"student": {"field": "text"}}, "me")
        for _ in range(3):
            await b.pass_time(1)
            await b.service.runtime.students.idle("posts")
        assert len(b.storage.labels_of("posts", "sure")) == 1


@running
async def test_a_deleted_stream_leaves_no_student() -> None:
    async with bench(**TAUGHT) as b:
        await send(b, 0, 120)
        assert b.storage.meta(kept_under("posts"))
        await b.service.close("posts", "me")
        await b.service.delete_stream("posts", "me")
        assert b.storage.meta(kept_under("posts")) == ""


@running
async def test_one_that_was_dismissed_before_a_restart_goes_with_its_stream() -> None:
    async with bench(**TAUGHT) as b:
        await send(b, 0, 120)
        await b.service.change_stream("posts", {"student": None}, "me")
    async with bench(b.storage, b.clock, **TAUGHT) as b:
        assert b.storage.meta(kept_under("posts"))
        await b.service.close("posts", "me")
        await b.service.delete_stream("posts", "me")
        assert b.storage.meta(kept_under("posts")) == ""


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"student": {"bins": 0}}, "greater than or equal to 1"),
        ({"student": {"model": "big"}}, "Extra inputs"),
        ({"student": {}, "label_budget": 100}, "the budget in money"),
        ({"student": {}, "budget": {"labels": 100}}, "the budget in money"),
        ({"student": {"id": "ann", "bins": 1}}, "give it another id"),
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        settings_of(panel=PANEL, learning="while-serving", **wrong)


def test_settings_of_older_stores_have_no_student() -> None:
    assert StreamSettings(classes=("a", "b")).student is None
