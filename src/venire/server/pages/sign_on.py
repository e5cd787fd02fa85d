"""Signing in with a provider of identities: where it begins, and where the provider sends back to.

The cookie of a session is `SameSite=Strict`, and the way back from the provider is one from another
site, on which browsers send no such cookie: so it ends on a page of ours, which goes on by itself.
"""

from __future__ import annotations

import re
from typing import Final

from fastapi import FastAPI, Request, Response
from starlette.responses import RedirectResponse

from venire.errors import Conflict, InputError
from venire.server.edge.errors import RequestError
from venire.server.edge.guard import by_hand
from venire.server.edge.oidc import WITHIN, Begun, Provider
from venire.server.pages.pages import ID_TOKEN, PageRoutes, landing

#: Where a sign-in begins, and how the names begin of the cookies that hold one each.
BEGIN: Final = "/sign-in/oidc"
COOKIE: Final = "venire_sign_in_"

#: A longer id token does not fit into a cookie.
LONGEST: Final = 3_800

_STATE: Final = re.compile(r"[A-Za-z0-9_-]{43}")


class SignOnRoutes(PageRoutes):
    """The two ends of a sign-in with the provider."""

    def add(self, app: FastAPI) -> None:
        for path, endpoint in ((BEGIN, self.begin), (f"{BEGIN}/callback", self.finish)):
            app.add_api_route(path, endpoint, methods=["GET"], include_in_schema=False)

    @by_hand
    async def begin(self, request: Request) -> Response:
        """Send the browser to the provider."""
        provider = self._provider()
        back = f"{self._address(request)}{BEGIN}/callback"
        url, begun = await provider.begin(back, request.query_params.get("to", "")[:2000])
        response = RedirectResponse(url, 303, {"cache-control": "no-store"})
        response.set_cookie(
            _cookie_of(begun.state),
            provider.sealed(begun, self._gate.service.identities.secret),
            max_age=round(WITHIN),
            path=BEGIN,
            httponly=True,
            samesite="lax",  # it has to come along when the provider sends the browser back
            secure=self._is_secure(request),
        )
        return response

    @by_hand
    async def finish(self, request: Request) -> Response:
        """Sign in who comes back from the provider, if it says who that is."""
        provider, identities = self._provider(), self._gate.service.identities
        begun = await self._begun(request, provider)
        person, token = await provider.finish(begun, request.query_params)
        try:
            longest = self._gate.settings.session_hours * 3600
            session = await identities.sign_in(person, longest, begun.state, begun.exp)
        except (Conflict, InputError) as error:
            raise RequestError(403, "no_labeler", str(error)) from None
        if person.role is None:
            url = await provider.end_url(token, f"{self._address(request)}/")
            return self._page("no_role.html", None, 403, person=person, url=url)
        if session is None:
            raise _unknown()
        home = landing(person.role, begun.to)
        response = self._page("go_on.html", None, to=home, name=person.name)
        response.delete_cookie(_cookie_of(begun.state), path=BEGIN)
        self._keep(request, response, session)
        kept = token if len(token) <= LONGEST else "-"
        self._keep(request, response, kept, ID_TOKEN, "/sign-out")
        return response

    async def _begun(self, request: Request, provider: Provider) -> Begun:
        """The sign-in that this browser began, and has not finished."""
        state, begun = request.query_params.get("state", ""), None
        if _STATE.fullmatch(state):
            identities, kept = self._gate.service.identities, request.cookies.get(_cookie_of(state))
            begun = None if kept is None else provider.opened(kept, identities.secret, state)
            if begun is not None and await identities.is_finished(state):
                begun = None
        if begun is None:
            raise _unknown()
        return begun

    def _provider(self) -> Provider:
        if self._gate.provider is None:
            raise RequestError(
                404,
                "not_found",
                "this server has no single sign-on",
                hint="sign in with a key, or set VENIRE_OIDC_ISSUER",
            )
        return self._gate.provider


def _cookie_of(state: str) -> str:
    """The cookie of a sign-in: each has its own, so that it may be tried in several tabs."""
    return f"{COOKIE}{state[:8]}"


def _unknown() -> RequestError:
    return RequestError(
        400,
        "unknown_sign_in",
        "this sign-in was finished, took longer than ten minutes, or began in another browser",
        hint="sign in again",
    )
