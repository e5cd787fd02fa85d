"""Request bodies: JSON or lines of JSON, validated against the documented schema.

Pydantic parses the bytes in strict mode: a string is not accepted as a number. The same models are
the schemas of the documentation, so what is documented is what is validated.
"""

from __future__ import annotations

import asyncio
import csv
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice, zip_longest
from typing import Annotated, Any, Final, Literal, NotRequired, TypeVar

from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, FailFast, Field, TypeAdapter, ValidationError
from pydantic_core import from_json, to_json
from starlette.datastructures import QueryParams
from starlette.requests import Request
from typing_extensions import TypedDict

from venire.model import LONGEST_RATIONALE, Budget, Role
from venire.server.edge.errors import MOST_FAULTS, RequestError, invalid
from venire.server.keys.invitations import MOST_DAYS
from venire.server.keys.keyring import MAX_DAYS
from venire.server.messages import ItemIn
from venire.server.settings import (
    LONGEST_ID,
    LONGEST_NOTE,
    STREAM_NAME,
    Name,
    StreamSettings,
    Weight,
)
from venire.whatif import Plan

#: How sure somebody is.
Confidence = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]

#: Why somebody says something; PostgreSQL keeps no text with NUL.
Rationale = Annotated[str, Field(max_length=LONGEST_RATIONALE, pattern=r"^[^\x00]*$")]

NDJSON: Final = "application/x-ndjson"
JSON: Final = "application/json"
CSV: Final = "text/csv"

#: Longer bodies are parsed in a thread; this many bytes take about a millisecond.
LONG_BODY: Final = 50_000

#: Commas and brackets in one JSON text: nobody is served while it is parsed, some tens of
#: milliseconds. Lines of JSON are parsed in pieces, so only each of them has this limit.
MOST_VALUES: Final = 200_000

#: Empty lines among lines of JSON; and faults of one text of which the first are looked up.
BLANK_LINES: Final = 100_000
MOST_BUILT: Final = 1_000

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
    """A label without a lease; a labeler's own key may omit the labeler.

    `confidence` is how sure the labeler is of it, `rationale` why it says so. If `said` is null, it
    is not sure of any class.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc] # pydantic's way

    item: Id
    labeler: NotRequired[Name]
    said: Name | None
    confidence: NotRequired[Confidence | None]
    rationale: NotRequired[Rationale | None]


class GoldBody(TypedDict):
    """Gold: what somebody who is trusted says of an item, one of the stream's classes."""

    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc] # pydantic's way

    item: Id
    label: Name


class SaidBody(BaseModel, extra="forbid"):
    """The label of an assigned item: one of the stream's classes.

    `seconds` is how long the labeler had it before its eyes, where that is less than since it was
    assigned; `confidence` is how sure it is, and `rationale` why it says so.
    """

    said: Name
    seconds: Annotated[float, Field(ge=0, le=10 * 365 * 86_400, allow_inf_nan=False)] | None = None
    confidence: Confidence | None = None
    rationale: Rationale | None = None


class NoteBody(BaseModel, extra="forbid"):
    """A comment on an assigned item, or a flag: something is wrong with the item itself."""

    kind: Literal["comment", "flag"]
    text: Annotated[str, Field(max_length=LONGEST_NOTE)] = ""


class ReleaseBody(BaseModel, extra="forbid"):
    """A release; with `bar` the item is not assigned to this labeler again."""

    bar: bool = False


class WebhookBody(BaseModel, extra="forbid"):
    """Where to send exits and revisions; as `text`, for Slack and others, alarms and revisions."""

    url: Annotated[str, Field(pattern=r"^https?://[^\s]+$", max_length=1900)]
    format: Literal["json", "text"] = "json"


class RedeliverBody(BaseModel, extra="forbid"):
    """Which dead letter to retry, by its exit or revision; all of them without either."""

    exit_n: Annotated[int, Field(ge=1, le=2**53)] | None = None
    revision_n: Annotated[int, Field(ge=1, le=2**53)] | None = None


class SecretBody(BaseModel, extra="forbid"):
    """How long the old secret signs as well: a day by default, 0 if it was leaked."""

    keep_seconds: Annotated[float, Field(ge=0, le=30 * 86_400)] = 86_400.0


class KeyBody(BaseModel, extra="forbid"):
    """A key to create; `labeler` is required for the role labeler, and only for that.

    It expires after `days`, or never.
    """

    name: Name
    role: Role
    labeler: Name | None = None
    days: Annotated[float, Field(gt=0, le=MAX_DAYS)] | None = None


class InvitationBody(BaseModel, extra="forbid"):
    """An invitation to label: for whom, if that is known, and for how many days its link works.

    With `once` it works one time.
    """

    labeler: Name | None = None
    days: Annotated[float, Field(gt=0, le=MOST_DAYS)] = 14.0
    once: bool = False


class ReviewBody(BaseModel, extra="forbid"):
    """A review: the class that the item is, and a note for the audit trail.

    With `correct`, gold that says otherwise is corrected; it is refused without.
    """

    item: Id
    label: Name
    note: Annotated[str, Field(max_length=2000)] | None = None
    correct: bool = False


class SendBackBody(BaseModel, extra="forbid"):
    """An item to send back for more labels.

    `min_confidence` is what its new verdict must reach; half of the doubt is to go without it.
    """

    item: Id
    min_confidence: Annotated[float, Field(gt=0, le=1)] | None = None
    note: Annotated[str, Field(max_length=2000)] | None = None


class LabelerBody(BaseModel, extra="forbid"):
    """A labeler, by its id."""

    labeler: Name


class RotateBody(BaseModel, extra="forbid"):
    """For how many hours the old key stays valid beside the new one."""

    overlap_hours: Annotated[float, Field(ge=0, le=24 * 365)] = 24.0


class PlanBody(BaseModel, extra="forbid"):
    """What to do otherwise; what is left out stays as it was.

    `without` are labelers who are left out, or the student. `money` or `labels` is the most to
    spend on the whole log: then items leave with the labels they have. Labels that the log does not
    hold are never asked for, unless `simulate_missing` lets them be drawn.
    """

    policy: Annotated[str, Field(min_length=1, max_length=100)] | None = None
    learning: Annotated[str, Field(min_length=1, max_length=100)] | None = None
    without: Annotated[list[Name], Field(max_length=10_000)] = []
    money: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    labels: Annotated[int, Field(ge=0, le=2**53)] | None = None
    min_confidence: Annotated[float, Field(gt=0, le=1)] | None = None
    max_labels: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = None
    simulate_missing: bool = False


def plan_of(wanted: PlanBody) -> Plan:
    """The plan of a body.

    >>> plan_of(PlanBody(policy="fixed-overlap:3", money=50)).budget.money
    50.0
    """
    budget = None
    if wanted.money is not None or wanted.labels is not None:
        budget = Budget(money=wanted.money, labels=wanted.labels)
    return Plan(
        wanted.policy,
        wanted.learning,
        frozenset(wanted.without),
        budget,
        wanted.min_confidence,
        wanted.max_labels,
    )


def planned(form: QueryParams) -> tuple[PlanBody | None, dict[str, str]]:
    """The plan of a form whose empty fields say nothing, and what is wrong, by field.

    >>> planned(QueryParams("policy=&max_labels=3&without=ann"))[0].max_labels
    3
    >>> planned(QueryParams("min_confidence=2"))[1]
    {'min_confidence': 'Input should be less than or equal to 1'}
    """
    given: dict[str, Any] = {name: form[name] for name in PlanBody.model_fields if form.get(name)}
    if "without" in given:
        given["without"] = [name for name in form.getlist("without") if name]
    try:
        return PlanBody.model_validate(given), {}
    except ValidationError as error:
        return None, {str(fault["loc"][0]): fault["msg"] for fault in error.errors()}


_ROWS: Final[dict[Any, TypeAdapter[Any]]] = {
    model: TypeAdapter(model) for model in (ItemBody, LabelBody, GoldBody)
}
#: The same as lists, of which nothing is looked at behind the first fault.
_LISTS: Final[dict[Any, TypeAdapter[Any]]] = {
    ItemBody: TypeAdapter(Annotated[list[ItemBody], FailFast()]),
    LabelBody: TypeAdapter(Annotated[list[LabelBody], FailFast()]),
    GoldBody: TypeAdapter(Annotated[list[GoldBody], FailFast()]),
}
_OBJECT: Final = TypeAdapter(dict[str, Any])


async def read(request: Request, model: type[M]) -> M:
    media_type(request, (JSON,))
    body = await request.body()
    _check_values(body)
    return await _aside(body, lambda: parsed(model, body))


async def _aside(body: bytes, work: Callable[[], T]) -> T:
    """What a function makes of the body; of a long one in a thread, while others are served."""
    return work() if len(body) < LONG_BODY else await beside(work)


def parsed(model: type[M], body: bytes) -> M:
    """The model of a JSON text."""
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
    media_type(request, (JSON,))
    body = await request.body()
    _check_values(body)

    def parsed() -> dict[str, Any]:
        found: dict[str, Any] = whole(_OBJECT.validate_json(body, strict=True))
        return found

    try:
        return await _aside(body, parsed)
    except ValidationError as error:
        raise refused(error) from error


async def read_list(
    request: Request, model: Any, most: int, made: Callable[[int, Any], T], *also: str
) -> list[T]:
    """The body as a list of items or labels: a JSON list, or one per line.

    `made` converts each, given its number. A long body is parsed in a thread, so that others are
    served meanwhile. With the media types `also` (CSV) a body may be that, or one object.
    """
    kind = media_type(request, (JSON, NDJSON, *also))
    body = await request.body()
    if also and kind == JSON and body.lstrip()[:1] == b"{":
        body = b"[" + body + b"]"
    parse = {NDJSON: _of_lines, CSV: _of_csv}.get(kind, _of_list)

    def read() -> list[T]:
        return [made(n, row) for n, row in enumerate(parse(body, model, most))]

    return await _aside(body, read)


def _of_list(body: bytes, model: Any, most: int) -> list[Any]:
    """The rows of a JSON list; what is wrong is looked for row by row, and only up to ten."""
    _check_values(body)
    try:
        rows: list[Any] = _LISTS[model].validate_json(body, strict=True)
    except ValidationError as error:
        if error.errors(include_input=False)[0]["loc"] == ():
            raise refused(error) from error  # no list, or no JSON
        found = from_json(body)
        _check_rows(len(found), most)
        return _validated(model, enumerate(found), lambda n: (n,))
    _check_rows(len(rows), most)
    return rows


def _of_lines(body: bytes, model: Any, most: int) -> list[Any]:
    r"""The rows of lines of JSON, some thousand bytes at a time.

    >>> _of_lines(b'{"id": "a"}\n\n{"id": 5}', ItemBody, 10)
    Traceback (most recent call last):
    venire...RequestError: invalid request: body.line 3.id: Input should be a valid string
    """
    _check_rows(max(body.count(b"\n"), body.count(b"\r")), most + BLANK_LINES)
    lines = [(n, line) for n, line in enumerate(body.splitlines(), 1) if line.strip()]
    _check_rows(len(lines), most)
    rows: list[Any] = []
    for piece in _pieces(lines):
        joined = b"[" + b",".join(line for _, line in piece) + b"]"
        _check_values(joined)
        try:
            found: list[Any] = _LISTS[model].validate_json(joined, strict=True)
        except ValidationError:
            found = []
        if len(found) != len(piece):
            return _validated(model, ((n, line) for n, line in lines), lambda n: (f"line {n}",))
        rows += found
    return rows


def _pieces(lines: Sequence[tuple[int, bytes]]) -> Iterator[list[tuple[int, bytes]]]:
    """The lines in pieces that take a few milliseconds to parse."""
    piece: list[tuple[int, bytes]] = []
    size = 0
    for line in lines:
        piece.append(line)
        size += len(line[1])
        if size > LONG_BODY:
            yield piece
            piece, size = [], 0
    yield piece


def _of_csv(body: bytes, model: Any, most: int) -> list[Any]:
    r"""The rows of CSV with a header, as many as are allowed.

    >>> _of_csv(b"item,label\r\npost-1,ok\r\n", GoldBody, 10)
    [{'item': 'post-1', 'label': 'ok'}]

    Items may be in a column `task`, as in exports.

    >>> _of_csv(b"task,label\r\npost-1,ok\r\n", GoldBody, 10)
    [{'item': 'post-1', 'label': 'ok'}]
    """
    try:
        lines = csv.reader(io.StringIO(body.decode("utf-8-sig"), newline=""), strict=True)
        header = next(lines, [])
        if "item" not in header:
            header = ["item" if name == "task" else name for name in header]
        if not set(header) <= set(model.__annotations__) or len(header) > len(set(header)):
            raise RequestError(
                422,
                "invalid",
                f"got CSV with the header {','.join(header)[:100]!r}",
                hint=f"expected {','.join(model.__annotations__)}",
            )
        rows = list(islice((line for line in lines if line), most + 1))
    except (UnicodeDecodeError, csv.Error) as error:
        raise RequestError(
            422, "invalid", f"this is not CSV in UTF-8: {error}", hint="send item,label"
        ) from None
    _check_rows(len(rows), most)
    named = (dict(zip_longest(header, row[: len(header) + 1])) for row in rows)
    return _validated(model, enumerate(named), lambda n: (n,))


def _validated(
    model: Any, rows: Iterable[tuple[int, Any]], where: Callable[[int], tuple[Any, ...]]
) -> list[Any]:
    """The rows, one after the other; stops at the tenth that is wrong and raises what is."""
    found: list[Any] = []
    faults: list[dict[str, Any]] = []
    for number, row in rows:
        if isinstance(row, bytes):
            _check_values(row)
        try:
            value = from_json(row) if isinstance(row, bytes) else row
            found.append(_ROWS[model].validate_python(value, strict=True))
        except ValidationError as error:
            faults += faults_of(error, ("body", *where(number)))
        except ValueError as error:
            message = str(error).replace("at line 1 column", "at column")
            place = ("body", *where(number))
            faults.append({"type": "json_invalid", "loc": place, "msg": f"Invalid JSON: {message}"})
        if len(faults) >= MOST_FAULTS:
            break
    if faults:
        raise invalid(RequestValidationError(faults[:MOST_FAULTS]))
    return found


def _check_rows(rows: int, most: int) -> None:
    if rows > most:
        raise RequestError(
            413,
            "batch_too_large",
            f"got {rows:,} in one request, expected at most {most:,}",
            hint="send them in several requests; nothing in this one was accepted",
        )


def _check_values(body: bytes) -> None:
    """Refuse what would take long to parse: each comma or bracket may begin another value.

    >>> _check_values(b"[" * 300_000)
    Traceback (most recent call last):
    venire.server.edge.errors.RequestError: got 300,000 commas and brackets in one JSON text, ...
    """
    if len(body) <= MOST_VALUES:
        return
    values = body.count(b",") + body.count(b"[") + body.count(b"{")
    if values > MOST_VALUES:
        raise RequestError(
            413,
            "too_many_values",
            f"got {values:,} commas and brackets in one JSON text, expected at most "
            f"{MOST_VALUES:,}",
            hint=f"send less in one request, or one per line ({NDJSON})",
        )


def faults_of(error: ValidationError, where: tuple[Any, ...] = ("body",)) -> list[dict[str, Any]]:
    """What is wrong, at most ten; if it is very much, only how much."""
    count = error.error_count()
    if count > MOST_BUILT:
        return [{"type": "many", "loc": where, "msg": f"{count:,} faults, too many to list"}]
    found = error.errors(include_url=False, include_context=False, include_input=False)
    return [{**fault, "loc": (*where, *fault["loc"])} for fault in found[:MOST_FAULTS]]


def refused(error: ValidationError) -> RequestError:
    return invalid(RequestValidationError(faults_of(error)))


def media_type(request: Request, known: tuple[str, ...]) -> str:
    """The type of the body, if it is one of those that are known."""
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


Read = TypeVar("Read")

_THREAD: Final = ThreadPoolExecutor(1, "venire-json")


async def beside(work: Callable[[], Read]) -> Read:
    """What the function returns, after those that came before it.

    >>> asyncio.run(beside(lambda: sum(range(5))))
    10
    """
    return await asyncio.get_running_loop().run_in_executor(_THREAD, work)
