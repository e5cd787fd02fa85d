"""Path and query parameters that several routes share."""

from __future__ import annotations

from typing import Annotated, Any, Final, TypeAlias

from fastapi import Path, Query, Request

from venire.server.edge.errors import RequestError
from venire.server.settings import LONGEST_ID, STREAM_NAME

__all__ = [
    "Item",
    "Level",
    "Limit",
    "Stream",
    "Wait",
    "flag",
    "flag_parameter",
    "stream_parameter",
    "token_parameter",
]

SLUG: Final = f"^{STREAM_NAME}$"
LONGEST_WAIT: Final = 3600

Stream: TypeAlias = Annotated[str, Path(description="The name of the stream.", pattern=SLUG)]
Item: TypeAlias = Annotated[
    str,
    Path(description="The id of the item.", max_length=LONGEST_ID, pattern=r"^[^\x00-\x1f\x7f]+$"),
]
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


def token_parameter(extra: dict[str, Any]) -> dict[str, Any]:
    """The documentation of a route with a token in its path."""
    return _path_parameter("token", "The token of the assignment, from `next`.", {}, extra)


def stream_parameter(extra: dict[str, Any]) -> dict[str, Any]:
    """The documentation of a route that reads the name of the stream from the path itself."""
    return _path_parameter("stream", "The name of the stream.", {"pattern": SLUG}, extra)


def _path_parameter(
    name: str, description: str, schema: dict[str, Any], extra: dict[str, Any]
) -> dict[str, Any]:
    parameter = {
        "name": name,
        "in": "path",
        "required": True,
        "description": description,
        "schema": {"type": "string", **schema},
    }
    return {"parameters": [parameter], **extra}


def flag(request: Request, name: str) -> bool:
    """A query parameter that is true or false, of a route that reads its request itself."""
    text = request.query_params.get(name, "false").lower()
    if text not in ("true", "false"):
        raise RequestError(422, "invalid", f"got {name}={text!r}", hint="expected true or false")
    return text == "true"


def flag_parameter(name: str, description: str, extra: dict[str, Any]) -> dict[str, Any]:
    """The documentation of a route with such a parameter."""
    parameter = {
        "name": name,
        "in": "query",
        "description": description,
        "schema": {"type": "boolean", "default": False},
    }
    return {**extra, "parameters": [*extra["parameters"], parameter]}
