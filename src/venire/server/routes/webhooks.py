"""Webhooks for exits and revisions, and their dead letters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import FastAPI, Path, Request, Response

from venire.server.admin_messages import DeliveryView, WebhookView
from venire.server.edge.answers import body, json_answer, says
from venire.server.edge.bodies import RedeliverBody, SecretBody, WebhookBody, read
from venire.server.edge.guard import Gate, by_hand, caller
from venire.server.edge.parameters import Stream, stream_parameter

__all__ = ["WebhookRoutes"]

Webhook = Annotated[str, Path(description="The id of the webhook.")]


class WebhookRoutes:
    """Management of webhooks, for operators."""

    def __init__(self, gate: Gate) -> None:
        """Behind a gate."""
        self._hooks = gate.service.webhooks

    def add(self, app: FastAPI) -> None:
        """Add the routes."""
        many = "/v1/streams/{stream}/webhooks"
        one = f"{many}/{{webhook}}"
        webhook = {"name": "webhook", "in": "path", "required": True, "schema": {"type": "string"}}
        redeliver = stream_parameter(body("RedeliverBody", example={"exit_n": 7}))
        rotate = stream_parameter(body("SecretBody", example={"keep_seconds": 3600}))
        for described in (redeliver, rotate):
            described["parameters"].append(webhook)
            described["requestBody"]["required"] = False
        url = stream_parameter(body("WebhookBody", example={"url": "https://example.org/exits"}))
        made = says(404, 409, 413, 415, 422, ok=201, text="Created; the secret is shown only once.")
        known, hooks, letters = says(404, 422), list[WebhookView], list[DeliveryView]
        rotated = says(404, 413, 415, 422, text="The new secret, shown only once.")
        again = says(404, 413, 415, 422, text="How many are retried.")
        routes: tuple[tuple[str, str, Callable[..., Any], dict[str, Any]], ...] = (
            (many, "GET", self.list, {"response_model": hooks, "responses": known}),
            (
                many,
                "POST",
                self.create,
                {"status_code": 201, "response_model": WebhookView, "responses": made}
                | {"openapi_extra": url},
            ),
            (one, "DELETE", self.remove, {"status_code": 204, "responses": says(404, 422, ok=204)}),
            (f"{one}/ping", "POST", self.ping, {"responses": says(404, 422, 502)}),
            (
                f"{one}/rotate",
                "POST",
                self.rotate,
                {"response_model": WebhookView, "responses": rotated, "openapi_extra": rotate},
            ),
            (f"{one}/dead", "GET", self.dead, {"response_model": letters, "responses": known}),
            (
                f"{one}/redeliver",
                "POST",
                self.redeliver,
                {"responses": again, "openapi_extra": redeliver},
            ),
        )
        for path, method, endpoint, more in routes:
            app.add_api_route(path, endpoint, methods=[method], tags=["webhooks"], **more)

    async def list(self, stream: Stream) -> Response:
        """The webhooks of a stream."""
        return json_answer(await self._hooks.list(stream))

    @by_hand
    async def create(self, request: Request) -> Response:
        """Send exits and revisions to an address, signed as Standard Webhooks."""
        asked = await read(request, WebhookBody)
        stream, actor = request.path_params["stream"], caller(request).actor
        return json_answer(await self._hooks.add(stream, asked.url, actor, asked.format), 201)

    async def remove(self, request: Request, stream: Stream, webhook: Webhook) -> Response:
        """Remove a webhook."""
        await self._hooks.remove(stream, webhook, caller(request).actor)
        return Response(status_code=204)

    async def ping(self, stream: Stream, webhook: Webhook) -> Response:
        """Send a test message now, and return the status of the answer."""
        return json_answer({"status": await self._hooks.ping(stream, webhook)})

    @by_hand
    async def rotate(self, request: Request) -> Response:
        """Rotate the secret; messages are signed with the old one as well for a while."""
        asked = await read(request, SecretBody) if await request.body() else SecretBody()
        path = request.path_params
        which, actor = (path["stream"], path["webhook"]), caller(request).actor
        made = await self._hooks.rotate(*which, asked.keep_seconds, actor)
        return json_answer(made)

    async def dead(self, stream: Stream, webhook: Webhook) -> Response:
        """The dead-lettered messages, and why they failed."""
        return json_answer(await self._hooks.dead(stream, webhook))

    @by_hand
    async def redeliver(self, request: Request) -> Response:
        """Retry dead-lettered messages, one or all."""
        which = await read(request, RedeliverBody) if await request.body() else RedeliverBody()
        path = request.path_params
        actor = caller(request).actor
        again = await self._hooks.redeliver(
            path["stream"], path["webhook"], which.exit_n, which.revision_n, actor
        )
        return json_answer({"redelivered": again})
