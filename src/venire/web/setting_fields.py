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
from venire.service.settings import AlarmRules, DailyBudget, StreamSettings
from venire.service.units import Unit

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
        "Checks": ["audit_share", "audit_at_least", "revisions"],
        "Alarms": ["alarms"],
        "How long history stays": ["retention"],
        "Labelling page": ["ahead", "undo_seconds", "guidelines"],
        "As JSON": ["panel", "student", "costs", "descriptions", "layout", "practice"],
    }
)

#: Objects whose parts have fields of their own.
PARTS: Final = MappingProxyType[str, type[BaseModel]](
    {"alarms": AlarmRules, "budget": DailyBudget, "retention": Retention}
)


@dataclass(frozen=True, slots=True)
class Field:
    """A field: its name, how it is entered, its value as text, and what its declaration says.

    That is a hint, known values, the unit of a number, and its least and greatest value.
    """

    name: str
    kind: Kind
    value: str
    hint: str = ""
    options: tuple[str, ...] = ()
    unit: str = ""
    least: float | None = None
    most: float | None = None

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
    values = {"families": settings.families} | settings.model_dump(mode="json")  # also if empty
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
    kind = _kind(name, about.annotation)
    value = int(value) if isinstance(value, float) and value.is_integer() else value
    text = "" if value is None else value if isinstance(value, str) else json.dumps(value)
    if kind == "json":
        text = _json(value)
    hint, said = " ".join((about.description or "").split()), _said(about)
    least = min((x for one in said for x in _bound(one, "ge", "gt")), default=None)
    most = max((x for one in said for x in _bound(one, "le", "lt")), default=None)
    unit = next((one.name for one in said if isinstance(one, Unit)), "")
    return Field(name, kind, text, hint, _options(name), unit, least, most)


def _said(about: FieldInfo) -> list[Any]:
    """What the type of a setting says beside itself: bounds, and the unit."""
    return [*about.metadata, *_annotations(about.annotation)]


def _annotations(kind: Any) -> list[Any]:
    inner = list(typing.get_args(kind))
    if typing.get_origin(kind) is Annotated:
        own = [one for part in inner[1:] for one in getattr(part, "metadata", [part])]
        return own[::-1] + _annotations(inner[0])
    union = typing.get_origin(kind) in (typing.Union, type(int | str))
    return [one for part in inner for one in _annotations(part)] if union else []


def _bound(said: Any, *names: str) -> list[float]:
    found = (getattr(said, name, None) for name in names)
    return [one for one in found if isinstance(one, int | float)]


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
