"""How a handler becomes a route (`serves`), and the parameters that several share."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from math import isfinite
from typing import Annotated, Any, Final, TypeAlias, TypeVar

from fastapi import Depends, FastAPI, Path, Query, Request
from pydantic import BaseModel, BeforeValidator, Field, ValidationError
from starlette.datastructures import QueryParams
from starlette.responses import Response

from venire.budget import Budget
from venire.operations import OPERATIONS
from venire.server.edge.answers import body, json_answer, says
from venire.server.edge.bodies import JSON, read
from venire.server.edge.errors import RequestError
from venire.server.edge.guard import Caller, Gate, caller
from venire.server.settings import LONGEST_ID, STREAM_NAME, Name
from venire.whatif import Plan

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
        return one.replace(annotation=Annotated[Caller, Depends(_sender)])
    if not _is_model(one.annotation):
        return one
    reader = _reader(one.annotation, None if one.default is one.empty else one.default)
    return one.replace(annotation=Annotated[one.annotation, Depends(reader)], default=one.empty)


async def _sender(request: Request) -> Caller:
    """Who asks; a coroutine, since FastAPI runs other functions in threads."""
    return caller(request)


def _reader(model: type[BaseModel], default: BaseModel | None) -> Callable[..., Awaitable[Any]]:
    """What reads the body of a request; without one it is the default, if there is one."""

    async def sent(request: Request) -> BaseModel:
        if default is not None and not await request.body():
            return default
        return await read(request, model)

    return sent
