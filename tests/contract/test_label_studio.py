"""What the sync relies on in Label Studio: the same checks of the double and of the real one.

The real one is installed into an environment of its own (seven minutes, a gigabyte), so it is left
to scripts/nightly.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.marks import nightly
from tests.studio.double import ANNOTATORS, OWNER
from tests.studio.servers import CONFIG, Studio, running
from venire.connectors.label_studio import LabelStudio, StudioDown, StudioError, read_export
from venire.connectors.label_studio.annotations import Person, make_tabs
from venire.connectors.label_studio.studio import FIELD, User, holding
from venire.files.label_config import Control, find_control

ANN, BOB = ANNOTATORS[:2]
KIND = find_control(CONFIG)


@pytest.fixture(scope="module", params=["double", nightly("real")])
def studio(request: pytest.FixtureRequest, tmp_path_factory: Any) -> Iterator[Studio]:
    folder: Path = tmp_path_factory.mktemp(request.param)
    with running(folder, real=request.param == "real") as found:
        yield found


def annotate(studio: Studio, task: int, said: str, who: str = ANN, **more: Any) -> Any:
    body = {"result": KIND.result(said), "lead_time": 1.5, **more}
    return studio.call("POST", f"/api/tasks/{task}/annotations", body, who)


def ask(studio: Studio, project: int, who: str) -> Any:
    """The next task of somebody's tab, as the button of Label Studio asks for it."""
    filters = {"conjunction": "and", "items": [holding(who)]}
    body = {"project": project, "filters": filters, "ordering": ["tasks:id"]}
    return studio.send(
        "POST", "/api/dm/actions", body, who, id="next_task", project=project, tabID=1
    )


def api(studio: Studio, project: int, token: str | None = None) -> LabelStudio:
    return LabelStudio(studio.url, token or studio.tokens[OWNER], project)


def do(studio: Studio, project: int, work: Any, token: str | None = None) -> Any:
    async def run() -> Any:
        async with api(studio, project, token) as opened:
            return await work(opened)

    return asyncio.run(run())


def test_a_project_has_its_config(studio: Studio) -> None:
    project = studio.make_project()
    found = do(studio, project, lambda s: s.project())
    assert find_control(found["label_config"]) == Control("kind", "post", "choices", ("spam", "ok"))


def test_what_is_wrong_is_said(studio: Studio) -> None:
    project = studio.make_project()
    with pytest.raises(StudioError, match=r"got 401.*Account & Settings") as bad:
        do(studio, project, lambda s: s.project(), "0" * 40)
    assert "0" * 40 not in str(bad.value)
    with pytest.raises(StudioError, match=r"got 404.*check --url and --project") as lost:
        do(studio, project + 999, lambda s: s.project())
    assert lost.value.status == 404
    with pytest.raises(StudioDown, match="cannot be reached"):
        asyncio.run(LabelStudio("http://127.0.0.1:9", "x", 1).project())


def test_a_personal_access_token_is_exchanged(studio: Studio) -> None:
    project = studio.make_project()
    token = f"x.{studio.tokens[OWNER]}.y"
    if studio.real:
        settings = {"api_tokens_enabled": True, "legacy_api_tokens_enabled": True}
        studio.call("POST", "/api/jwt/settings", settings)
        token = studio.call("POST", "/api/token")["token"]
    assert do(studio, project, lambda s: s.project(), token)["id"] == project
    with pytest.raises(StudioError, match=r"token/refresh: got 401"):
        do(studio, project, lambda s: s.project(), "a.b.c")


def test_the_users_have_numbers_and_addresses(studio: Studio) -> None:
    users = do(studio, 1, lambda s: s.users())
    assert {user.email for user in users} == {OWNER, *ANNOTATORS}
    assert all(isinstance(user, User) and user.id > 0 for user in users)


def test_tasks_are_found_by_number_field_and_date(studio: Studio) -> None:
    project = studio.make_project(tasks=5)
    other = studio.make_project(tasks=1)
    start = datetime.now(UTC)
    ids = [task["id"] for task in studio.tasks(project)]
    assert [task["id"] for task in do(studio, project, lambda s: s.after(0))] == ids
    assert [task["id"] for task in do(studio, project, lambda s: s.after(ids[2]))] == ids[3:]
    assert do(studio, project, lambda s: s.after(ids[-1])) == []
    wanted = [ids[3], ids[0], ids[-1] + 999]
    assert [task["id"] for task in do(studio, project, lambda s: s.tasks(wanted))] == [
        ids[0],
        ids[3],
    ]
    assert do(studio, project, lambda s: s.handed_out()) == []
    data = {"text": "post 1", FIELD: f"|{ANN}||{BOB}|"}
    do(studio, project, lambda s: s.change_task(ids[1], data=data))
    annotate(studio, ids[4], "ok", BOB)
    assert [task["id"] for task in do(studio, project, lambda s: s.handed_out())] == [ids[1]]
    moved = [task["id"] for task in do(studio, project, lambda s: s.changed(start))]
    assert moved == [ids[1], ids[4]]
    assert len(do(studio, other, lambda s: s.after(0))) == 1


def test_more_tasks_than_a_page_are_all_found(studio: Studio) -> None:
    long_ago, project = datetime(2020, 1, 1, tzinfo=UTC), studio.make_project(tasks=230)
    found = do(studio, project, lambda s: s.changed(long_ago))
    assert len({task["id"] for task in found}) == 230


def test_a_task_shows_what_was_made_of_it(studio: Studio) -> None:
    project = studio.make_project(tasks=1)
    [task] = studio.tasks(project)
    annotate(studio, task["id"], "spam", ANN)
    annotate(studio, task["id"], "ok", BOB, was_cancelled=True)
    do(studio, project, lambda s: s.predict(task["id"], KIND.result("spam"), 0.9, "venire"))
    [found] = do(studio, project, lambda s: s.after(0))
    first, second = found["annotations"]
    assert KIND.said(first["result"]) == ["spam"]
    assert (first["was_cancelled"], second["was_cancelled"]) == (False, True)
    users = {user.email: user.id for user in do(studio, project, lambda s: s.users())}
    assert [first["completed_by"], second["completed_by"]] == [users[ANN], users[BOB]]
    assert ANN in first["created_username"]
    assert first["id"] < second["id"]
    assert first["updated_at"].endswith("Z")
    [prediction] = found["predictions"]
    assert (prediction["model_version"], prediction["score"]) == ("venire", 0.9)
    do(studio, project, lambda s: s.remove_prediction(prediction["id"]))
    assert do(studio, project, lambda s: s.after(0))[0]["predictions"] == []


def test_a_changed_annotation_has_a_new_date(studio: Studio) -> None:
    project = studio.make_project(tasks=1)
    [task] = studio.tasks(project)
    made = annotate(studio, task["id"], "spam", ANN)
    before = do(studio, project, lambda s: s.after(0))[0]
    body = {"result": KIND.result("ok")}
    studio.call("PATCH", f"/api/annotations/{made['id']}", body, ANN)
    [after] = do(studio, project, lambda s: s.after(0))
    assert after["updated_at"] > before["updated_at"]
    assert after["annotations"][0]["updated_at"] > before["annotations"][0]["updated_at"]
    assert KIND.said(after["annotations"][0]["result"]) == ["ok"]


def test_people_are_counted_and_not_annotations(studio: Studio) -> None:
    project = studio.make_project(tasks=1)
    id = studio.tasks(project)[0]["id"]
    studio.call("PATCH", f"/api/tasks/{id}", {"overlap": 2, "is_labeled": False})
    annotate(studio, id, "spam", ANN)
    annotate(studio, id, "ok", ANN)  # nobody keeps people from that
    assert not studio.tasks(project)[0]["is_labeled"]
    annotate(studio, id, "ok", BOB)
    assert studio.tasks(project)[0]["is_labeled"]


def test_a_task_that_is_closed_by_hand_is_looked_at_again(studio: Studio) -> None:
    project = studio.make_project(tasks=1)
    id = studio.tasks(project)[0]["id"]
    studio.call("PATCH", f"/api/tasks/{id}", {"overlap": 3, "is_labeled": True})
    assert studio.tasks(project)[0]["is_labeled"]
    annotate(studio, id, "ok", ANN)
    assert not studio.tasks(project)[0]["is_labeled"]
    studio.call("PATCH", f"/api/tasks/{id}", {"overlap": 1, "is_labeled": True})
    annotate(studio, id, "ok", BOB)
    task = studio.tasks(project)[0]
    assert (task["is_labeled"], task["overlap"]) == (True, 1)


def test_another_maximum_of_annotations_opens_tasks_again(studio: Studio) -> None:
    project = studio.make_project(tasks=1)
    id = studio.tasks(project)[0]["id"]
    annotate(studio, id, "ok", ANN)
    assert studio.tasks(project)[0]["is_labeled"]
    studio.call("PATCH", f"/api/projects/{project}", {"maximum_annotations": 3})
    task = studio.tasks(project)[0]
    assert (task["is_labeled"], task["overlap"]) == (False, 3)


def test_a_tab_hands_out_what_is_in_it(studio: Studio) -> None:
    project = studio.make_project(tasks=3)
    ids = [task["id"] for task in studio.tasks(project)]
    assert ask(studio, project, ANN).status_code == 404
    for id in ids[1:]:
        data = {"text": "a", FIELD: f"|{ANN}|"}
        studio.call("PATCH", f"/api/tasks/{id}", {"data": data, "overlap": 2})
    assert ask(studio, project, BOB).status_code == 404
    assert ask(studio, project, ANN).json()["id"] == ids[1]
    annotate(studio, ids[1], "ok", ANN)
    assert ask(studio, project, ANN).json()["id"] == ids[2]
    annotate(studio, ids[2], "ok", ANN, was_cancelled=True)
    assert ask(studio, project, ANN).status_code == 404  # both are done, or skipped


def test_a_closed_task_is_not_handed_out(studio: Studio) -> None:
    project = studio.make_project(tasks=1)
    id = studio.tasks(project)[0]["id"]
    data = {"text": "a", FIELD: f"|{ANN}|"}
    studio.call("PATCH", f"/api/tasks/{id}", {"data": data, "overlap": 1, "is_labeled": True})
    assert ask(studio, project, ANN).status_code == 404


def test_tabs_are_made_once_and_mended(studio: Studio) -> None:
    project = studio.make_project()
    people = [Person(2, ANN, ANN), Person(3, BOB, "bob")]
    assert do(studio, project, lambda s: make_tabs(s, people)) == 2
    assert do(studio, project, lambda s: make_tabs(s, people)) == 0
    tabs = do(studio, project, lambda s: s.tabs())
    assert [tab["data"]["title"] for tab in tabs] == [f"venire: {ANN}", f"venire: {BOB}"]
    broken = {**tabs[0]["data"], "filters": {"conjunction": "and", "items": []}}
    do(studio, project, lambda s: s.put_tab(broken, tabs[0]["id"]))
    assert do(studio, project, lambda s: make_tabs(s, people)) == 1
    assert do(studio, project, lambda s: make_tabs(s, people)) == 0


def test_addresses_of_files_come_as_they_are_stored(studio: Studio) -> None:
    project = studio.make_project()
    row = [{"text": "s3://bucket/one.txt"}]
    studio.call("POST", f"/api/projects/{project}/import", row)
    assert do(studio, project, lambda s: s.after(0))[0]["data"] == row[0]


def test_a_task_that_is_gone_is_a_404(studio: Studio) -> None:
    project = studio.make_project(tasks=1)
    id = studio.tasks(project)[0]["id"]
    studio.call("DELETE", f"/api/tasks/{id}")
    assert do(studio, project, lambda s: s.tasks([id])) == []
    with pytest.raises(StudioError) as gone:
        do(studio, project, lambda s: s.change_task(id, overlap=2))
    assert gone.value.status == 404


def test_an_export_is_read(studio: Studio, tmp_path: Path) -> None:
    project = studio.make_project(tasks=3)
    first, second, third = (task["id"] for task in studio.tasks(project))
    users = {user.email: str(user.id) for user in do(studio, project, lambda s: s.users())}
    for task, said, who in ((first, "spam", ANN), (first, "ok", BOB), (second, "ok", ANN)):
        annotate(studio, task, said, who)
    annotate(studio, second, "spam", ANN)
    annotate(studio, third, "ok", BOB, was_cancelled=True)
    path = tmp_path / "export.json"
    path.write_text(
        json.dumps(studio.call("GET", f"/api/projects/{project}/export", exportType="JSON"))
    )
    found = read_export(path)
    assert sorted(found.labels) == sorted(
        [
            (str(first), users[ANN], "spam"),
            (str(first), users[BOB], "ok"),
            (str(second), users[ANN], "ok"),
        ]
    )
    assert found.left_out == {"changed": 1, "skipped": 1}
    assert (found.control.name, found.control.about) == ("kind", "post")


def test_a_killed_server_has_what_it_answered(studio: Studio) -> None:
    project = studio.make_project(tasks=2)
    id = studio.tasks(project)[0]["id"]
    annotate(studio, id, "ok", ANN)
    studio.kill()
    with pytest.raises(StudioDown):
        do(studio, project, lambda s: s.project())
    studio.start()
    assert len(studio.tasks(project)[0]["annotations"]) == 1
