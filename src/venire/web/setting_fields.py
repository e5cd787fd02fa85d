"""The settings of a stream as the fields of a form.

Every setting that can be changed has a field. What is a list or an object is a text of JSON, but
for the rules of alarms, the daily budget and the retention, of which each part has a field of its
own. An empty field of a number means none.
"""

from __future__ import annotations

import json
import typing
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from venire.scheduling import Learning, Policy
from venire.scheduling.by_name import KNOWN, exported
from venire.service.retention import Retention
from venire.service.settings import LATER, AlarmRules, DailyBudget, StreamSettings

__all__ = ["Field", "groups_of"]

Kind = Literal["number", "text", "flag", "long", "json"]

#: What belongs together, in the order of the form.
GROUPS: Final = MappingProxyType(
    {
        "When an item leaves": ["min_labels", "max_overlap", "min_confidence", "deadline_slots"],
        "Who labels what": ["policy", "learning", "open_panel", "unasked_labels", "families"],
        "Money and time": [
            *("default_weight", "delay_cost", "label_budget", "budget"),
            *("slot_seconds", "lease_floor_seconds", "lease_ceiling_seconds"),
        ],
        "Checks": ["audit_share", "revisions"],
        "Alarms": ["alarms"],
        "How long history stays": ["retention"],
        "Labelling page": ["ahead", "undo_seconds", "show_left", "guidelines"],
        "As JSON": ["panel", "student", "costs", "descriptions", "layout", "practice"],
    }
)

#: Objects whose parts have fields of their own.
PARTS: Final = MappingProxyType[str, type[BaseModel]](
    {"alarms": AlarmRules, "budget": DailyBudget, "retention": Retention}
)

HINTS: Final = MappingProxyType(
    {
        "min_labels": "not before it has so many labels",
        "max_overlap": "at the latest with so many labels",
        "min_confidence": "when its verdict is as sure as this, between 0 and 1",
        "deadline_slots": "so many slots after it arrived",
        "default_weight": "what a right verdict is worth",
        "delay_cost": "what one slot of waiting costs",
        "label_budget": "labels in all",
        "budget.money": "a day, in the unit of the prices",
        "budget.labels": "a day",
        "slot_seconds": "the length of a slot",
        "audit_share": "of the verdicts that a trusted labeler checks",
        "revisions": "latest exits whose verdicts may still be revised",
        "families": "labelers who may share errors, with the name of their family, as JSON",
        "open_panel": "whoever asks for work joins the panel",
        "retention.payload_days": "payloads are erased so many days after an item left",
        "retention.item_days": "items are archived so many days after they left",
        "retention.items": "all but so many items that left are archived",
        "retention.delete": "delete instead of archiving, for good",
        "unasked_labels": "labelers may label what they were not assigned",
        "ahead": "items that a person may hold beyond the capacity",
        "show_left": "the labelling page says how many open items its labeler has not answered",
        "guidelines": "how to label, in Markdown",
    }
)


@dataclass(frozen=True, slots=True)
class Field:
    """A field: its name, how it is entered, its value as text, a hint, and known values."""

    name: str
    kind: Kind
    value: str
    hint: str = ""
    options: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """The name for people.

        >>> Field("alarms.kept_share", "number", "0.5").label
        'kept share'
        """
        own = self.name.removeprefix("alarms.").removeprefix("retention.")
        return own.replace(".", ": ").replace("_", " ")


def groups_of(settings: StreamSettings) -> list[tuple[str, list[Field]]]:
    """The fields of the form with the values of a stream, in groups.

    >>> groups = groups_of(StreamSettings(classes=["a", "b"], max_overlap=5))
    >>> [(field.name, field.value) for field in groups[0][1]][:2]
    [('min_labels', '1'), ('max_overlap', '5')]
    """
    values = {name: getattr(settings, name) for name in LATER} | settings.model_dump(mode="json")
    named = {"classes", *(name for names in GROUPS.values() for name in names)}
    others = {"More": [name for name in values if name not in named]}
    return [
        (title, [field for name in names for field in _fields(name, values[name])])
        for title, names in [*GROUPS.items(), *others.items()]
        if names
    ]


def _fields(name: str, value: Any) -> list[Field]:
    if name not in PARTS:
        return [_field(name, StreamSettings.model_fields[name], value)]
    parts = {k: v for k, v in PARTS[name].model_fields.items() if k != "per_day"}
    return [_field(f"{name}.{k}", about, (value or {}).get(k)) for k, about in parts.items()]


def _field(name: str, about: FieldInfo, value: Any) -> Field:
    kind, hint = _kind(name, about.annotation), HINTS.get(name, "")
    value = int(value) if isinstance(value, float) and value.is_integer() else value
    text = "" if value is None else value if isinstance(value, str) else json.dumps(value)
    if kind == "json":
        text = _json(value)
    return Field(name, kind, text, hint, _options(name))


def _json(value: Any) -> str:
    """JSON with a line for each part.

    >>> print(_json([{"id": "ann"}, {"id": "bob"}]))
    [
     {"id": "ann"},
     {"id": "bob"}
    ]
    """
    if not isinstance(value, list) or not value:
        return json.dumps(value, indent=1, ensure_ascii=False)
    return "[\n " + ",\n ".join(json.dumps(one, ensure_ascii=False) for one in value) + "\n]"


def _kind(name: str, kind: Any) -> Kind:
    """How a value of this type is entered."""
    types = set(_plain(kind))
    if types <= {int, float, type(None)}:
        return "number"
    if types == {bool}:
        return "flag"
    return ("long" if name == "guidelines" else "text") if types == {str} else "json"


def _plain(kind: Any) -> list[Any]:
    """The types of a union, without annotations."""
    if typing.get_origin(kind) is Annotated:
        return _plain(typing.get_args(kind)[0])
    inner = typing.get_args(kind)
    union = typing.get_origin(kind) in (typing.Union, type(int | str))
    return [one for part in inner for one in _plain(part)] if union else [kind]


def _options(name: str) -> tuple[str, ...]:
    kinds: dict[str, type] = {"policy": Policy, "learning": Learning}
    if name not in kinds:
        return ()
    return tuple(sorted([*exported(kinds[name]), *([KNOWN] if name == "learning" else [])]))
