"""One shape for every error response.

    {"error": {"code": "not_found", "message": "…", "hint": "…", "retryable": false}}

`code` is for programs and stable, `message` says what is wrong, `hint` what to do, and `retryable`
whether the same request may succeed later; then there is also a Retry-After header.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, Final

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Match

from venire import errors
from venire.errors import VenireError

RETRYABLE = frozenset({429, 503})

#: How many of the faults of a request are listed.
MOST_FAULTS = 10

#: Hints for things that are not found and whose ids the server chooses.
_HINTS = {
    "assignment": "use the token that `next` returned; /held issues new ones",
    "key": "use the id of the key, as /v1/keys lists it",
    "invitation": "use the id of the invitation, as /invitations lists it",
    "webhook": "use the id of the webhook, as /webhooks lists it",
    "dead delivery": "use the exit_n or revision_n of a message that /dead lists",
}


#: Status, code and hint of each kind of error of the service; the first that it is counts.
#: How long to wait is not said here: it is the `retry_after` of any error that has one.
_KINDS: Final[tuple[tuple[type[VenireError], int, str, str], ...]] = (
    (errors.NotFound, 404, "not_found", ""),
    (errors.Archived, 410, "archived", "see docs/history.md"),
    (errors.TooMuch, 413, "too_much", "send less in one request"),
    (errors.StreamElsewhere, 503, "elsewhere", "retry: the stream moves to another server"),
    (errors.StreamLoading, 503, "loading", "retry: nothing was done"),
    (errors.StoreDown, 503, "store_down", "retry: what was done already counts once"),
    (errors.StreamDown, 503, "stream_down", "the other streams are served; run venire verify"),
    (errors.Conflict, 409, "conflict", "nothing was changed"),
    (errors.StateError, 409, "invalid_state", "check its current state"),
    (errors.InputError, 422, "invalid", "nothing in this request was accepted"),
    (errors.FetchError, 502, "no_answer", "check the address"),
)


class RequestError(VenireError):
    """A request that cannot be served, with the status and code of the response.

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
        """`details` are further fields of the error; `allow` the methods of the path."""
        super().__init__(message)
        self.status, self.code, self.message, self.hint = status, code, message, hint
        self.retry_after, self.details, self.allow = retry_after, dict(details or {}), allow


def error_response(error: RequestError) -> Response:
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
    """An error of the service as an error response.

    >>> error_of(errors.NotFound("stream", "posts")).status
    404
    """
    if isinstance(error, RequestError):
        return error
    after = 60.0 if isinstance(error, errors.StreamDown) else getattr(error, "retry_after", None)
    if isinstance(error, errors.TooMuch) and after is not None:
        return RequestError(429, "too_much", str(error), hint="retry later", retry_after=after)
    for kind, status, code, hint in _KINDS:
        if isinstance(error, kind):
            if isinstance(error, errors.NotFound):
                hint = _HINTS.get(error.kind, f"check the name of the {error.kind}")
            return RequestError(status, code, str(error), hint=hint, retry_after=after)
    return internal_error(error)


def internal_error(error: BaseException) -> RequestError:
    """An internal error: logged in full, reported without details."""
    structlog.get_logger("venire").error("internal error", exc_info=error)
    return RequestError(
        500, "internal", "internal server error", hint="see the server's log; it is safe to retry"
    )


def add_handlers(app: FastAPI) -> None:
    """Give errors outside of routes, and those of FastAPI itself, the same shape."""

    async def on_http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        if isinstance(error.__cause__, RequestError):
            return error_response(error.__cause__)
        answer: Response = request.app.state.gate.respond(request, _of_http(request, error))
        return answer

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
    """The error for a request that FastAPI rejects; lists some of the faults."""
    faults = [
        {"where": ".".join(str(part) for part in fault["loc"]), "message": _message(fault)}
        for fault in list(error.errors())[:MOST_FAULTS]
    ]
    first = f"{faults[0]['where']}: {faults[0]['message']}" if faults else "it cannot be parsed"
    return RequestError(
        422,
        "invalid",
        f"invalid request: {first}",
        hint="the documentation is at /docs",
        details={"faults": faults},
    )


def _message(fault: Mapping[str, Any]) -> str:
    """What is wrong, without Python's terms."""
    if fault.get("type") == "extra_forbidden":
        return "unknown field"
    message = str(fault["msg"]).removeprefix("Value error, ")
    return message.replace("Tuple should", "List should").replace(" after validation", "")


def _methods(request: Request) -> str:
    """The methods of the path, over all routes."""
    found: set[str] = set()
    for route in request.app.routes:
        if route.matches(request.scope)[0] is not Match.NONE:
            found |= getattr(route, "methods", None) or set()
    return ", ".join(sorted(found))


def _of_http(request: Request, error: HTTPException) -> RequestError:
    """An error of the framework: an unknown path, an unsupported method, bad JSON."""
    path = request.url.path
    if error.status_code == 404:
        return RequestError(404, "not_found", f"there is nothing at {path}", hint="see /docs")
    if error.status_code == 405:
        allow = _methods(request)
        return RequestError(
            405,
            "method_not_allowed",
            f"{path} does not support {request.method}",
            hint=f"it supports {allow}",
            allow=allow,
        )
    return RequestError(error.status_code, "bad_request", str(error.detail), hint="see /docs")
