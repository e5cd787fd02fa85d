"""Request bodies: JSON or lines of JSON, validated against the documented schema.

Pydantic parses the bytes in strict mode: a string is not accepted as a number. The same models are
the schemas of the documentation, so what is documented is what is validated.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Final, Literal, NotRequired, TypeVar

from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic_core import from_json, to_json
from starlette.requests import Request
from typing_extensions import TypedDict

from venire.model import Role
from venire.service.keys.keyring import MAX_DAYS
from venire.service.messages import ItemIn
from venire.service.settings import LONGEST_ID, STREAM_NAME, Member, Name, StreamSettings, Weight
from venire.service.verbs.notes import LONGEST_NOTE
from venire.web.beside import beside
from venire.web.errors import RequestError, invalid
from venire.web.plans import PlanBody

__all__ = [
    "BODIES",
    "NDJSON",
    "GoldBody",
    "ItemBody",
    "KeyBody",
    "LabelBody",
    "LabelerBody",
    "NewStream",
    "NoteBody",
    "RedeliverBody",
    "ReleaseBody",
    "ReviewBody",
    "RotateBody",
    "SaidBody",
    "SecretBody",
    "SendBackBody",
    "SlugName",
    "WebhookBody",
    "item_of",
    "read",
    "read_list",
]

NDJSON: Final = "application/x-ndjson"
JSON: Final = "application/json"

#: Longer lists, in bytes, are parsed in a thread; this many take about a millisecond.
LONG_BODY: Final = 50_000

#: A name that can be part of a path.
SlugName = Annotated[str, Field(pattern=f"^{STREAM_NAME}$")]
Id = Annotated[str, Field(min_length=1, max_length=LONGEST_ID, pattern=r"^[^\x00-\x1f\x7f]+$")]

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")


class NewStream(StreamSettings):
    """A stream to create: its name and its settings."""

    name: SlugName


class ItemBody(TypedDict):
    """An item: `payload` is any JSON, passed on to the labelers and never inspected.

    What the labelling page shows of it is a setting of the stream, or follows from its shape.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc] # pydantic's way

    id: Id
    payload: NotRequired[Any]
    weight: NotRequired[Weight | None]
    eligible: NotRequired[Annotated[list[Name], Field(max_length=10_000)] | None]
    excluded: NotRequired[Annotated[list[Name], Field(max_length=10_000)]]
    min_confidence: NotRequired[Annotated[float, Field(gt=0, le=1)] | None]


def item_of(row: ItemBody) -> ItemIn:
    """An item as the service takes it.

    >>> item_of({"id": "post-1", "payload": "Buy now!"})
    ItemIn(id='post-1', payload='Buy now!', weight=None, eligible=None, excluded=(), ...)
    """
    eligible = row.get("eligible")
    only = None if eligible is None else tuple(eligible)
    return ItemIn(
        row["id"],
        row.get("payload"),
        row.get("weight"),
        only,
        tuple(row.get("excluded", ())),
        row.get("min_confidence"),
    )


class LabelBody(TypedDict):
    """A label without a lease; a labeler's own key may omit the labeler."""

    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc] # pydantic's way

    item: Id
    labeler: NotRequired[Name]
    said: Name


class GoldBody(TypedDict):
    """Gold: what somebody who is trusted says of an item, one of the stream's classes."""

    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc] # pydantic's way

    item: Id
    label: Name


class SaidBody(BaseModel):
    """The label of an assigned item: one of the stream's classes.

    `seconds` is how long the labeler had it before its eyes, where that is less than since it was
    assigned.
    """

    model_config = ConfigDict(extra="forbid")

    said: Name
    seconds: Annotated[float, Field(ge=0, le=10 * 365 * 86_400, allow_inf_nan=False)] | None = None


class NoteBody(BaseModel):
    """A comment on an assigned item, or a flag: something is wrong with the item itself."""

    model_config = ConfigDict(extra="forbid")

    kind: Literal["comment", "flag"]
    text: Annotated[str, Field(max_length=LONGEST_NOTE)] = ""


class ReleaseBody(BaseModel):
    """A release; with `bar` the item is not assigned to this labeler again."""

    model_config = ConfigDict(extra="forbid")

    bar: bool = False


class WebhookBody(BaseModel):
    """Where to send exits and revisions."""

    model_config = ConfigDict(extra="forbid")

    url: Annotated[str, Field(pattern=r"^https?://[^\s]+$", max_length=2000)]


class RedeliverBody(BaseModel):
    """Which dead letter to retry, by its exit or revision; all of them without either."""

    model_config = ConfigDict(extra="forbid")

    exit_n: Annotated[int, Field(ge=1, le=2**53)] | None = None
    revision_n: Annotated[int, Field(ge=1, le=2**53)] | None = None


class SecretBody(BaseModel):
    """How long the old secret signs as well: a day by default, 0 if it was leaked."""

    model_config = ConfigDict(extra="forbid")

    keep_seconds: Annotated[float, Field(ge=0, le=30 * 86_400)] = 86_400.0


class KeyBody(BaseModel):
    """A key to create; `labeler` is required for the role labeler, and only for that.

    It expires after `days`, or never.
    """

    model_config = ConfigDict(extra="forbid")

    name: Name
    role: Role
    labeler: Name | None = None
    days: Annotated[float, Field(gt=0, le=MAX_DAYS)] | None = None


class ReviewBody(BaseModel):
    """A review: the class that the item is, and a note for the audit trail."""

    model_config = ConfigDict(extra="forbid")

    item: Id
    label: Name
    note: Annotated[str, Field(max_length=2000)] | None = None


class SendBackBody(BaseModel):
    """An item to send back for more labels.

    `min_confidence` is what its new verdict must reach; half of the doubt is to go without it.
    """

    model_config = ConfigDict(extra="forbid")

    item: Id
    min_confidence: Annotated[float, Field(gt=0, le=1)] | None = None
    note: Annotated[str, Field(max_length=2000)] | None = None


class LabelerBody(BaseModel):
    """A labeler, by its id."""

    model_config = ConfigDict(extra="forbid")

    labeler: Name


class RotateBody(BaseModel):
    """For how many hours the old key stays valid beside the new one."""

    model_config = ConfigDict(extra="forbid")

    overlap_hours: Annotated[float, Field(ge=0, le=24 * 365)] = 24.0


#: All request bodies, for the documentation.
BODIES: Final[tuple[Any, ...]] = (
    NewStream,
    ItemBody,
    LabelBody,
    GoldBody,
    SaidBody,
    NoteBody,
    ReleaseBody,
    WebhookBody,
    RedeliverBody,
    SecretBody,
    KeyBody,
    RotateBody,
    ReviewBody,
    SendBackBody,
    LabelerBody,
    Member,
    PlanBody,
)

_ITEMS: Final = TypeAdapter(list[ItemBody])
_LABELS: Final = TypeAdapter(list[LabelBody])
_GOLD: Final = TypeAdapter(list[GoldBody])
_ADAPTERS: Final[dict[Any, TypeAdapter[Any]]] = {
    ItemBody: _ITEMS,
    LabelBody: _LABELS,
    GoldBody: _GOLD,
}
_OBJECT: Final = TypeAdapter(dict[str, Any])


async def read(request: Request, model: type[M]) -> M:
    """The body as a model."""
    _check_type(request, (JSON,))
    body = await request.body()
    try:
        return model.model_validate_json(body, strict=True)
    except ValidationError as error:
        return again(model, body, error)


def again(model: type[M], body: bytes, error: ValidationError) -> M:
    """Parse the body with 5.0 as 5, which JSON does not distinguish; else raise the first error.

    >>> whole({"exit_n": 5.0, "weight": 0.5})
    {'exit_n': 5, 'weight': 0.5}
    """
    try:
        return model.model_validate_json(to_json(whole(from_json(body))), strict=True)
    except ValueError:
        raise refused(error) from error


def whole(value: Any) -> Any:
    """The value with integral floats as integers, recursively."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {name: whole(inner) for name, inner in value.items()}
    return [whole(inner) for inner in value] if isinstance(value, list) else value


async def read_object(request: Request) -> dict[str, Any]:
    """The body as a JSON object, with any fields."""
    _check_type(request, (JSON,))
    try:
        found: dict[str, Any] = whole(_OBJECT.validate_json(await request.body(), strict=True))
        return found
    except ValidationError as error:
        raise refused(error) from error


async def read_list(
    request: Request,
    model: Any,
    most: int,
    made: Callable[[int, Any], T],
    converted: bytes | None = None,
) -> list[T]:
    """The body as a list of items or labels: a JSON list, or one per line.

    `made` converts each, given its number. A long body is parsed in a thread, so that others are
    served meanwhile. `converted` is the body as JSON, where it was sent as something else too.
    """
    known = (JSON, NDJSON) if converted is None else (JSON, NDJSON, "text/csv")
    lines = _check_type(request, known) == NDJSON
    body = await request.body() if converted is None else converted

    def read() -> list[T]:
        return [made(n, row) for n, row in enumerate(_rows(body, lines, model, most))]

    return read() if len(body) < LONG_BODY else await beside(read)


def _rows(sent: bytes, lines: bool, model: Any, most: int) -> list[Any]:
    body = sent
    if lines:
        body = b"[" + b",".join(line for line in body.splitlines() if line.strip()) + b"]"
    try:
        rows: list[Any] = _ADAPTERS[model].validate_json(body, strict=True)
    except ValidationError as error:
        faults = _line_faults(sent, model) if lines else []
        raise (invalid(RequestValidationError(faults)) if faults else refused(error)) from error
    if len(rows) > most:
        raise RequestError(
            413,
            "batch_too_large",
            f"got {len(rows):,} in one request, expected at most {most:,}",
            hint="send them in several requests; nothing in this one was accepted",
        )
    return rows


def _line_faults(sent: bytes, model: Any) -> list[dict[str, Any]]:
    r"""The errors in lines of JSON, by line; at most about ten.

    >>> [fault["loc"] for fault in _line_faults(b'{"id": "a"}\n\n{"id": 5}', ItemBody)]
    [('body', 'line 3', 'id')]
    """
    faults: list[dict[str, Any]] = []
    for number, line in enumerate(sent.splitlines(), 1):
        where = ("body", f"line {number}")
        if not line.strip() or len(faults) >= 10:
            continue
        try:
            from_json(line)
            _ADAPTERS[model].validate_json(b"[" + line + b"]", strict=True)
        except ValidationError as error:
            found = error.errors(include_url=False, include_context=False, include_input=False)
            faults += [{**fault, "loc": (*where, *fault["loc"][1:])} for fault in found]
        except ValueError as error:
            message = str(error).replace("at line 1 column", "at column")
            faults.append({"type": "json_invalid", "loc": where, "msg": f"Invalid JSON: {message}"})
    return faults


def refused(error: ValidationError) -> RequestError:
    """The error for an invalid body."""
    faults = [
        {**fault, "loc": ("body", *fault["loc"])}
        for fault in error.errors(include_url=False, include_context=False, include_input=False)
    ]
    return invalid(RequestValidationError(faults))


def _check_type(request: Request, known: tuple[str, ...]) -> str:
    coding = request.headers.get("content-encoding", "identity").lower()
    if coding != "identity":
        raise RequestError(
            415,
            "unsupported_media_type",
            f"got a body with the content encoding {coding!r}",
            hint="send it unencoded, in several requests if it is long",
        )
    header = request.headers.get("content-type", JSON)
    kind = header.partition(";")[0].strip().lower()
    if kind not in known:
        raise RequestError(
            415,
            "unsupported_media_type",
            f"got a body of type {kind!r}",
            hint=f"send {' or '.join(known)}",
        )
    return kind
