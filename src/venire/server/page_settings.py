"""Settings of the labelling page, a part of the settings of a stream, and versioned with them."""

from __future__ import annotations

import json
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, field_validator

from venire.server.units import Unit

__all__ = ["MOST_AHEAD", "Block", "Name", "PageSettings", "Practice", "page_of"]

#: Maximum of the setting `ahead`.
MOST_AHEAD: Final = 100

#: Maximum length of guidelines, of a description and of a payload to practise with, in characters.
LONGEST_GUIDELINES: Final = 50_000
LONGEST_DESCRIPTION: Final = 2_000
LONGEST_PRACTICE: Final = 50_000

Name = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")]
Text = Annotated[str, Field(max_length=LONGEST_DESCRIPTION)]


class Block(BaseModel):
    """A part of the page: which field of the payload it shows, and how.

    `field` is a path such as `prompt` or `messages.0.content`; the whole payload if it is empty.
    `title` stands above it. With `beside` it stands beside the block before it, as two responses
    do. `highlight` names a field that says what to mark in a text: a list of words, or of pairs
    [start, end], counted in characters.

    >>> Block(field="response", show="markdown", title="Response").show
    'markdown'
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    field: Annotated[str, Field(max_length=200)] = ""
    show: Literal["auto", "text", "markdown", "code", "image", "audio", "table"] = "auto"
    title: Annotated[str, Field(max_length=200)] = ""
    beside: bool = False
    highlight: Annotated[str, Field(max_length=200)] = ""


class Practice(BaseModel):
    """An item to practise with: its payload, the right answer, and why it is right (Markdown).

    >>> Practice(payload="BUY NOW", answer="spam", why="It *shouts*.").answer
    'spam'
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    payload: JsonValue
    answer: Name
    why: Text = ""

    @field_validator("payload")
    @classmethod
    def _short(cls, payload: JsonValue) -> JsonValue:
        if len(json.dumps(payload)) > LONGEST_PRACTICE:
            raise ValueError(f"got a payload of more than {LONGEST_PRACTICE:,} characters")
        return payload


class PageSettings(BaseModel):
    """What people who label see, and how far ahead of the server they may be."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    guidelines: Annotated[str, Field(max_length=LONGEST_GUIDELINES)] = ""
    """How to label, in Markdown; always at hand on the labelling page."""
    descriptions: Annotated[dict[Name, Text], Field(max_length=1000)] = {}
    """What each class means, in Markdown, by class."""
    layout: Annotated[tuple[Block, ...], Field(max_length=20)] = ()
    """What the page shows of a payload, block by block; chosen by its shape if there is none."""
    practice: Annotated[tuple[Practice, ...], Field(max_length=50)] = ()
    """Items with known answers that a person labels first, with feedback; nothing of that is a
    label."""
    ahead: Annotated[int, Field(ge=0, le=MOST_AHEAD), Unit("items")] = 11
    """How many items beyond its capacity a labeler may hold if it asks for that, as the labelling
    page does: the next one, and those whose answers can still be undone."""
    undo_seconds: Annotated[float, Field(ge=0, le=600, allow_inf_nan=False), Unit("seconds")] = 30.0
    """For how long the labelling page keeps an answer, so that it can be undone; at most the last
    ten of them."""
    show_left: bool = False
    """Whether the labelling page says how many open items its labeler has not answered."""

    def check_classes(self, classes: tuple[str, ...]) -> None:
        """`ValueError` if a description or a practice item names a class that there is not."""
        named = {*self.descriptions, *(one.answer for one in self.practice)}
        unknown = sorted(named - set(classes))
        if unknown:
            raise ValueError(
                f"descriptions or practice name the class {unknown[0]!r}, expected one of "
                f"{list(classes)}"
            )


def page_of(settings: dict[str, Any]) -> dict[str, Any]:
    """Those settings of a stream that its labelers may see; not the answers of practice items.

    >>> page_of({"classes": ["a", "b"], "guidelines": "Look twice.", "panel": []})
    {'classes': ['a', 'b'], 'guidelines': 'Look twice.'}
    """
    seen = ("classes", "guidelines", "descriptions", "layout", "ahead", "undo_seconds", "show_left")
    return {name: settings[name] for name in seen if name in settings}
