"""Responses: JSON, lines of JSON, server-sent events; and their documentation."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Any, Final

from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from venire.errors import VenireError
from venire.server.edge.bodies import JSON, NDJSON, beside
from venire.server.edge.errors import error_of
from venire.server.edge.guard import Gate, caller
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
    """A JSON response."""
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
    *statuses: int, ok: int = 200, text: str = "Done.", kind: str = JSON, **headers: str
) -> dict[int | str, dict[str, Any]]:
    """The documented responses of a route: its own statuses and those that all routes have."""
    documented: dict[int | str, dict[str, Any]] = {
        status: {"description": STATUSES[status], "content": _ERROR}
        for status in sorted(
            {401, 403, 429, 500, 503, *statuses, *([408] if 413 in statuses else ())}
        )
    }
    done: dict[str, Any] = {"description": text}
    if kind != JSON:
        done["content"] = {kind: {"schema": {"type": "string"}}}
    if headers:
        done["headers"] = {
            name.replace("_", "-").title(): {"description": text, "schema": {"type": "string"}}
            for name, text in headers.items()
        }
    return {ok: done, **documented}


def body(model: str, *, lists: bool = False, example: Any = None) -> dict[str, Any]:
    """The documented request body of a route."""
    schema: dict[str, Any] = {"$ref": REF.format(model=model)}
    if not lists:
        content: dict[str, Any] = {JSON: {"schema": schema}}
    else:
        content = {
            JSON: {"schema": {"type": "array", "items": schema}},
            NDJSON: {"schema": {"type": "string"}},
        }
    if example is not None:
        content[JSON]["example"] = example
    return {"requestBody": {"required": True, "content": content}}


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
