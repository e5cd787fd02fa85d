"""Settings to begin with, for the kinds of streams that people make most; a form shows them."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Final, NamedTuple

from venire.server.settings import StreamSettings

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
