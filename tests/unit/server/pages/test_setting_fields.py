"""The form of the settings: every setting that can be changed is in it, as it is."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import BaseModel

from venire.server.pages import setting_fields
from venire.server.pages.setting_fields import PRESETS, groups_of
from venire.server.settings import (
    MIN_SLOT,
    MOST_AHEAD,
    AlarmRules,
    DailyBudget,
    Retention,
    StreamSettings,
    changed,
)

SETTINGS = StreamSettings.model_validate(
    {
        "classes": ["a", "b"],
        "panel": [{"id": "ann", "price": 0.5}],
        "budget": {"money": 5},
        "min_confidence": 0.9,
        "guidelines": "Look\n\ntwice.",
        "alarms": {"queue": 7, "drift": False},
    }
)


def test_every_setting_but_the_classes_has_a_field_in_one_group() -> None:
    fields = [field.name for _, group in groups_of(SETTINGS) for field in group]
    assert len(fields) == len(set(fields))
    assert {name.partition(".")[0] for name in fields} == set(StreamSettings.model_fields) - {
        "classes"
    }
    assert {f"alarms.{name}" for name in AlarmRules.model_fields} <= set(fields)
    assert {"budget.money", "budget.labels"} <= set(fields)


def test_a_setting_that_no_group_names_has_a_field_too(monkeypatch: Any) -> None:
    few = {title: names for title, names in setting_fields.GROUPS.items() if title != "Checks"}
    monkeypatch.setattr(setting_fields, "GROUPS", few)
    title, fields = groups_of(SETTINGS)[-1]
    assert title == "More"
    assert {field.name for field in fields} == {
        *("audit_share", "audit_at_least", "expert_share"),
        *("guarantee", "guarantee_level", "revisions"),
        *("repeat_share", "repeat_after_slots"),
    }


def test_what_is_in_the_fields_is_what_the_settings_are() -> None:
    """Read back as the page's script reads it, the fields give the same settings."""
    read: dict[str, Any] = {}
    for _, group in groups_of(SETTINGS):
        for field in group:
            value: Any = field.value
            if field.kind == "number":
                value = json.loads(value) if value else None
            elif field.kind in ("flag", "json"):
                value = json.loads(value)
            name, _, part = field.name.partition(".")
            if part:
                read.setdefault(name, {})[part] = value
            else:
                read[name] = value
    assert changed(SETTINGS, read) == SETTINGS


def test_every_field_has_a_sentence_and_numbers_have_units_and_bounds_of_the_declaration() -> None:
    fields = {field.name: field for _, group in groups_of(SETTINGS) for field in group}
    assert [name for name, field in fields.items() if not field.hint.endswith(".")] == []
    numbers = [field for field in fields.values() if field.kind == "number"]
    assert [field.name for field in numbers if not field.unit or field.least is None] == []
    assert fields["slot_seconds"].least == MIN_SLOT
    assert [fields[name].most for name in ("alarms.accuracy", "ahead")] == [1, MOST_AHEAD]
    models: list[type[BaseModel]] = [AlarmRules, DailyBudget, Retention]
    assert list(setting_fields.PARTS.values()) == models


@pytest.mark.parametrize("name", PRESETS)
def test_a_template_is_complete_and_its_items_are_for_people(name: str) -> None:
    settings = PRESETS[name].settings
    assert settings.open_panel
    assert settings.min_confidence is not None
    assert set(PRESETS[name].more) <= set(StreamSettings.model_fields)
    for cost in settings.costs:
        assert cost.cost == abs(int(cost.truth) - int(cost.verdict))
