"""Streams: create, read, change live, pause, resume, close."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from fastapi import FastAPI, Request, Response
from pydantic import ValidationError
from pydantic_core import to_json

from venire.errors import FileError
from venire.files.trees import parse_tree
from venire.model import Role
from venire.server.actors import Actor
from venire.server.console_messages import ArchivedStream
from venire.server.edge.access import Caller
from venire.server.edge.answers import body, dumps, json_answer, says
from venire.server.edge.beside import beside
from venire.server.edge.blind import Blind
from venire.server.edge.bodies import (
    JSON,
    NewStream,
    media_type,
    parsed,
    read,
    read_object,
    refused,
)
from venire.server.edge.errors import RequestError
from venire.server.edge.everywhere import all_streams
from venire.server.edge.guard import Gate, by_hand, caller
from venire.server.edge.parameters import Stream, stream_parameter
from venire.server.messages import SettingsVersion, StreamView
from venire.server.page_settings import page_of
from venire.server.settings import StreamSettings

__all__ = ["StreamRoutes"]

#: Settings of a stream as people write them, by type, and the most bytes of them: YAML is slow.
TREES: Final = {"application/toml": "toml", "application/yaml": "yaml"}
LONGEST_TREE: Final = 64 * 1024

EXAMPLE = {"name": "posts", "classes": ["spam", "ok"], "panel": [{"id": "ann"}, {"id": "bob"}]}


class StreamRoutes:
    """Management of streams, for operators."""

    def __init__(self, gate: Gate) -> None:
        """Behind a gate."""
        self._gate, self._service = gate, gate.service

    def add(self, app: FastAPI) -> None:
        """Add the routes."""

        def route(path: str, method: str, endpoint: Callable[..., Any], **more: Any) -> None:
            app.add_api_route(path, endpoint, methods=[method], tags=["streams"], **more)

        one = "/v1/streams/{stream}"
        listed = says(text="All streams, by name.")
        route("/v1/streams", "GET", self.list, response_model=list[StreamView], responses=listed)
        put_away = says(text="The streams that are archived, by name.")
        away = list[ArchivedStream]
        route("/v1/archived", "GET", self.archived, response_model=away, responses=put_away)
        route(
            "/v1/streams",
            "POST",
            self.create,
            status_code=201,
            response_model=StreamView,
            responses=says(
                409, 413, 415, 422, ok=201, text="The stream exists with these settings."
            ),
            openapi_extra=_as_trees(body("NewStream", example=EXAMPLE)),
        )
        seen = says(404, 422, text="The stream as it is now.")
        route(one, "GET", self.show, response_model=StreamView, responses=seen)
        route(
            one,
            "PATCH",
            self.change,
            response_model=StreamView,
            responses=says(404, 409, 413, 415, 422, text="Changed, without a restart."),
            openapi_extra=stream_parameter(
                body("StreamChanges", example={"max_overlap": 5, "min_confidence": 0.95})
            ),
        )
        route(
            f"{one}/settings",
            "GET",
            self.history,
            response_model=list[SettingsVersion],
            responses=says(404, 422, text="Every version, oldest first."),
        )
        for verb, endpoint, text in (
            ("pause", self.pause, "Paused: no work is handed out, the slot clock stands still."),
            ("resume", self.resume, "Resumed."),
            ("close", self.close, "Closed: no new items; the open ones are finished."),
            ("archive", self.archive, "Archived: it can be read, and is not listed."),
            ("restore", self.restore, "Restored: it is closed."),
        ):
            responses = says(404, 409, 422, text=text)
            route(f"{one}/{verb}", "POST", endpoint, response_model=StreamView, responses=responses)

    async def list(self, request: Request) -> Response:
        """All streams but archived ones; a labeler's key sees of their settings what it needs."""
        who = caller(request)
        views = await all_streams(self._gate, request)
        return json_answer([_seen_by(who, view) for view in views])

    @by_hand
    async def create(self, request: Request) -> Response:
        """Create a stream; idempotent for the same name and settings."""
        new = await read_stream(request)
        settings = StreamSettings.model_validate(new.model_dump(exclude={"name"}))
        made = await self._service.create_stream(new.name, settings, caller(request).actor)
        if self._gate.peers is not None:
            self._gate.peers.about(request, new.name)
        return json_answer(made, 201)

    async def show(self, request: Request, stream: Stream) -> Response:
        """A stream as it is now; a labeler's key sees only what the page shows of its settings."""
        return json_answer(_seen_by(caller(request), await self._service.stream(stream)))

    @by_hand
    async def change(self, request: Request) -> Response:
        """Change some of the settings, live; each change is a new version."""
        changes = await read_object(request)
        stream = request.path_params["stream"]
        settings = (await self._service.stream(stream)).settings

        def check() -> None:
            try:
                StreamSettings.model_validate_json(dumps({**settings, **changes}), strict=True)
            except ValidationError as error:
                raise refused(error) from error

        await beside(check)
        view = await self._service.change_stream(stream, changes, caller(request).actor)
        return json_answer(view)

    async def history(self, stream: Stream) -> Response:
        """Every version of the settings: what, when and by whom."""
        return json_answer(await self._service.settings_history(stream))

    async def pause(self, request: Request, stream: Stream) -> Response:
        """Stop handing out work; labels and items are still accepted."""
        return await self._switch(request, stream, self._service.pause)

    async def resume(self, request: Request, stream: Stream) -> Response:
        """Resume a paused stream."""
        return await self._switch(request, stream, self._service.resume)

    async def close(self, request: Request, stream: Stream) -> Response:
        """Drain the stream: no new items, the open ones are finished."""
        return await self._switch(request, stream, self._service.close)

    async def archive(self, request: Request, stream: Stream) -> Response:
        """Put a closed stream away, once its items have left: it can only be read."""
        return await self._switch(request, stream, self._service.archive)

    async def restore(self, request: Request, stream: Stream) -> Response:
        """Bring an archived stream back, closed as it was."""
        return await self._switch(request, stream, self._service.restore)

    async def archived(self) -> Response:
        """The streams that are archived."""
        return json_answer(await self._service.archived())

    async def _switch(
        self, request: Request, stream: str, verb: Callable[[str, Actor], Awaitable[StreamView]]
    ) -> Response:
        return json_answer(await verb(stream, caller(request).actor))


async def read_stream(request: Request) -> NewStream:
    """A stream to create: JSON, or TOML or YAML as `venire stream` takes it."""
    kind = media_type(request, (JSON, *TREES))
    if kind == JSON:
        return await read(request, NewStream)
    body = await request.body()
    if len(body) > LONGEST_TREE:
        raise RequestError(
            413,
            "body_too_large",
            f"got {len(body):,} bytes of {TREES[kind].upper()}, expected at most {LONGEST_TREE:,}",
            hint="send JSON",
        )
    return await beside(lambda: _of_tree(body, Path(f"stream.{TREES[kind]}")))


def _of_tree(body: bytes, name: Path) -> NewStream:
    r"""The stream of a text of settings.

    >>> _of_tree(b"name: posts\nclasses: [spam, ok]\nmin_labels: 2", Path("stream.yaml")).min_labels
    2
    """
    try:
        content = parse_tree(body.decode("utf-8-sig"), name).content
    except UnicodeDecodeError:
        raise FileError(name, None, "this is not UTF-8 text") from None
    if not isinstance(content, dict):
        got = type(content).__name__
        raise FileError(name, None, f"got a {got}, expected settings such as name: posts")
    return parsed(NewStream, to_json(content, fallback=str))


def _as_trees(described: dict[str, Any]) -> dict[str, Any]:
    """The description of a body that may also be TOML or YAML."""
    content = described["requestBody"]["content"]
    content |= {kind: {"schema": {"type": "string"}} for kind in TREES}
    return described


def _seen_by(who: Caller, view: StreamView) -> StreamView:
    """Labelers do not see who else is on the panel, nor anybody's competence."""
    if who.role != Role.LABELER:
        return Blind(frozenset(), who.role == Role.REVIEWER).stream(view)
    return replace(view, settings=page_of(view.settings), student=None)
