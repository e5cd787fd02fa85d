"""What a stream is told, and what a server is told.

`StreamSettings` is the body of `POST /v1/streams`, and what the store keeps, one version after
another. Every field may be changed while the stream runs except `classes`.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Final, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from venire.model import MOST_CAPACITY, MOST_WEIGHT

__all__ = [
    "LONGEST_ID",
    "STREAM_NAME",
    "Member",
    "ServiceSettings",
    "StreamSettings",
    "as_body",
    "changed",
    "first_fault",
    "of_body",
]

#: What a stream may be called: it stands in paths.
STREAM_NAME: Final = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"

#: Characters in the id of an item, at most.
LONGEST_ID: Final = 200

#: The shortest slot, in seconds: a server has to close them all.
LEAST_SLOT: Final = 0.01

Name = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")]
Seconds = Annotated[float, Field(gt=0, le=10 * 365 * 86_400, allow_inf_nan=False)]
SlotSeconds = Annotated[float, Field(ge=LEAST_SLOT, le=10 * 365 * 86_400, allow_inf_nan=False)]
Weight = Annotated[float, Field(gt=0, le=MOST_WEIGHT, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0, le=2**31 - 1)]


class Member(BaseModel):
    """A labeler of the panel: a person, a program or a model.

    `capacity` is how many items it may hold at once. `competence` is the probability that it
    is right, where that is known; otherwise it is learned. `kind` is for people to read.

    >>> Member(id="ann").capacity
    1
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: Name
    competence: Annotated[float, Field(gt=0, lt=1)] | None = None
    capacity: Annotated[int, Field(ge=1, le=MOST_CAPACITY)] = 1
    kind: Annotated[str, Field(max_length=40)] | None = None


class StreamSettings(BaseModel):
    """How a stream is to be served.

    Parameters
    ----------
    classes
        What a label may say. Cannot be changed later.
    panel
        The labelers that are known from the start.
    open_panel
        Whether a labeler that is not on the panel joins it by asking for work.
    policy, learning
        By name with settings, as on the command line: `realised`, `fixed-overlap:5`;
        `while-serving`, `known`.
    slot_seconds
        The length of a slot, at least a hundredth of a second. Slots that the server cannot
        close in time do not pass.
    default_weight, delay_cost
        An item's weight says what a right verdict is worth; `delay_cost` is what a slot of
        waiting costs, in the same unit. A change holds for items that come after it.
    min_labels, max_overlap, min_confidence, deadline_slots
        An item does not leave before it has `min_labels` labels (unless nobody is left to give
        them, or its deadline has come), and leaves with `max_overlap` labels, or when its
        verdict has `min_confidence`, or `deadline_slots` slots after it came.
    label_budget
        So many labels in all; then items leave with what they have.
    lease_floor_seconds, lease_ceiling_seconds
        A lease lasts twice the time in which the labeler gives nine of ten labels, but at
        least and at most so long.

    Examples
    --------
    >>> StreamSettings(classes=["spam", "ok"], panel=[{"id": "ann"}]).policy
    'realised'
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    classes: Annotated[tuple[Name, ...], Field(min_length=2, max_length=1000)]
    panel: Annotated[tuple[Member, ...], Field(max_length=10_000)] = ()
    open_panel: bool = True
    policy: Annotated[str, Field(max_length=100)] = "realised"
    learning: Annotated[str, Field(max_length=100)] = "while-serving"
    slot_seconds: SlotSeconds = 60.0
    default_weight: Weight = 10.0
    delay_cost: Weight = 1.0
    min_labels: Count = 1
    max_overlap: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = None
    min_confidence: Annotated[float, Field(gt=0, le=1)] | None = None
    deadline_slots: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = None
    label_budget: Annotated[int, Field(ge=0, le=2**53)] | None = None
    lease_floor_seconds: Seconds = 60.0
    lease_ceiling_seconds: Seconds = 3600.0

    @model_validator(mode="after")
    def _together(self) -> Self:
        if len(set(self.classes)) < len(self.classes):
            raise ValueError(f"got the classes {list(self.classes)}, expected distinct names")
        names = [member.id for member in self.panel]
        if len(set(names)) < len(names):
            raise ValueError("a labeler is on the panel twice, expected distinct ids")
        if not names and not self.open_panel:
            raise ValueError("the panel is empty and closed: name labelers, or set open_panel")
        if self.max_overlap is not None and self.min_labels > self.max_overlap:
            raise ValueError(
                f"min_labels {self.min_labels} is more than max_overlap {self.max_overlap}"
            )
        if self.lease_floor_seconds > self.lease_ceiling_seconds:
            raise ValueError("lease_floor_seconds is more than lease_ceiling_seconds")
        return self


def changed(settings: StreamSettings, changes: dict[str, Any]) -> StreamSettings:
    """The settings with some of them replaced, checked anew.

    >>> old = StreamSettings(classes=["a", "b"])
    >>> changed(old, {"max_overlap": 5}).max_overlap
    5
    """
    return StreamSettings.model_validate({**settings.model_dump(), **changes})


def as_body(settings: StreamSettings, status: str) -> str:
    """One version of what a stream is told, as the store keeps it.

    >>> of_body(as_body(StreamSettings(classes=["a", "b"]), "paused"))[1]
    'paused'
    """
    return json.dumps({"settings": settings.model_dump(mode="json"), "status": status})


def of_body(body: str) -> tuple[StreamSettings, str]:
    """The settings, and whether the stream was running, paused or closed."""
    kept = json.loads(body)
    told = kept["settings"]
    told["slot_seconds"] = max(told["slot_seconds"], LEAST_SLOT)  # it could once be less
    return StreamSettings.model_validate(told), str(kept["status"])


def first_fault(error: ValidationError) -> str:
    """What is wrong with settings, in one line.

    >>> try:
    ...     StreamSettings(classes=["a"])
    ... except ValidationError as error:
    ...     print(first_fault(error))
    classes: Tuple should have at least 2 items after validation, not 1
    """
    fault = error.errors()[0]
    where = ".".join(str(part) for part in fault["loc"])
    message = str(fault["msg"]).removeprefix("Value error, ")
    return f"{where}: {message}" if where else message


class ServiceSettings(BaseModel):
    """How a server is to behave, for all of its streams."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    max_waiting: Annotated[int, Field(ge=1)] = 1000
    max_wait_seconds: Seconds = 60.0
    max_batch: Annotated[int, Field(ge=1)] = 100_000
    max_open_items: Annotated[int, Field(ge=1)] = 1_000_000
    max_labelers: Annotated[int, Field(ge=1)] = 10_000
    remember_items: Annotated[int, Field(ge=0)] = 100_000
    snapshot_every: Annotated[int, Field(ge=1)] = 20_000
    allow_private_webhooks: bool = False
    webhook_attempts: Annotated[int, Field(ge=1, le=50)] = 8
    webhook_timeout_seconds: Seconds = 10.0
    webhook_first_delay_seconds: Seconds = 2.0
    key_refresh_seconds: Seconds = 2.0
