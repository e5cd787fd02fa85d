"""The labelling config of a Label Studio project: how a class is written in an annotation.

A project says in XML which controls its people see, under which names:

    <View>
      <Image name="photo" value="$url"/>
      <Choices name="kind" toName="photo">
        <Choice value="Cat"/> <Choice value="Dog" alias="dog"/>
      </Choices>
    </View>

An annotation refers to the control (`from_name`) and to what it is about (`to_name`), so the names
have to come from the config. Controls that say one class of a whole task can be used: `Choices`,
and `Rating`, whose classes are "1" to its highest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final
from xml.etree import ElementTree

from venire.errors import InputError, UnknownName
from venire.model import rationale_of

#: The control by which people say how sure they are: a Rating or a Number.
CONFIDENCE: Final = "confidence"

#: The control by which they say why: a TextArea.
RATIONALE: Final = "rationale"

#: How many stars a Rating has without `maxRating`.
STARS: Final = 5


@dataclass(frozen=True, slots=True)
class Control:
    """A control that says one class; `classes` is empty if each task has its own.

    `field` is the field of a task's data that what it is about shows. Beside it there may be a
    control called "confidence", by which people say how sure they are, from 0 to `surest`.

    >>> kind = Control("kind", "photo", "choices", ("Cat", "dog"))
    >>> kind.result("dog")
    [{'from_name': 'kind', 'to_name': 'photo', 'type': 'choices', 'value': {'choices': ['dog']}}]
    >>> kind.said(kind.result("dog"))
    ['dog']
    """

    name: str
    about: str
    kind: str = "choices"
    classes: tuple[str, ...] = ()
    field: str = "text"
    surest: float = 1.0

    def result(self, label: str) -> list[dict[str, Any]]:
        """The `result` of an annotation or a prediction that says this class."""
        value: Any = {"choices": [label]}
        if self.kind == "rating":
            if not label.isdecimal():
                raise InputError(f"got the class {label!r}, expected a number: {self.name} rates")
            value = {"rating": int(label)}
        return [{"from_name": self.name, "to_name": self.about, "type": self.kind, "value": value}]

    def said(self, result: Any) -> list[str]:
        """The classes that the `result` of an annotation says: one, if it is of use."""
        found: list[str] = []
        for part in result if isinstance(result, list) else ():
            if not isinstance(part, Mapping) or part.get("from_name") != self.name:
                continue
            value = part.get("value")
            said = value.get(self.kind) if isinstance(value, Mapping) else None
            found += [str(one) for one in (said if isinstance(said, list) else [said])]
        return [one for one in found if one != "None"]

    def confidence(self, result: Any) -> float | None:
        """How sure the `result` of an annotation says that somebody was, from 0 to 1.

        >>> part = {"from_name": "confidence", "type": "rating", "value": {"rating": 4}}
        >>> Control("kind", "photo", surest=5.0).confidence([part])
        0.8
        """
        for part in result if isinstance(result, list) else ():
            if isinstance(part, Mapping) and part.get("from_name") == CONFIDENCE:
                value = part.get("value")
                told = value.get(part.get("type")) if isinstance(value, Mapping) else None
                if isinstance(told, int | float) and 0 <= told <= self.surest:
                    return told / self.surest
        return None


def rationale_in(result: Any) -> str | None:
    r"""Why somebody says what the `result` of an annotation says, if it says why.

    >>> rationale_in([{"from_name": "rationale", "value": {"text": ["It sells", "watches."]}}])
    'It sells\nwatches.'
    """
    for part in result if isinstance(result, list) else ():
        if isinstance(part, Mapping) and part.get("from_name") == RATIONALE:
            value = part.get("value")
            told = value.get("text") if isinstance(value, Mapping) else None
            lines = told if isinstance(told, list) else [told]
            return rationale_of("\n".join(line for line in lines if isinstance(line, str)))
    return None


#: The control of exports without a config.
PLAIN_CONTROL: Final = Control("label", "item")


def read_controls(config: str) -> list[Control]:
    """The controls of a labelling config that say one class.

    >>> read_controls('<View><Text name="t" value="$x"/><Rating name="stars" toName="t"/></View>')
    [Control(name='stars', about='t', kind='rating', classes=('1', '2', '3', '4', '5'),
    field='x', surest=1.0)]
    """
    try:
        root = ElementTree.fromstring(config)
    except ElementTree.ParseError as error:
        raise InputError(f"the labelling config is not XML: {error}") from None
    shown = [tag for tag in root.iter() if not tag.get("toName")]
    shows = {tag.get("name"): tag.get("value", "") for tag in shown}
    found = []
    for tag in root.iter():
        kind = {"Choices": "choices", "Rating": "rating"}.get(tag.tag)
        name, about = tag.get("name"), tag.get("toName")
        if kind is not None and name and about and not _by_region(tag):
            field = shows.get(about, "").removeprefix("$")
            found.append(Control(name, about, kind, _classes(tag, kind), field or "text"))
    return found


def _by_region(tag: ElementTree.Element) -> bool:
    """Whether the control describes parts of a task, not the task."""
    return tag.get("perRegion", "").lower() == "true" or tag.get("perItem", "").lower() == "true"


def _classes(tag: ElementTree.Element, kind: str) -> tuple[str, ...]:
    if kind == "rating":
        most = tag.get("maxRating", "")
        return tuple(str(n + 1) for n in range(int(most) if most.isdecimal() else STARS))
    if tag.get("value"):  # as in value="$options": choices that come with each task
        return ()
    options = (one.get("alias") or one.get("value") or "" for one in tag.iter("Choice"))
    return tuple(dict.fromkeys(option for option in options if option))


def _surest(config: str) -> float | None:
    """The highest value of the control called "confidence"; None without one."""
    for tag in ElementTree.fromstring(config).iter():
        if tag.get("name") == CONFIDENCE and tag.tag in ("Rating", "Number"):
            most = tag.get("maxRating" if tag.tag == "Rating" else "max", "")
            usual = float(STARS) if tag.tag == "Rating" else 1.0
            return float(most) if most.isdecimal() and float(most) else usual
    return None


def find_control(config: str, name: str | None = None) -> Control:
    """The control of this name, or the only one.

    >>> config = '<View><Text name="t" value="$x"/><Choices name="kind" toName="t"/></View>'
    >>> find_control(config).name
    'kind'
    """
    controls = read_controls(config)
    surest = _surest(config)
    if surest is not None:
        others = [control for control in controls if control.name != CONFIDENCE or name]
        controls = [replace(control, surest=surest) for control in others]
    if name is not None:
        for control in controls:
            if control.name == name:
                return control
        raise UnknownName("control", name, [control.name for control in controls])
    if len(controls) != 1:
        names = ", ".join(control.name for control in controls) or "none"
        raise InputError(
            "got a labelling config with these controls for one class: "
            f"{names}; expected one <Choices> or <Rating> of the whole task: "
            + ("name it with --control" if controls else "add it to the project's labelling setup")
        )
    return controls[0]
