"""How a handler becomes a route: what it is given, what it answers, and how both are documented."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections import Counter
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from datetime import UTC, datetime
from functools import partial
from math import isfinite
from typing import Annotated, Any, Final, TypeAlias, TypeVar

from fastapi import Depends, FastAPI, Path, Query, Request
from pydantic import BaseModel, BeforeValidator
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from venire.errors import VenireError
from venire.operations import OPERATIONS
from venire.server.edge.blind import Blind, blind_for
from venire.server.edge.bodies import JSON, NDJSON, beside, read
from venire.server.edge.errors import RequestError, error_of
from venire.server.edge.guard import Caller, Gate, caller
from venire.server.settings import LONGEST_ID, STREAM_NAME
from venire.server.store.contents import is_large

#: Longer lists are written in a thread; this many take about a millisecond.
LONG: Final = 100

REF: Final = "#/components/schemas/{model}"

STATUSES: Final[Mapping[int, str]] = {
    400: "The request cannot be read.",
    401: "No key, or one that is unknown or revoked.",
    403: "The key's role may not do this.",
    404: "Not found.",
    408: "The body did not come in time.",
    409: "A conflict, or an invalid state for this; nothing was changed.",
    410: "It is in the archive, or was deleted; the message says where.",
    413: "The body or the batch is too large; nothing was accepted.",
    415: "Unsupported media type.",
    422: "The request is invalid; nothing was accepted.",
    429: "Too many requests, or too many waiting ones; see Retry-After.",
    500: "The server failed.",
    502: "The webhook did not answer.",
    503: "The store does not accept writes. Retry after Retry-After; nothing counts twice.",
}


class ErrorDetail(BaseModel):
    """An error: `code` for programs, `message` says what is wrong, `hint` what to do."""

    code: str
    message: str
    hint: str
    retryable: bool
    faults: list[dict[str, Any]] | None = None


class ErrorAnswer(BaseModel):
    """The shape of every error."""

    error: ErrorDetail


#: How an error is documented: by name, since FastAPI would make a validator of each mention, which
#: was most of the time that it took to make the application.
_ERROR: Final[Mapping[str, Any]] = {JSON: {"schema": {"$ref": REF.format(model="ErrorAnswer")}}}


def dumps(value: Any) -> bytes:
    """A value as JSON; dataclasses become objects, NaN and infinities null."""
    return json.dumps(plain(value), separators=(",", ":"), ensure_ascii=False).encode(
        errors="surrogatepass"
    )


def plain(value: Any) -> Any:
    """Dataclasses as objects, tuples as lists, NaN and infinity as None, all the way down."""
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    fields = getattr(type(value), "__dataclass_fields__", None)
    return value if fields is None else {name: plain(getattr(value, name)) for name in fields}


def json_answer(value: Any, status: int = 200) -> Response:
    return Response(dumps(value), status, media_type=JSON)


async def payload_answer(value: Any, payloads: Iterable[Any]) -> Response:
    """A JSON response with payloads in it; written in a thread if one of them is large."""
    if any(is_large(payload) for payload in payloads):
        return Response(await beside(lambda: dumps(value)), media_type=JSON)
    return json_answer(value)


async def long_answer(head: Mapping[str, Any], name: str, values: Sequence[Any]) -> Response:
    """A JSON response that ends with a list; a long one is written in a thread, in chunks.

    One long call of the JSON encoder would hold the GIL.
    """

    def write() -> bytes:
        pieces = (values[k : k + LONG] for k in range(0, len(values), LONG))
        listed = b",".join(dumps(piece)[1:-1] for piece in pieces)
        return b"%s,%s:[%s]}" % (dumps(head)[:-1], dumps(name), listed)

    content = write() if len(values) < LONG else await beside(write)
    return Response(content, media_type=JSON)


async def outcomes_answer(outcomes: Sequence[Any], *statuses: str, notes: bool = False) -> Response:
    """How many rows of a request had each outcome, and why some were refused.

    With `notes`, also what there is to say of rows that were taken.
    """

    def said(refused: bool) -> list[dict[str, Any]]:
        return [
            {"row": number, "code": outcome.code, "message": outcome.message}
            for number, outcome in enumerate(outcomes)
            if outcome.code is not None and (outcome.status == "refused") is refused
        ]

    def count() -> tuple[dict[str, Any], list[dict[str, Any]]]:
        counts = Counter(outcome.status for outcome in outcomes)
        head: dict[str, Any] = {status: counts[status] for status in statuses}
        return head | ({"notes": said(False)} if notes else {}), said(True)

    counts, refusals = count() if len(outcomes) < LONG else await beside(count)
    return await long_answer(counts, "refusals", refusals)


async def lines_answer(values: Sequence[Any], headers: Mapping[str, str]) -> Response:
    """A response of one JSON value per line, written in a thread if there are many."""

    def write() -> bytes:
        return b"".join(dumps(value) + b"\n" for value in values)

    content = write() if len(values) < LONG else await beside(write)
    return Response(content, headers=dict(headers), media_type=NDJSON)


def event(kind: str, value: Any, n: int | None = None) -> bytes:
    r"""A server-sent event.

    >>> event("exit", {"item": "a"}, 7)
    b'id: 7\nevent: exit\ndata: {"item":"a"}\n\n'
    """
    head = f"id: {n}\n" if n is not None else ""
    return f"{head}event: {kind}\ndata: ".encode() + dumps(value) + b"\n\n"


def says(
    statuses: Iterable[int] = (), ok: int = 200, text: str = "Done.", kind: str = JSON
) -> dict[int | str, dict[str, Any]]:
    """The documented responses of a route: its own statuses and those that all routes have."""
    done: dict[str, Any] = {"description": text}
    if kind != JSON:
        done["content"] = {kind: {"schema": {"type": "string"}}}
    documented: dict[int | str, dict[str, Any]] = {ok: done}
    for status in sorted({401, 403, 429, 500, 503, *statuses}):
        documented[status] = {"description": STATUSES[status], "content": _ERROR}
    return documented


HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}


def follow(gate: Gate, request: Request, events: AsyncIterator[bytes]) -> Response:
    """A response that streams events until they end, the server stops or the key is revoked."""
    gate.waiting.check(caller(request).key)
    return _Following(gate, request, events)


class _Following(StreamingResponse):
    """An event stream that counts as a waiting request while it is open."""

    def __init__(self, gate: Gate, request: Request, events: AsyncIterator[bytes]) -> None:
        kept_alive = _with_heartbeats(gate, request, events)
        super().__init__(kept_alive, media_type="text/event-stream", headers=HEADERS)
        self._gate, self._key = gate, caller(request).key

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._gate.waiting.one(self._key):
            await super().__call__(scope, receive, send)


async def _with_heartbeats(
    gate: Gate, request: Request, events: AsyncIterator[bytes]
) -> AsyncIterator[bytes]:
    """The events, with a comment after a silence; ends when the server stops or the key ends."""
    yield b": venire\n\n"
    stop = asyncio.ensure_future(gate.stopping.wait())
    entry: asyncio.Future[bytes] = asyncio.ensure_future(_next(events))
    try:
        while not stop.done():
            both: set[asyncio.Future[Any]] = {entry, stop}
            done, _ = await asyncio.wait(
                both,
                timeout=gate.settings.heartbeat,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if not gate.still_valid(request):
                break
            if entry in done:
                yield entry.result()
                entry = asyncio.ensure_future(_next(events))
            elif not done:
                yield b": heartbeat\n\n"
    except StopAsyncIteration:
        pass
    except VenireError as error:
        fault = error_of(error)
        yield event("error", {"code": fault.code, "message": fault.message})
    finally:
        stop.cancel()
        entry.cancel()


async def _next(events: AsyncIterator[bytes]) -> bytes:
    return await anext(events)


SLUG: Final = f"^{STREAM_NAME}$"
LONGEST_WAIT: Final = 3600

Stream: TypeAlias = Annotated[str, Path(description="The name of the stream.", pattern=SLUG)]
Item: TypeAlias = Annotated[
    str,
    Path(description="The id of the item.", max_length=LONGEST_ID, pattern=r"^[^\x00-\x1f\x7f]+$"),
]
Token: TypeAlias = Annotated[str, Path(description="The token of the assignment, from `next`.")]
Limit: TypeAlias = Annotated[int, Query(description="Maximum number of results.", ge=1, le=10_000)]
Level: TypeAlias = Annotated[
    float, Query(description="The probability with which each bound holds.", gt=0, lt=1)
]
Wait: TypeAlias = Annotated[
    float,
    Query(
        description="Seconds to wait (long poll); the server may answer sooner.",
        ge=0,
        le=LONGEST_WAIT,
        allow_inf_nan=False,
    ),
]


def _path_parameter(name: str, description: str, **schema: str) -> dict[str, Any]:
    return {
        "name": name,
        "in": "path",
        "required": True,
        "description": description,
        "schema": {"type": "string", **schema},
    }


#: How the parts of a path are documented where a handler reads them itself.
PATH_PARAMETERS: Final[Mapping[str, dict[str, Any]]] = {
    "stream": _path_parameter("stream", "The name of the stream.", pattern=SLUG),
    "token": _path_parameter("token", "The token of the assignment, from `next`."),
}


def flag(request: Request, name: str) -> bool:
    """A query parameter that is true or false, of a route that reads its request itself."""
    text = request.query_params.get(name, "false").lower()
    if text not in ("true", "false"):
        raise RequestError(422, "invalid", f"got {name}={text!r}", hint="expected true or false")
    return text == "true"


def flag_parameter(name: str, description: str) -> dict[str, Any]:
    """The documentation of a route with such a parameter, for `openapi_extra`."""
    schema = {"type": "boolean", "default": False}
    return {
        "parameters": [{"name": name, "in": "query", "description": description, "schema": schema}]
    }


def moment(value: Any) -> Any:
    """Seconds since 1970; None for an empty text, as forms send it.

    >>> moment("2001-09-09T01:46:40"), moment("1e9"), moment("")
    (1000000000.0, 1000000000.0, None)
    """
    if not isinstance(value, str):
        return value
    if not value.strip():
        return None
    try:
        seconds = float(value)
    except ValueError:
        pass
    else:
        if not isfinite(seconds):
            raise ValueError(f"got {value!r}, expected a time")
        return seconds
    try:
        read = datetime.fromisoformat(value.strip())
    except ValueError:
        raise ValueError(
            f"got {value!r}, expected seconds since 1970 or a time such as 2026-01-31T08:30"
        ) from None
    return (read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp()


_Moment: TypeAlias = Annotated[float | None, BeforeValidator(moment)]
Since: TypeAlias = Annotated[
    _Moment, Query(description="Only what arrived at this moment or later.")
]
Until: TypeAlias = Annotated[_Moment, Query(description="Only what arrived before this moment.")]


F = TypeVar("F", bound=Callable[..., Any])


class Part:
    """The handlers of one part of the API, behind a gate."""

    def __init__(self, gate: Gate) -> None:
        self._gate, self._service = gate, gate.service


class serves:  # noqa: N801  a decorator
    """Marks the handler of an operation, and says how that is served and documented.

    `own` are the statuses of its errors beyond those that follow from what it takes. `reply` and
    `body` are for handlers whose signature does not say them: those that return a response, or read
    the request themselves. `more` is for FastAPI.
    """

    def __init__(
        self,
        name: str,
        tag: str,
        *own: int,
        text: str = "Done.",
        ok: int = 200,
        kind: str = JSON,
        reply: Any = None,
        body: Any = None,
        lists: bool = False,
        example: Any = None,
        **more: Any,
    ) -> None:
        self.operation, self.tag, self.own, self.text = OPERATIONS[name], tag, own, text
        self.ok, self.kind, self.reply, self.body = ok, kind, reply, body
        self.lists, self.example, self.more = lists, example, more

    def __call__(self, handler: F) -> F:
        handler.served = self  # type: ignore[attr-defined]
        return handler

    def errors(self, signature: inspect.Signature, sends: bool) -> set[int]:
        """The statuses of its errors: what is named may not be there, what is sent be wrong."""
        names = "{" in self.operation.path
        asked = any(one.annotation not in _GIVEN for one in signature.parameters.values())
        found = {*self.own, *((404, 422) if names else ()), *((422,) if asked else ())}
        found |= {413, 415, 422} if sends else set()
        return found | ({408} if 413 in found else set())


def served_by(part: type[Part]) -> Iterator[tuple[str, serves]]:
    """The marked methods of a part, in the order in which they are written."""
    for name, method in vars(part).items():
        if isinstance(told := getattr(method, "served", None), serves):
            yield name, told


def bodies_of(part: type[Part]) -> Iterator[type]:
    """The models of the bodies that a part reads, for the document."""
    for name, told in served_by(part):
        model = told.body or _sent(inspect.signature(getattr(part, name), eval_str=True))[0]
        if isinstance(model, type):
            yield model


def add_handlers_of(part: Part, app: FastAPI) -> None:
    """Add the routes of a part."""
    for name, told in served_by(type(part)):
        operation, handler = told.operation, getattr(part, name)
        signature = inspect.signature(handler, eval_str=True)
        by_hand = getattr(handler, "by_hand", False)
        described = _described(told, *_sent(signature))
        if by_hand:
            named = [one for key, one in PATH_PARAMETERS.items() if f"{{{key}}}" in operation.path]
            described["parameters"] = [*named, *described.get("parameters", [])]
        how: dict[str, Any] = {} if told.kind == JSON else {"response_class": Response}
        errors = told.errors(signature, "requestBody" in described)
        answers = says(errors, told.ok, told.text, told.kind)
        if operation.roles is None:  # no key is checked, nothing is limited
            answers = {status: answers[status] for status in (told.ok, *told.own)}
        for status, more in told.more.get("responses", {}).items():
            answers[status] = {**answers.get(status, {}), **more}
        app.add_api_route(
            operation.path.replace("{item}", "{item:path}"),
            handler if by_hand else _endpoint(handler, signature, told.ok),
            methods=[operation.method],
            tags=[told.tag],
            status_code=None if told.ok == 200 else told.ok,
            response_model=told.reply or _reply(signature.return_annotation),
            responses=answers,
            openapi_extra=described or None,
            **how,
        )


#: What a handler is given without asking the client for it.
_GIVEN: Final = (Request, Caller, Blind)

_NO_MODEL: Final = (Any, None, type(None), inspect.Signature.empty)


def _reply(annotation: Any) -> Any:
    """The model of the reply, if the return type of a handler is one."""
    if annotation in _NO_MODEL or annotation is Response:
        return None
    return annotation


def _sent(signature: inspect.Signature) -> tuple[type[BaseModel] | None, bool]:
    """The model of the body, and whether it may be left out."""
    for one in signature.parameters.values():
        if _is_model(one.annotation):
            return one.annotation, one.default is not one.empty
    return None, False


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _described(told: serves, sent: type[BaseModel] | None, optional: bool) -> dict[str, Any]:
    """The body as it is documented."""
    described: dict[str, Any] = dict(told.more.get("openapi_extra", {}))
    model = told.body or sent
    if model is not None:
        schema = {"$ref": REF.format(model=model if isinstance(model, str) else model.__name__)}
        content: dict[str, Any] = {JSON: {"schema": schema}}
        if told.lists:
            listed = {"schema": {"type": "array", "items": schema}}
            content = {JSON: listed, NDJSON: {"schema": {"type": "string"}}}
        if told.example is not None:
            content[JSON]["example"] = told.example
        content |= described.pop("content", {})
        described["requestBody"] = {"required": not optional, "content": content}
    return described


def _endpoint(
    handler: Callable[..., Awaitable[Any]], signature: inspect.Signature, ok: int
) -> Callable[..., Awaitable[Response]]:
    """A handler as FastAPI takes it."""
    blinds = [one.name for one in signature.parameters.values() if one.annotation is Blind]

    async def endpoint(**values: Any) -> Response:
        for name in blinds:
            values[name] = await values[name](values["stream"])
        found = await handler(**values)
        return found if isinstance(found, Response) else json_answer(found, ok)

    given = [_injected(one) for one in signature.parameters.values()]
    endpoint.__signature__ = inspect.Signature(given)  # type: ignore[attr-defined]
    endpoint.__name__, endpoint.__doc__ = handler.__name__, handler.__doc__
    return endpoint


def _injected(one: inspect.Parameter) -> inspect.Parameter:
    """A parameter as FastAPI is to fill it."""
    one = one.replace(kind=inspect.Parameter.KEYWORD_ONLY)
    if one.annotation is Caller:
        return one.replace(annotation=Annotated[Caller, Depends(_sender)])
    if one.annotation is Blind:
        return one.replace(annotation=Annotated[Any, Depends(_unseen)])
    if not _is_model(one.annotation):
        return one
    reader = _reader(one.annotation, None if one.default is one.empty else one.default)
    return one.replace(annotation=Annotated[one.annotation, Depends(reader)], default=one.empty)


async def _sender(request: Request) -> Caller:
    """Who asks; a coroutine, since FastAPI runs other functions in threads."""
    return caller(request)


async def _unseen(request: Request) -> Callable[[str], Awaitable[Blind]]:
    """What who asks must not see of a stream: to be asked once all of the request is valid."""
    return partial(blind_for, request.app.state.gate.service, caller(request))


def _reader(model: type[BaseModel], default: BaseModel | None) -> Callable[..., Awaitable[Any]]:
    """What reads the body of a request; without one it is the default, if there is one."""

    async def sent(request: Request) -> BaseModel:
        if default is not None and not await request.body():
            return default
        return await read(request, model)

    return sent
