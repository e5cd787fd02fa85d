"""The forms of settings: a field for each, by its type, unit and bounds; and presets."""

from __future__ import annotations

import json
import typing
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, NamedTuple

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from venire.scheduling import Learning, Policy
from venire.scheduling.by_name import KNOWN, exported
from venire.server.reports.alarm_rules import title_of
from venire.server.settings import LATER, AlarmRules, DailyBudget, Retention, StreamSettings, Unit

GRADES: Final = ("1", "2", "3", "4", "5")

#: People label for minutes, so that verdicts every ten seconds are soon enough, and waiting for one
#: more label costs little beside a wrong verdict.
PEOPLE: Final = MappingProxyType[str, Any](
    {"slot_seconds": 10.0, "delay_cost": 0.1, "min_labels": 2, "max_overlap": 5}
)


class Preset(NamedTuple):
    """A kind of stream: its title, what it is for, what its items look like, and its settings."""

    title: str
    about: str
    items: str
    more: dict[str, Any]

    @property
    def settings(self) -> StreamSettings:
        """The settings, complete.

        >>> PRESETS["moderation"].settings.classes
        ('remove', 'keep')
        """
        return StreamSettings.model_validate(self.more)


PRESETS: Final = MappingProxyType(
    {
        "moderation": Preset(
            "Moderation",
            "Posts, comments or tickets: what may stay, and what has to go.",
            "a column of ids and one of the text",
            {
                **PEOPLE,
                "classes": ["remove", "keep"],  # a tie goes to the last class: a post stays
                "min_confidence": 0.9,
                "audit_share": 0.02,
                "guidelines": "**remove** what breaks the rules, **keep** everything else.\n",
            },
        ),
        "pairs": Preset(
            "Pairs",
            "Two answers to the same question: which is better?",
            "columns id, prompt and two answers: first and second, or response_a and response_b",
            {
                **PEOPLE,
                "classes": ["first", "second", "tie"],
                "min_confidence": 0.8,
                "guidelines": "Which answer helps more? **tie** if neither does.\n",
            },
        ),
        "images": Preset(
            "Images",
            "Pictures, and what is on them.",
            "a column of ids and one called image, with addresses or data: URLs",
            {
                **PEOPLE,
                "classes": ["yes", "no", "cannot tell"],
                "min_confidence": 0.9,
                "layout": [{"field": "image", "show": "image"}],
                "guidelines": "Look at the whole picture before you answer.\n",
            },
        ),
        "grades": Preset(
            "Grades",
            "Grades from 1 to 5, where being off by three is worse than by one.",
            "a column of ids and one of the text",
            {
                **PEOPLE,
                "classes": list(GRADES),
                "min_labels": 3,
                "min_confidence": 0.7,
                "costs": [
                    {"truth": truth, "verdict": verdict, "cost": abs(int(truth) - int(verdict))}
                    for truth in GRADES
                    for verdict in GRADES
                    if abs(int(truth) - int(verdict)) > 1
                ],
                "guidelines": "**1** is the worst, **5** the best.\n",
            },
        ),
    }
)


Kind = Literal["number", "text", "flag", "long", "json", "choice"]

#: What belongs together, in the order of the form.
GROUPS: Final = MappingProxyType(
    {
        "When an item leaves": [
            *("min_labels", "max_overlap", "min_confidence", "deadline_slots", "leave_on"),
        ],
        "Who labels what": ["policy", "learning", "open_panel", "unasked_labels", "families"],
        "Money and time": [
            *("default_weight", "delay_cost", "label_budget", "budget"),
            *("slot_seconds", "lease_floor_seconds", "lease_ceiling_seconds"),
        ],
        "Checks": [
            *("audit_share", "audit_at_least", "expert_share"),
            *("guarantee", "guarantee_level", "revisions"),
            *("repeat_share", "repeat_after_slots"),
        ],
        "Alarms": ["alarms"],
        "How long history stays": ["retention"],
        "Labelling page": ["ahead", "undo_seconds", "show_left", "guidelines"],
        "Panel": ["panel"],
        "What errors cost": ["costs"],
        "Where items go": ["routes"],
        "What labelers see": ["layout", "descriptions", "practice"],
        "Student": ["student"],
    }
)

#: Objects whose parts have fields of their own.
PARTS: Final = MappingProxyType[str, type[BaseModel]](
    {"alarms": AlarmRules, "budget": DailyBudget, "retention": Retention}
)


#: Names for people, where that of the setting is not one.
LABELS: Final = MappingProxyType(
    {
        "min_labels": "fewest labels",
        "max_overlap": "most labels",
        "deadline_slots": "longest wait",
        "delay_cost": "cost of waiting",
    }
)


@dataclass(frozen=True, slots=True)
class Field:
    """A field: its name, how it is entered, its value as text, and what its declaration says.

    That is a hint, known values, the unit of a number, and its least and greatest value. `columns`
    are those of a table; one of two columns called `name` and `text` is an object in JSON.
    """

    name: str
    kind: Kind
    value: str
    hint: str = ""
    options: tuple[str, ...] = ()
    unit: str = ""
    least: float | None = None
    most: float | None = None
    columns: tuple[Field, ...] = ()

    @property
    def as_columns(self) -> str:
        """The columns as the page's script reads them."""
        told = [
            {"name": one.name, "kind": one.kind, "label": one.label, "options": one.options}
            | {"value": one.value, "least": one.least, "most": one.most}
            for one in self.columns
        ]
        return json.dumps(told)

    @property
    def label(self) -> str:
        """The name for people.

        >>> Field("alarms.kept_share", "number", "0.5").label
        'missed class'
        >>> Field("min_labels", "number", "1").label
        'fewest labels'
        """
        if self.name in LABELS:
            return LABELS[self.name]
        if self.name.startswith("alarms."):
            return title_of(self.name.removeprefix("alarms."))
        return self.name.removeprefix("retention.").replace(".", ": ").replace("_", " ")


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
        (
            title,
            [_within(field, settings) for name in names for field in _fields(name, values[name])],
        )
        for title, names in [*GROUPS.items(), *others.items()]
        if names
    ]


def _fields(name: str, value: Any) -> list[Field]:
    if name not in PARTS:
        return [_field(name, StreamSettings.model_fields[name], value)]
    parts = {k: v for k, v in PARTS[name].model_fields.items() if k != "per_day"}
    return [_field(f"{name}.{k}", about, (value or {}).get(k)) for k, about in parts.items()]


def _within(field: Field, settings: StreamSettings) -> Field:
    """The field, in whose columns classes are chosen among those of the stream."""
    if field.name not in ("costs", "descriptions"):
        return field
    columns = [
        replace(one, kind="choice", options=settings.classes)
        if one.name in ("truth", "verdict", "name")
        else one
        for one in field.columns
    ]
    return replace(field, columns=tuple(columns))


def _columns(kind: Any) -> tuple[Field, ...]:
    """The columns of a list of records, or of a text for each name; none of what is neither."""
    inner = typing.get_args(kind)
    if typing.get_origin(kind) is dict and _plain(inner[1]) == [str]:
        return Field("name", "text", ""), Field("text", "text", "")
    if typing.get_origin(kind) is not tuple or not issubclass(inner[0], BaseModel):
        return ()
    found = [
        _field(name, about, None if about.is_required() else about.default)
        for name, about in inner[0].model_fields.items()
    ]
    return () if any(one.kind == "json" for one in found) else tuple(found)


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
    options = typing.get_args(about.annotation) if kind == "choice" else _options(name)
    columns = _columns(about.annotation) if kind == "json" else ()
    return Field(name, kind, text, hint, options, unit, least, most, columns)


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
    if typing.get_origin(kind) is Literal:
        return "choice"
    types = set(_plain(kind))
    if types <= {int, float, type(None)}:
        return "number"
    if types == {bool}:
        return "flag"
    if types <= {str, type(None)}:
        return "long" if name == "guidelines" else "text"
    return "json"


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
