"""Handlers of operations: an entry of `venire.operations`, and the code that serves it.

A handler is a method marked with `serves`. FastAPI reads its path and query parameters; a parameter
that is a pydantic model is the body, a parameter of the type `Caller` is who asks, and the return
type is the reply, written as JSON.

Bodies are read by `edge.bodies` rather than by FastAPI, which parses JSON before it validates: then
`"5"` passes for a number, a text of a million brackets is built before it is refused, and any media
type will do. A handler that is also marked `by_hand` gets the raw request. FastAPI's injection
takes 0.3 ms for each request, and all of a single label 0.5 (docs/defense-of-design.md); so labels,
leases and bulk items do without.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Final, Protocol, TypeVar

from fastapi import Depends, FastAPI
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response

from venire.operations import OPERATIONS
from venire.server.edge.access import Caller
from venire.server.edge.answers import body, json_answer, says
from venire.server.edge.bodies import JSON, read
from venire.server.edge.guard import Gate, caller
from venire.server.edge.parameters import PATH_PARAMETERS

__all__ = ["Part", "Served", "add_handlers_of", "bodies_of", "served_by", "serves"]

F = TypeVar("F", bound=Callable[..., Any])


class Part(Protocol):
    """The handlers of one part of the API."""

    def __init__(self, gate: Gate) -> None:
        """Behind a gate."""


@dataclass(frozen=True, slots=True)
class Served:
    """How an operation is served and documented."""

    name: str
    tag: str
    statuses: tuple[int, ...]
    text: str
    ok: int
    kind: str
    reply: Any
    body: Any
    lists: bool
    example: Any
    more: dict[str, Any]


def serves(
    name: str,
    tag: str,
    *statuses: int,
    text: str = "Done.",
    ok: int = 200,
    kind: str = JSON,
    reply: Any = None,
    body: Any = None,
    lists: bool = False,
    example: Any = None,
    **more: Any,
) -> Callable[[F], F]:
    """Mark the handler of an operation, with the errors that are its own.

    `reply` and `body` are for handlers whose signature does not say them: those that return a
    response, or read the request themselves. `more` is for FastAPI.
    """

    def mark(handler: F) -> F:
        handler.served = Served(  # type: ignore[attr-defined]
            name, tag, statuses, text, ok, kind, reply, body, lists, example, more
        )
        return handler

    return mark


def served_by(part: type[Part]) -> Iterator[tuple[str, Served]]:
    """The marked methods of a part, in the order in which they are written."""
    for name, method in vars(part).items():
        if isinstance(told := getattr(method, "served", None), Served):
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
        operation, handler = OPERATIONS[told.name], getattr(part, name)
        signature = inspect.signature(handler, eval_str=True)
        by_hand = getattr(handler, "by_hand", False)
        sent, optional = _sent(signature)
        described = _described(told, told.body or sent, optional)
        if by_hand:
            named = [one for key, one in PATH_PARAMETERS.items() if f"{{{key}}}" in operation.path]
            described["parameters"] = [*named, *described.get("parameters", [])]
        reply = told.reply or _reply(signature.return_annotation)
        how: dict[str, Any] = {} if told.kind == JSON else {"response_class": Response}
        answers = says(*told.statuses, ok=told.ok, text=told.text, kind=told.kind)
        if operation.roles is None:  # no key is checked, nothing is limited
            answers = {status: answers[status] for status in (told.ok, *told.statuses)}
        for status, more in told.more.get("responses", {}).items():
            answers[status] = {**answers.get(status, {}), **more}
        app.add_api_route(
            operation.path.replace("{item}", "{item:path}"),
            handler if by_hand else _endpoint(handler, signature, told.ok),
            methods=[operation.method],
            tags=[told.tag],
            status_code=None if told.ok == 200 else told.ok,
            response_model=reply,
            responses=answers,
            openapi_extra=described or None,
            **how,
        )


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


def _described(told: Served, model: Any, optional: bool) -> dict[str, Any]:
    """The body as it is documented."""
    described: dict[str, Any] = dict(told.more.get("openapi_extra", {}))
    if model is not None:
        name = model if isinstance(model, str) else model.__name__
        sent = body(name, lists=told.lists, example=told.example)["requestBody"]
        sent["content"] |= described.pop("content", {})
        described["requestBody"] = {**sent, "required": not (optional or told.more.get("optional"))}
    return described


def _endpoint(
    handler: Callable[..., Awaitable[Any]], signature: inspect.Signature, ok: int
) -> Callable[..., Awaitable[Response]]:
    """A handler as FastAPI takes it."""

    async def endpoint(**values: Any) -> Response:
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
        return one.replace(annotation=Annotated[Caller, Depends(caller)])
    if not _is_model(one.annotation):
        return one
    reader = _reader(one.annotation, None if one.default is one.empty else one.default)
    return one.replace(annotation=Annotated[one.annotation, Depends(reader)], default=one.empty)


def _reader(model: type[BaseModel], default: BaseModel | None) -> Callable[..., Awaitable[Any]]:
    """What reads the body of a request; without one it is the default, if there is one."""

    async def sent(request: Request) -> BaseModel:
        if default is not None and not await request.body():
            return default
        return await read(request, model)

    return sent
