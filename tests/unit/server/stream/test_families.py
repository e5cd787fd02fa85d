"""The setting `families` of a stream: stored, applied, replayed, and said in words."""

from __future__ import annotations

import json

import numpy as np
import pytest
from pydantic import ValidationError

from tests.unit.server.support import Bench, bench, running
from venire import panel_report
from venire.engine import Scheduler
from venire.estimators import Auto
from venire.labels import LabelTable
from venire.server.pages.rendering import changed_settings
from venire.server.pages.setting_fields import groups_of
from venire.server.reports.replays import events_of
from venire.server.reports.skill_report import measure
from venire.server.settings import StreamSettings, as_body, changed, of_body

NAMES = ("llama-a", "llama-b", "llama-c", "ann", "bob")
KIN = dict.fromkeys(NAMES[:3], "llama")


def said(items: int) -> list[tuple[str, str, str]]:
    """Three judges on one model say the same thing, right on seven of ten items."""
    rng = np.random.default_rng(1)
    rows = []
    for n in range(items):
        ours = n % 2 ^ int(rng.random() < 0.3)
        for name in NAMES:
            code = ours if name in KIN else n % 2 ^ int(rng.random() < 0.2)
            rows.append((f"i{n}", name, ("spam", "ok")[code]))
    return rows


async def labelled(b: Bench, items: int) -> list[tuple[str, str, str]]:
    rows = said(items)
    await b.add(*(f"i{n}" for n in range(items)))
    await b.service.add_labels("posts", rows)
    return rows


def test_settings_without_families_are_stored_as_they_were() -> None:
    settings = StreamSettings(classes=("a", "b"))
    assert "families" not in settings.model_dump()
    assert "families" not in as_body(settings, "open")
    assert of_body(as_body(settings, "open"))[0] == settings
    kin = changed(settings, {"families": KIN})
    assert json.loads(as_body(kin, "open"))["settings"]["families"] == KIN
    assert of_body(as_body(kin, "open"))[0] == kin
    assert as_body(changed(kin, {"families": {}}), "open") == as_body(settings, "open")
    with pytest.raises(ValidationError, match="families"):
        StreamSettings(classes=("a", "b"), families={"x": ["y"]})  # type: ignore[dict-item]


def test_the_form_has_the_field_also_where_it_is_empty() -> None:
    for kin, text in (({}, "{}"), ({"x": "y"}, '{\n "x": "y"\n}')):
        groups = groups_of(StreamSettings(classes=("a", "b"), families=kin))
        [field] = [f for _, fields in groups for f in fields if f.name == "families"]
        assert (field.kind, field.value) == ("json", text)


def test_the_skills_are_those_of_one_fit_of_auto() -> None:
    rows = said(60)
    report = measure(rows, ("spam", "ok"), {}, KIN)
    table = LabelTable.from_rows(rows, classes=("spam", "ok"))
    fitted = Auto(KIN, threads=1).fit(table)
    assert report.relations == fitted.relations_ == panel_report(table, families=KIN).relations
    assert report.relations[0].startswith("llama-a, llama-b and llama-c share errors: together")
    assert report.skills["llama-b"].family == ("llama-a", "llama-c")
    assert report.skills["ann"].family == ()
    for name, skill in zip(table.labelers, fitted.competences_, strict=True):
        assert report.skills[str(name)].skill == pytest.approx(skill)


@running
async def test_a_stream_learns_with_its_families_and_its_log_replays() -> None:
    panel = [{"id": name} for name in NAMES]
    async with bench(panel=panel, learning="while-serving", families=KIN) as b:
        await labelled(b, 30)
        assert b.live.engine.families == KIN
        for _ in range(5):
            await b.pass_time(10.0)
        await b.service.change_stream("posts", {"families": {"ann": "x", "bob": "x"}}, "me")
        assert b.live.engine.families == {"ann": "x", "bob": "x"}
        await b.service.change_stream("posts", {"families": KIN}, "me")
        await b.service.runtime.flush()
        view = await b.service.agreement("posts")
        assert "share errors: together 1.0 votes" in view.relations[0]
        assert view.relations == (await b.service.panel("posts")).relations
        assert await b.service.relations("posts") == view.relations
        one = {x.id: x for x in await b.service.labelers("posts")}["llama-c"]
        assert set(one.family) == {"llama-a", "llama-b"}
        first = b.storage.snapshot("posts", 0)
        assert first is not None
        replayed = Scheduler.restore(first.body).follow(events_of(b.storage, "posts"))
        assert replayed.families == KIN
        assert replayed.fingerprint() == b.live.engine.fingerprint()
        versions = changed_settings(await b.service.settings_history("posts"))
        assert versions[0][1].startswith('families: {"llama-a": "llama"')
