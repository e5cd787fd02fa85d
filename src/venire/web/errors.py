"""One shape for every error that the server answers with.

    {"error": {"code": "not_found", "message": "…", "hint": "…", "retryable": false}}

`code` is for programs and does not change, `message` says what was wrong, `hint` what to do, and
`retryable` whether the same request may succeed later; then there is also a Retry-After header.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Match

from venire import errors
from venire.errors import VenireError

__all__ = ["RequestError", "add_handlers", "error_of", "error_response"]

RETRYABLE = frozenset({429, 503})

#: What to do about things that are not there and that have no name of one's own choice.
_LOOK = {
    "assignment": "use the token that `next` gave; /held gives new ones",
    "key": "use the id of the key, as /v1/keys lists it",
    "webhook": "use the id of the webhook, as /webhooks lists it",
    "dead delivery": "use the exit_n of a message that /dead lists",
}


class RequestError(VenireError):
    """A request that cannot be served, with the status and the code of the answer.

    >>> RequestError(404, "not_found", "no stream 'posts'").status
    404
    """

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        hint: str = "",
        retry_after: float | None = None,
        details: Mapping[str, Any] | None = None,
        allow: str | None = None,
    ) -> None:
        """`details` are further fields of the error; `allow` the methods that a path has."""
        super().__init__(message)
        self.status, self.code, self.message, self.hint = status, code, message, hint
        self.retry_after, self.details, self.allow = retry_after, dict(details or {}), allow


def error_response(error: RequestError) -> Response:
    """The error as an answer."""
    body = {
        "code": error.code,
        "message": error.message,
        "hint": error.hint,
        "retryable": error.status in RETRYABLE,
        **error.details,
    }
    headers = {"cache-control": "no-store"}
    if error.status in RETRYABLE:
        headers["retry-after"] = str(max(1, math.ceil(error.retry_after or 1.0)))
    if error.status == 401:
        headers["www-authenticate"] = 'Bearer realm="venire"'
    if error.allow:
        headers["allow"] = error.allow
    return Response(json.dumps({"error": body}).encode(), error.status, headers, "application/json")


def error_of(error: VenireError) -> RequestError:
    """What the service raised, as an answer.

    >>> error_of(errors.NotFound("stream", "posts")).status
    404
    """
    message = str(error)
    match error:
        case RequestError():
            return error
        case errors.NotFound(kind=kind):
            hint = _LOOK.get(kind, f"look at the name of the {kind}")
            return RequestError(404, "not_found", message, hint=hint)
        case errors.TooMuch(retry_after=None):
            return RequestError(413, "too_much", message, hint="send less at a time")
        case errors.TooMuch(retry_after=seconds):
            return RequestError(
                429, "too_much", message, hint="wait and try again", retry_after=seconds
            )
        case errors.StoreDown(retry_after=seconds):
            return RequestError(
                503,
                "store_down",
                message,
                hint="send it again: what was done of it already counts once",
                retry_after=seconds,
            )
        case errors.StreamDown():
            hint = "the other streams are served; look at it with venire verify"
            return RequestError(503, "stream_down", message, hint=hint, retry_after=60.0)
        case errors.Conflict():
            return RequestError(409, "conflict", message, hint="what is there was not changed")
        case errors.StateError():
            return RequestError(409, "out_of_turn", message, hint="look at what it is now")
        case errors.InputError():
            return RequestError(422, "invalid", message, hint="nothing of this request was taken")
        case errors.FetchError():
            return RequestError(502, "no_answer", message, hint="look at the address")
    return internal_error(error)


def internal_error(error: BaseException) -> RequestError:
    """A fault of the server: logged whole, told without particulars."""
    structlog.get_logger("venire").error("internal error", exc_info=error)
    return RequestError(
        500, "internal", "the server failed", hint="its log says why; it is safe to try again"
    )


def add_handlers(app: FastAPI) -> None:
    """Errors outside of routes, and those of FastAPI itself, in the one shape."""

    async def on_http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        if isinstance(error.__cause__, RequestError):
            return error_response(error.__cause__)
        told: Response = request.app.state.gate.told(request, _of_http(request, error))
        return told

    async def on_invalid(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        return error_response(invalid(error))

    async def on_venire(request: Request, error: Exception) -> Response:
        assert isinstance(error, VenireError)
        return error_response(error_of(error))

    async def on_fault(request: Request, error: Exception) -> Response:
        return error_response(internal_error(error))

    app.add_exception_handler(HTTPException, on_http)
    app.add_exception_handler(RequestValidationError, on_invalid)
    app.add_exception_handler(VenireError, on_venire)
    app.add_exception_handler(Exception, on_fault)


def invalid(error: RequestValidationError) -> RequestError:
    """What FastAPI found wrong with a request; at most ten faults are told."""
    faults = [
        {"where": ".".join(str(part) for part in fault["loc"]), "message": _told(fault)}
        for fault in error.errors()
    ]
    first = f"{faults[0]['where']}: {faults[0]['message']}" if faults else "it cannot be read"
    return RequestError(
        422,
        "invalid",
        f"the request is not as expected: {first}",
        hint="the documentation is at /docs",
        details={"faults": faults[:10]},
    )


def _told(fault: Mapping[str, Any]) -> str:
    """What is wrong, in words that need no knowledge of Python."""
    if fault.get("type") == "extra_forbidden":
        return "there is no such field"
    message = str(fault["msg"]).removeprefix("Value error, ")
    return message.replace("Tuple should", "List should").replace(" after validation", "")


def _methods(request: Request) -> str:
    """The methods that the path has, of whichever routes."""
    found: set[str] = set()
    for route in request.app.routes:
        if route.matches(request.scope)[0] is not Match.NONE:
            found |= getattr(route, "methods", None) or set()
    return ", ".join(sorted(found))


def _of_http(request: Request, error: HTTPException) -> RequestError:
    """An error of the framework: an unknown path, a method that it does not have, bad JSON."""
    path = request.url.path
    if error.status_code == 404:
        return RequestError(404, "not_found", f"there is nothing at {path}", hint="see /docs")
    if error.status_code == 405:
        allow = _methods(request)
        return RequestError(
            405,
            "method_not_allowed",
            f"{path} has no {request.method}",
            hint=f"it has {allow}",
            allow=allow,
        )
    return RequestError(error.status_code, "bad_request", str(error.detail), hint="see /docs")
