"""The sync with Label Studio, round by round: what people do, and what becomes of it."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.integration.server.harness import Process, serving
from tests.studio.double import ANNOTATORS, OWNER
from tests.studio.people import KIND
from tests.studio.servers import Studio, running
from venire.client import AsyncClient
from venire.connectors.label_studio import LabelStudio, StudioDown, Sync, Tally
from venire.connectors.label_studio import annotations as read_annotations
from venire.connectors.label_studio.studio import FIELD
from venire.errors import InputError, UnknownName

ANN, BOB, CAT, DAN = ANNOTATORS
NAMES = (f"s{n}" for n in itertools.count())
SETTINGS: dict[str, Any] = {
    "classes": ["spam", "ok"],
    "panel": [{"id": who, "competence": 0.85} for who in (ANN, BOB)],
    "learning": "known",
    "policy": "fixed-overlap:2",
    "slot_seconds": 0.2,
    "lease_floor_seconds": 900.0,
    "lease_ceiling_seconds": 900.0,
}


@pytest.fixture(scope="module")
def both(tmp_path_factory: Any) -> Iterator[tuple[Studio, Process]]:
    folder: Path = tmp_path_factory.mktemp("both")
    storage = f"sqlite:///{folder}/venire.db"
    with running(folder) as studio, serving(storage, folder) as server:
        yield studio, server


@dataclass
class Bench:
    """A project and a stream, and syncs that were opened one after another."""

    studio: Studio
    server: Process
    project: int
    stream: str
    panel: AsyncClient
    said: list[str] = field(default_factory=list)

    @asynccontextmanager
    async def sync(self, **options: Any) -> AsyncIterator[Sync]:
        async with LabelStudio(self.studio.url, self.studio.tokens[OWNER], self.project) as opened:
            sync = Sync(
                opened,
                self.panel,
                self.stream,
                self.project,
                say=self.said.append,
                **{"sweep": 0.0, **options},
            )
            await sync.open()
            yield sync

    def tasks(self) -> list[dict[str, Any]]:
        return self.studio.tasks(self.project)

    def tab(self, who: str) -> list[int]:
        return [task["id"] for task in self.tasks() if f"|{who}|" in task["data"].get(FIELD, "")]

    def annotate(self, task: int, who: str, said: str = "ok", **more: Any) -> Any:
        body = {"result": KIND.result(said), **more}
        return self.studio.call("POST", f"/api/tasks/{task}/annotations", body, who)

    async def labels(self, task: int) -> dict[str, str]:
        view = await self.panel.item(self.stream, f"{self.project}-{task}")
        return {label["labeler"]: label["said"] for label in view["labels"]}

    async def until_left(self, sync: Sync, count: int = 1) -> None:
        end = time.monotonic() + 280
        while (await self.panel.stream(self.stream))["exits"] < count:
            assert time.monotonic() < end
            await asyncio.sleep(0.05)
        await sync.round()


Test = Callable[[Bench], Awaitable[None]]


def play(both: tuple[Studio, Process], test: Test, tasks: int = 1, **settings: Any) -> None:
    studio, server = both

    async def run() -> None:
        stream = next(NAMES)
        async with AsyncClient(server.url, server.key) as panel:
            await panel.create_stream(stream, **{**SETTINGS, **settings})
            project = studio.make_project(tasks)
            await test(Bench(studio, server, project, stream, panel))

    asyncio.run(run())


def test_a_task_goes_from_tab_to_tab_and_is_closed(both: Any) -> None:
    async def test(b: Bench) -> None:
        async with b.sync() as sync:
            first = await sync.round()
            assert (first.items, first.given) == (1, 2)
            [task] = b.tab(ANN)
            assert b.tab(BOB) == [task]
            assert not b.tasks()[0]["is_labeled"]
            why = {"from_name": "rationale", "type": "textarea", "value": {"text": ["It sells."]}}
            b.annotate(task, ANN, "spam", result=[*KIND.result("spam"), why])
            assert not b.tasks()[0]["is_labeled"]  # though the project wants one annotation
            second = await sync.round()
            assert (second.labels, b.tab(ANN), b.tab(BOB)) == (1, [], [task])
            b.annotate(task, BOB, "spam")
            await sync.round()
            await b.until_left(sync)
            [done] = b.tasks()
            assert (done["is_labeled"], done["overlap"], done["data"][FIELD]) == (True, 2, "")
            [prediction] = done["predictions"]
            assert KIND.said(prediction["result"]) == ["spam"]
            assert prediction["score"] > 0.9
            view = await b.panel.item(b.stream, f"{b.project}-{task}")
            whys = {label["labeler"]: label["rationale"] for label in view["labels"]}
            assert whys == {ANN: "It sells.", BOB: None}
            assert not await sync.round()
            assert b.said == []

    play(both, test)


def test_a_restart_takes_over_and_makes_nothing_twice(both: Any) -> None:
    async def test(b: Bench) -> None:
        async with b.sync() as sync:
            await sync.round()
        [task] = b.tab(ANN)
        b.annotate(task, ANN, "ok")
        async with b.sync() as again:
            done = await again.round()
            assert (done.items, done.labels, done.given) == (0, 1, 0)
            assert (b.tab(ANN), b.tab(BOB)) == ([], [task])  # who holds it, holds it still
        b.annotate(task, BOB, "ok")
        async with b.sync() as again:
            await again.round()
            await b.until_left(again)
        async with b.sync() as again:
            assert not await again.round()
        assert len(b.tasks()[0]["predictions"]) == 1
        tabs = b.studio.call("GET", "/api/dm/views", project=b.project)
        assert len(tabs) == 2
        assert await b.labels(task) == {ANN: "ok", BOB: "ok"}

    play(both, test)


def test_a_lease_that_expires_leaves_the_tab_and_a_late_annotation_counts(both: Any) -> None:
    async def test(b: Bench) -> None:
        async with b.sync() as sync:
            await sync.round()
            [task] = b.tab(ANN)
            while (await b.panel.insights(b.stream))["leased_items"]:
                await asyncio.sleep(0.05)
            longer = {"lease_floor_seconds": 900.0, "lease_ceiling_seconds": 900.0}
            await b.panel.change_stream(b.stream, **longer)
            assert (await sync.round()).ended >= 1
            b.annotate(task, ANN, "spam")
            assert (await sync.round()).labels == 1
            assert await b.labels(task) == {ANN: "spam"}

    play(both, test, lease_floor_seconds=1.0, lease_ceiling_seconds=1.0)


def test_a_skip_bars_and_the_task_goes_to_others(both: Any) -> None:
    async def test(b: Bench) -> None:
        async with b.sync() as sync:
            await sync.round()
            [task] = b.tab(ANN)
            b.annotate(task, ANN, was_cancelled=True)
            assert (await sync.round()).skips == 1
            assert not (await sync.round()).given
            assert (b.tab(ANN), b.tab(BOB)) == ([], [task])
            assert await b.labels(task) == {}

    play(both, test)


def test_who_annotates_twice_is_counted_once(both: Any) -> None:
    async def test(b: Bench) -> None:
        async with b.sync() as sync:
            await sync.round()
            [task] = b.tab(ANN)
            b.annotate(task, ANN, "spam")
            b.annotate(task, ANN, "spam")
            b.annotate(task, ANN, "ok")
            done = await sync.round()
            assert (done.labels, done.refused) == (1, 1)
            assert "already labelled" in done.refusals[0]
            assert "the first counts" in done.refusals[0]
            assert not (await sync.round()).refused
            assert await b.labels(task) == {ANN: "spam"}
            [closed] = b.tasks()
            assert closed["overlap"] == 3  # two people and one more, whatever they annotate

    play(both, test)


def test_who_annotates_unasked_is_refused_until_asked(both: Any) -> None:
    async def test(b: Bench) -> None:
        async with b.sync() as sync:
            await sync.round()
            [held] = b.tab(ANN)
            other = next(task["id"] for task in b.tasks() if task["id"] not in b.tab(ANN))
            b.annotate(other, ANN, "spam")
            done = await sync.round()
            assert (done.labels, done.refused) == (0, 1)
            assert f"of task {other} is not counted" in done.refusals[0]
            assert "unasked_labels" in done.refusals[0]
            assert ANN not in await b.labels(other)
            b.annotate(held, ANN, "ok")
            done = await sync.round()  # ann is free, and gets the other task: it is there already
            assert done.labels == 2
            assert (await b.labels(other))[ANN] == "spam"

    play(both, test, tasks=2)


def test_a_stream_may_take_what_nobody_asked_for(both: Any) -> None:
    async def test(b: Bench) -> None:
        for task in b.tasks():
            b.annotate(task["id"], ANN, "spam")
        async with b.sync() as sync:
            done = await sync.round()
            assert (done.labels, done.refused) == (3, 0)

    play(both, test, tasks=3, unasked_labels=True)


def test_annotations_without_one_class_and_of_others_are_refused(both: Any) -> None:
    async def test(b: Bench) -> None:
        async with b.sync() as sync:
            await sync.round()
            [task] = b.tab(ANN)
            b.annotate(task, ANN, result=[])
            b.annotate(task, DAN, "ok")
            done = await sync.round()
            assert (done.labels, done.refused) == (0, 2)
            assert any("it says nothing, expected one class of kind" in x for x in done.refusals)
            assert any(f"{DAN}, 5 takes no part" in line for line in done.refusals)
            assert b.tab(ANN) == []

    play(both, test)


def test_an_item_of_a_deleted_task_is_withdrawn(both: Any) -> None:
    async def test(b: Bench) -> None:
        async with b.sync() as sync:
            await sync.round()
            [task] = b.tab(ANN)
            b.studio.call("DELETE", f"/api/tasks/{task}")
            await b.panel.change_stream(b.stream, lease_floor_seconds=1.0)
            sync.desk.dirty.add(task)
            await sync.round()
            assert any(f"task {task} is deleted" in line for line in b.said)
            view = await b.panel.item(b.stream, f"{b.project}-{task}")
            assert view["status"] == "withdrawn"

    play(both, test)


def test_edits_of_a_task_are_kept_and_a_restart_takes_them(both: Any) -> None:
    async def test(b: Bench) -> None:
        async with b.sync() as sync:
            await sync.round()
        task = b.tasks()[0]
        data = {**task["data"], "text": "post 999", "note": "see above"}
        b.studio.call("PATCH", f"/api/tasks/{task['id']}", {"data": data})
        b.annotate(task["id"], ANN, "ok")
        async with b.sync() as again:
            done = await again.round()
            assert (done.labels, done.items) == (1, 0)
        assert b.tasks()[0]["data"]["note"] == "see above"
        assert b.tasks()[0]["data"]["text"] == "post 999"

    play(both, test, tasks=3)


def test_what_label_studio_opens_again_is_closed_again(both: Any) -> None:
    async def test(b: Bench) -> None:
        async with b.sync() as sync:
            await sync.round()
            [task] = b.tab(ANN)
            b.annotate(task, ANN)
            b.annotate(task, BOB)
            await sync.round()
            await b.until_left(sync)
            b.studio.call("PATCH", f"/api/projects/{b.project}", {"maximum_annotations": 5})
            assert not b.tasks()[0]["is_labeled"]
            await sync.round()
            await sync.round()
            assert b.tasks()[0]["is_labeled"]
            b.annotate(task, CAT)  # somebody who is late, and not asked
            await sync.round()
            assert b.tasks()[0]["is_labeled"]

    play(both, test)


def test_a_revised_verdict_replaces_the_prediction(both: Any) -> None:
    async def test(b: Bench) -> None:
        async with b.sync() as sync:
            await sync.round()
            [task] = b.tab(ANN)
            b.annotate(task, ANN, "ok")
            b.annotate(task, BOB, "ok")
            await sync.round()
            await b.until_left(sync)
            await b.panel.add_gold(b.stream, {f"{b.project}-{task}": "spam"})
            await sync.round()
            [prediction] = b.tasks()[0]["predictions"]
            assert KIND.said(prediction["result"]) == ["spam"]

    play(both, test)


def test_items_from_elsewhere_are_left_to_others(both: Any) -> None:
    async def test(b: Bench) -> None:
        await b.panel.add_items(b.stream, [{"id": "else", "payload": 1, "weight": 1000}])
        async with b.sync() as sync:
            await sync.round()
            await sync.round()
            assert len(b.tab(ANN)) == 1
            assert (await b.panel.item(b.stream, "else"))["held_by"] == []

    play(both, test)


def test_the_end_takes_everything_back(both: Any) -> None:
    async def test(b: Bench) -> None:
        async with b.sync() as sync:
            asyncio.get_running_loop().call_later(1.0, sync.stop)
            total = await sync.run(every=0.1)
            assert (total.items, total.given) == (3, 2)
        assert b.tab(ANN) == b.tab(BOB) == []
        assert (await b.panel.stream(b.stream))["leases"] == 0

    play(both, test, tasks=3)


def test_what_is_annotated_before_the_end_counts(both: Any) -> None:
    async def test(b: Bench) -> None:
        async with b.sync() as sync:
            await sync.round()
            [task] = b.tab(ANN)
            b.annotate(task, ANN, "spam")
            await sync.close()
            assert sync.total.labels == 1
            assert await b.labels(task) == {ANN: "spam"}
        assert b.tab(ANN) == b.tab(BOB) == []

    play(both, test)


def test_a_lease_that_ends_is_noticed_where_nothing_changed(
    both: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the date of the task nor a pass over all tasks would lead to it.

    On a machine so busy that the lease ends before anybody has looked, once more with a longer one.
    """
    monkeypatch.setattr(read_annotations, "MARGIN", timedelta(0))
    seen: list[str] = []

    async def test(b: Bench) -> None:
        async with b.sync(sweep=1e9) as sync:
            await sync.round()
            await b.panel.pause(b.stream)  # nobody gets it anew
            ended, tabs = (await sync.round()).ended, b.tab(ANN) + b.tab(BOB)
            if ended or len(tabs) < 2:
                return
            while ended < 2:
                await asyncio.sleep(0.2)
                ended += (await sync.round()).ended
            assert b.tab(ANN) == b.tab(BOB) == []
            seen.append("held, and ended")

    for lease in (2.0, 8.0, 32.0):
        if not seen:
            play(both, test, lease_floor_seconds=lease, lease_ceiling_seconds=lease)
    assert seen


def test_a_closed_stream_ends_the_sync(both: Any) -> None:
    async def test(b: Bench) -> None:
        async with b.sync() as sync:
            await sync.round()
            [task] = b.tab(ANN)
            for who in (ANN, BOB):
                b.annotate(task, who)
            await b.panel.close_stream(b.stream)
            await asyncio.wait_for(sync.run(every=0.1), 240)
            assert b.tasks()[0]["is_labeled"]

    play(both, test)


def test_nothing_to_do_ends_the_sync_if_wanted(both: Any) -> None:
    async def test(b: Bench) -> None:
        async with b.sync() as sync:
            await asyncio.wait_for(sync.run(every=0.1, until_idle=0.5), 240)

    play(both, test)


def test_new_tasks_and_new_people_are_found(both: Any) -> None:
    async def test(b: Bench) -> None:
        async with b.sync() as sync:
            await sync.round()
            rows = [{"text": "post 7"}]
            b.studio.call("POST", f"/api/projects/{b.project}/import", rows)
            assert (await sync.round()).items == 1
            panel = [{"id": who, "competence": 0.85} for who in (ANN, BOB, CAT)]
            await b.panel.change_stream(b.stream, panel=panel)
            sync._seen_users = 0.0
            done = await sync.round()
            assert done.given == 1
            assert len(b.tab(CAT)) == 1

    play(both, test)


def test_what_somebody_new_made_before_is_heard(both: Any) -> None:
    async def test(b: Bench) -> None:
        async with b.sync() as sync:
            await sync.round()
            [task] = b.tab(ANN)
            b.annotate(task, CAT, "spam")
            assert (await sync.round()).refused == 1
            assert not (await sync.round()).refused
            panel = [{"id": who, "competence": 0.85} for who in (ANN, BOB, CAT)]
            await b.panel.change_stream(b.stream, panel=panel, unasked_labels=True)
            sync._seen_users = 0.0
            assert (await sync.round()).labels == 1
            assert (await b.labels(task))[CAT] == "spam"

    play(both, test)


def test_tasks_that_are_too_large_are_sent_without_their_data(both: Any) -> None:
    async def test(b: Bench) -> None:
        rows = [{"text": "x" * 5_000_000} for _ in range(2)]
        rows += [{"text": "y" * 9_000_000}, {"text": "z"}]
        for row in rows:
            b.studio.call("POST", f"/api/projects/{b.project}/import", [row])
        async with b.sync() as sync:
            assert (await sync.round()).items == 4
        payloads = [
            (await b.panel.item(b.stream, f"{b.project}-{task['id']}"))["payload"]
            for task in b.tasks()
        ]
        assert payloads == [rows[0], rows[1], None, rows[3]]

    play(both, test, tasks=0)


def test_what_a_failed_round_did_is_told_by_the_next(both: Any) -> None:
    async def test(b: Bench) -> None:
        async with b.sync() as sync:
            await sync.round()
            [task] = b.tab(ANN)
            b.annotate(task, ANN, "spam")
            b.annotate(task, CAT, "spam")
            change = sync.studio.change_task

            async def failing(*args: Any, **more: Any) -> None:
                raise StudioDown("down")

            sync.studio.change_task = failing  # type: ignore[method-assign]
            with pytest.raises(StudioDown):
                await sync.round()
            sync.studio.change_task = change  # type: ignore[method-assign]
            done = await sync.round()
            assert (done.labels, done.refused) == (1, 1)
            assert CAT in done.refusals[0]

    play(both, test)


def test_a_round_that_failed_is_done_by_the_next(both: Any) -> None:
    """Label Studio fails at each request in turn: in the end everything is as without failures."""

    async def test(b: Bench) -> None:
        async with b.sync() as sync:
            send, left = sync.studio._once, iter(range(1, 200))
            state = {"until": next(left), "n": 0}

            async def failing(*args: Any, **more: Any) -> Any:
                state["n"] += 1
                if state["n"] == state["until"]:
                    raise StudioDown("down")
                return await send(*args, **more)

            sync.studio._once = failing  # type: ignore[method-assign]
            total = Tally()
            for _ in range(40):
                state["n"], state["until"] = 0, next(left)
                for task in b.tab(ANN)[:1]:
                    b.annotate(task, ANN, "spam")
                for task in b.tab(BOB)[:1]:
                    b.annotate(task, BOB, "spam")
                try:
                    total.add(await sync.round())
                except StudioDown:
                    continue
                if (await b.panel.stream(b.stream))["open_items"] == 0:
                    break
            sync.studio._once = send  # type: ignore[method-assign]
            await b.until_left(sync, 4)
            assert all(task["is_labeled"] for task in b.tasks())
            assert all(len(task["predictions"]) == 1 for task in b.tasks())
            for done in b.tasks():
                assert await b.labels(done["id"]) == {ANN: "spam", BOB: "spam"}

    play(both, test, tasks=4)


def test_what_does_not_fit_is_said(both: Any) -> None:
    async def test(b: Bench) -> None:
        with pytest.raises(InputError, match=r"has the classes \['a', 'b'\].*\['ok', 'spam'\]"):
            async with b.sync():
                pass
        with pytest.raises(UnknownName, match="unknown control 'knd': did you mean 'kind'"):
            async with b.sync(control="knd"):
                pass

    play(both, test, classes=["a", "b"])

    async def people(b: Bench) -> None:
        with pytest.raises(UnknownName, match=r"unknown user of Label Studio 'eve@example.org'"):
            async with b.sync(named=["eve@example.org"]):
                pass
        async with b.sync(named=[f"{ANN}=a"]) as sync:
            await sync.round()
            assert any("a gets no work" in line for line in b.said)

    play(both, people, open_panel=False)


def test_a_stream_is_made_of_the_project(both: Any) -> None:
    studio, server = both

    async def run() -> None:
        project = studio.make_project(1)
        async with (
            AsyncClient(server.url, server.key) as panel,
            LabelStudio(studio.url, studio.tokens[OWNER], project) as opened,
        ):
            sync = Sync(opened, panel, "made", project, named=[f"{ANN}=ann"])
            await sync.create_stream()
            await sync.create_stream()
            await sync.open()
            await sync.round()
            assert (await panel.stream("made"))["settings"]["classes"] == ["spam", "ok"]
            assert sync.desk.holders(studio.tasks(project)[0]["id"]) == ["ann"]

    asyncio.run(run())
