"""API keys: create, list, rotate, revoke; and the caller's own."""

from __future__ import annotations

from typing import Annotated

from fastapi import FastAPI, Path, Request, Response

from venire.server.admin_messages import KeyView, NewKey
from venire.server.edge.access import Caller
from venire.server.edge.answers import body, json_answer, says
from venire.server.edge.bodies import KeyBody, RotateBody, read
from venire.server.edge.guard import Gate, by_hand, caller

__all__ = ["KeyRoutes"]

Key = Annotated[str, Path(description="The id of the key.")]
KEY = {"name": "key", "in": "path", "required": True, "schema": {"type": "string"}}
EXAMPLE = {"name": "Ann's laptop", "role": "labeler", "labeler": "ann"}


class KeyRoutes:
    """Management of keys, for operators."""

    def __init__(self, gate: Gate) -> None:
        """Behind a gate."""
        self._keys = gate.service.keys

    def add(self, app: FastAPI) -> None:
        """Add the routes."""
        app.add_api_route(
            "/v1/keys",
            self.list,
            methods=["GET"],
            tags=["keys"],
            response_model=list[KeyView],
            responses=says(text="All keys, including revoked ones, with their last use."),
        )
        app.add_api_route(
            "/v1/keys",
            self.create,
            methods=["POST"],
            tags=["keys"],
            status_code=201,
            response_model=NewKey,
            responses=says(
                409, 413, 415, 422, ok=201, text="Created; the token is shown only once."
            ),
            openapi_extra=body("KeyBody", example=EXAMPLE),
        )
        app.add_api_route(
            "/v1/keys/{key}",
            self.revoke,
            methods=["DELETE"],
            tags=["keys"],
            response_model=KeyView,
            responses=says(404, 409, 422, text="The key is revoked."),
        )
        rotate = body("RotateBody", example={"overlap_hours": 1})
        rotate["requestBody"]["required"] = False
        app.add_api_route(
            "/v1/keys/{key}/rotate",
            self.rotate,
            methods=["POST"],
            tags=["keys"],
            status_code=201,
            response_model=NewKey,
            responses=says(404, 409, 413, 415, 422, ok=201, text="The token is shown only once."),
            openapi_extra={"parameters": [KEY], **rotate},
        )
        app.add_api_route(
            "/v1/me",
            self.me,
            methods=["GET"],
            tags=["keys"],
            response_model=Caller,
            responses=says(text="The owner and the role of the key."),
        )

    async def list(self) -> Response:
        """All keys, without their tokens."""
        return json_answer(await self._keys.list())

    @by_hand
    async def create(self, request: Request) -> Response:
        """Create a key."""
        new, actor = await read(request, KeyBody), caller(request).actor
        made = await self._keys.create(new.name, new.role, new.labeler, actor, new.days)
        return json_answer(made, 201)

    @by_hand
    async def rotate(self, request: Request) -> Response:
        """Replace a key; the old one stays valid for a while."""
        asked = await read(request, RotateBody) if await request.body() else RotateBody()
        key, seconds = request.path_params["key"], asked.overlap_hours * 3600
        return json_answer(await self._keys.rotate(key, caller(request).actor, seconds), 201)

    async def revoke(self, request: Request, key: Key) -> Response:
        """Revoke a key, effective at once."""
        return json_answer(await self._keys.revoke(key, caller(request).actor))

    async def me(self, request: Request) -> Response:
        """The owner and the role of the caller's key."""
        return json_answer(caller(request))
