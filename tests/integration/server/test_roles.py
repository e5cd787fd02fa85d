"""Who may do what: every route, every role, and no key at all."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute

from tests.integration.server.harness import ROLES as ALL_ROLES
from tests.integration.server.harness import InProcess, in_process
from venire.server.edge.guard import ROLES

#: What stands in the paths: the stream and the item exist, the rest does not.
NAMES = {
    "{stream}": "posts",
    "{item}": "a",
    "{token}": "t",
    "{webhook}": "w",
    "{key}": "none",
    "{invitation}": "inv",
}
PUBLIC = {"GET /health", "GET /ready", "GET /", "GET /sign-in", "POST /sign-in", "POST /sign-out"}
PUBLIC |= {"GET /join/{stream}", "POST /join/{stream}"}
PUBLIC |= {"GET /sign-in/oidc", "GET /sign-in/oidc/callback"}


@pytest.fixture(scope="module")
def shared() -> Iterator[InProcess]:
    with in_process(max_wait=0.1, heartbeat=0.1) as served:
        served.make_stream()
        served.add("a")
        yield served


def path_of(route: str) -> str:
    path = route.partition(" ")[2]
    for name, value in NAMES.items():
        path = path.replace(name, value)
    return path


def ask(shared: InProcess, route: str, role: str | None) -> tuple[int, str]:
    """The status and the code of the error; what follows without an end is cut off."""
    if route in ("GET /live", "GET /v1/streams/{stream}/events") and role is not None:
        allowed = ROLES[route] or ()
        if role in allowed:
            assert shared.http.portal is not None
            gate = shared.http.app.state.gate  # type: ignore[attr-defined]
            shared.http.portal.call(gate.stopping.set)
            try:
                return shared.call("GET", path_of(route), role).status_code, ""
            finally:
                shared.http.portal.call(gate.stopping.clear)
    method = route.partition(" ")[0]
    answer = shared.call(method, path_of(route), role, follow_redirects=False)
    said = answer.json() if answer.headers.get("content-type") == "application/json" else {}
    fault = said.get("error", {}) if isinstance(said, dict) else {}
    return answer.status_code, fault.get("code", "")


def test_the_table_holds_every_route_and_no_other(shared: InProcess) -> None:
    app = shared.http.app
    assert isinstance(app, FastAPI)
    routes = {
        f"{method} {route.path_format}"
        for route in app.routes
        if isinstance(route, APIRoute)
        for method in route.methods or ()
    }
    assert routes == set(ROLES)
    assert {route for route, roles in ROLES.items() if roles is None} == PUBLIC


@pytest.mark.parametrize("route", sorted(ROLES))
def test_without_a_key_nothing_answers_but_health_and_sign_in(
    shared: InProcess, route: str
) -> None:
    shared.http.cookies.clear()
    status, code = ask(shared, route, None)
    if route in PUBLIC:
        assert code not in ("no_key", "not_allowed")
    else:
        assert (status, code) == (401, "no_key")


@pytest.mark.parametrize("role", ALL_ROLES)
@pytest.mark.parametrize("route", sorted(route for route in ROLES if ROLES[route]))
def test_a_key_opens_what_its_role_may_and_nothing_else(
    shared: InProcess, route: str, role: str
) -> None:
    status, code = ask(shared, route, role)
    if role in (ROLES[route] or ()):
        assert status not in (401, 403) or code == "not_trusted"  # of the stream, not of the role
        assert status < 500
    else:
        assert (status, code) == (403, "not_allowed")


def test_a_labeler_speaks_for_itself_alone(shared: InProcess) -> None:
    shared.make_stream("own")
    shared.add("a", stream="own")
    other = shared.call("GET", "/v1/streams/own/next?labeler=bob", "labeler")
    assert (other.status_code, other.json()["error"]["code"]) == (403, "not_your_labeler")
    rows = [{"item": "a", "labeler": "bob", "said": "ok"}]
    assert shared.call("POST", "/v1/streams/own/labels", "labeler", json=rows).status_code == 403
    work = shared.take("bob", "own")
    mine = shared.call("POST", f"/v1/assignments/{work['token']}/heartbeat", "labeler")
    assert mine.status_code == 404


def test_every_way_to_send_a_key(shared: InProcess) -> None:
    token = shared.keys["viewer"]
    for headers in (
        {"authorization": f"Bearer {token}"},
        {"authorization": f"Token {token}"},
        {"x-api-key": token},
    ):
        assert shared.http.get("/v1/me", headers=headers).json()["role"] == "viewer"
    assert shared.http.get("/v1/me", headers={"x-api-key": "vk_wrong"}).status_code == 401


def test_a_revoked_key_opens_nothing(shared: InProcess) -> None:
    made = shared.call("POST", "/v1/keys", json={"name": "x", "role": "viewer"}).json()
    headers = {"x-api-key": made["token"]}
    assert shared.http.get("/v1/me", headers=headers).status_code == 200
    assert shared.call("DELETE", f"/v1/keys/{made['key']['id']}").status_code == 200
    assert shared.http.get("/v1/me", headers=headers).status_code == 401
    listed = shared.call("GET", "/v1/keys").json()
    assert made["token"] not in str(listed)
    assert [key["revoked_at"] is not None for key in listed if key["name"] == "x"] == [True]


def test_a_page_of_another_site_cannot_use_the_cookie(shared: InProcess) -> None:
    http = shared.http
    http.cookies.clear()
    signed_in = http.post("/sign-in", data={"key": shared.keys["admin"]}, follow_redirects=False)
    assert signed_in.status_code == 303
    cookie = signed_in.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert http.get("/v1/me").status_code == 200
    for headers in ({"sec-fetch-site": "cross-site"}, {"origin": "https://evil.example"}):
        assert http.post("/v1/streams/posts/pause", headers=headers).status_code == 403
        assert http.post("/sign-in", data={"key": "x"}, headers=headers).status_code == 403
    assert http.post("/sign-out", follow_redirects=False).status_code == 303
    assert http.get("/v1/me").status_code == 401


def test_a_link_signs_in_once(shared: InProcess) -> None:
    http, service = shared.http, shared.service
    key = service.keys.authenticate(shared.keys["viewer"])
    assert http.portal is not None
    assert key is not None
    token = http.portal.call(service.sessions.begin, key, 600.0)
    http.cookies.clear()
    other = http.get(f"/sign-in?link={token}", headers={"sec-fetch-site": "cross-site"})
    assert (other.status_code, "set-cookie" in other.headers) == (401, False)
    opened = http.get(f"/sign-in?link={token}", follow_redirects=False)
    assert (opened.status_code, opened.headers["location"]) == (303, "/")
    assert token not in opened.headers["set-cookie"]
    assert http.get("/v1/me").json()["role"] == "viewer"
    http.cookies.clear()
    bookmark = http.get("/sign-in", follow_redirects=False)
    assert (bookmark.status_code, bookmark.headers["location"]) == (303, "/")
    for link in (token, "vk_wrong"):
        again = http.get(f"/sign-in?link={link}", follow_redirects=False)
        assert (again.status_code, "set-cookie" in again.headers) == (401, False)
        assert "This link has been used or has expired" in again.text
