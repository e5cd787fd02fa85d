"""Path and query parameters that several routes share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, TypeAlias

from fastapi import Path, Query, Request

from venire.server.edge.errors import RequestError
from venire.server.settings import LONGEST_ID, STREAM_NAME

__all__ = [
    "PATH_PARAMETERS",
    "Item",
    "Level",
    "Limit",
    "Stream",
    "Token",
    "Wait",
    "flag",
    "flag_parameter",
]

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
