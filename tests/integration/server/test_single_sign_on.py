"""Signing in with a provider of identities: a real one, with real keys, behind real HTTP."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from structlog.testing import capture_logs

from tests.integration.server.harness import InProcess, in_process
from tests.judge_server import serving
from tests.oidc_provider import (
    CLIENT,
    EC,
    OCT,
    OTHER_RSA,
    RSA,
    SECRET,
    Provider,
    query_of,
    settings_for,
)
from venire.errors import InputError
from venire.server import ServerSettings
from venire.server.clock import SystemClock
from venire.server.edge.oidc import KEPT, UNKNOWN, WITHIN, provider_of

SITE = "http://testserver"


class Clock(SystemClock):
    """The clocks of the machine, and what a test adds to them."""

    ahead = 0.0
    wall_ahead = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.ahead

    def wall(self) -> float:
        return super().wall() + self.wall_ahead


CLOCK = Clock()


@pytest.fixture(scope="module")
def running() -> Iterator[Provider]:
    provider = Provider(redirects={f"{SITE}/sign-in/oidc/callback"})
    with serving(provider):
        yield provider


@pytest.fixture(scope="module")
def shared(running: Provider) -> Iterator[InProcess]:
    with in_process(CLOCK, **settings_for(running)) as served:
        served.make_stream(panel=[{"id": "ann@example.org", "competence": 0.8}])
        served.add("a", "b")
        yield served


@pytest.fixture
def provider(running: Provider) -> Provider:
    """The provider, as it was before whatever the last test did to it."""
    fresh = Provider()
    running.wrong, running.more = {}, {}
    running.down, running.hangs, running.signed = False, False, True
    running.people, running.in_token, running.methods = (
        fresh.people,
        fresh.in_token,
        fresh.methods,
    )
    running.use(RSA, "first")
    running.asked.clear()
    return running


@pytest.fixture
def site(shared: InProcess, provider: Provider) -> InProcess:
    """The server as a browser without cookies finds it, which knows nothing of the provider."""
    shared.http.cookies.clear()
    CLOCK.ahead += KEPT + 1  # what it knew is too old
    return shared


def began(site: InProcess, to: str = "") -> str:
    """Begin to sign in: where the browser is sent."""
    answer = site.http.get(f"/sign-in/oidc?{query_of(to=to)}", follow_redirects=False)
    assert answer.status_code == 303, answer.text
    return str(answer.headers["location"])


def allowed(url: str, user: str) -> str:
    """Say at the provider who one is: where the browser is sent back to."""
    answer = httpx2.post(url, data={"user": user}, follow_redirects=False)
    assert answer.status_code == 302, answer.text
    return str(answer.headers["location"])


def sign_in(site: InProcess, user: str, to: str = "") -> Any:
    back = allowed(began(site, to), user)
    return site.http.get(back, headers={"accept": "text/html"}, follow_redirects=False)


def me(site: InProcess) -> Any:
    answer = site.call("GET", "/v1/me", None)
    return answer.json() if answer.status_code == 200 else None


def audit(site: InProcess, action: str) -> list[Any]:
    return [one for one in site.call("GET", "/v1/audit").json() if one["action"] == action]


def test_the_sign_in_page_offers_the_provider_beside_the_key(site: InProcess) -> None:
    page = site.http.get("/?to=/streams/posts").text
    assert 'href="/sign-in/oidc?to=/streams/posts"' in page.replace("%2F", "/")
    assert "Sign in with <bdi>Acme</bdi>" in page
    assert 'name="key"' in page
    signed_in = site.http.post(
        "/sign-in", data={"key": site.keys["viewer"]}, follow_redirects=False
    )
    assert (signed_in.status_code, me(site)["role"]) == (303, "viewer")


@pytest.mark.parametrize(
    ("user", "role", "home", "open_to", "shut_to"),
    [
        ("ada", "admin", "/", ["/audit", "/streams/posts/settings", "/work"], []),
        ("vic", "viewer", "/", ["/streams/posts"], ["/audit", "/work", "/streams/posts/reviews"]),
        ("ron", "reviewer", "/", ["/streams/posts/reviews"], ["/audit", "/streams/posts/upload"]),
        ("pat", "producer", "/", ["/streams/posts/upload"], ["/audit", "/work"]),
        ("ann", "labeler", "/work", ["/work?stream=posts"], ["/audit", "/streams/posts"]),
    ],
)
def test_a_group_gives_its_role(
    site: InProcess, user: str, role: str, home: str, open_to: list[str], shut_to: list[str]
) -> None:
    answer = sign_in(site, user)
    assert answer.status_code == 200
    assert f'content="0; url={home}"' in answer.text
    assert (me(site)["role"], me(site)["labeler"]) == (
        role, f"{user}@example.org" if role == "labeler" else None,
    )  # fmt: skip
    assert site.http.get(home).status_code == 200
    for path in open_to:
        assert site.http.get(path).status_code == 200, path
    for path in shut_to:
        assert site.http.get(path).status_code == 403, path
    told = audit(site, "sign_in")[-1]
    assert (told["subject"], told["details"]["role"]) == (f"sub-{user}", role)
    assert told["details"]["group"] in Provider().people[user]["groups"]
    assert told["key"] == me(site)["key"]


def test_the_cookies_are_as_short_lived_and_as_narrow_as_they_can_be(site: InProcess) -> None:
    answer = site.http.get("/sign-in/oidc", follow_redirects=False)
    kept = answer.headers["set-cookie"]
    assert re.search(r"^venire_sign_in_\S+; HttpOnly; Max-Age=600; Path=/sign-in/oidc;", kept)
    assert "SameSite=lax" in kept
    asked = parse_qs(urlsplit(answer.headers["location"]).query)
    assert asked["code_challenge_method"] == ["S256"]
    assert asked["redirect_uri"] == [f"{SITE}/sign-in/oidc/callback"]
    assert {"state", "nonce", "code_challenge"} <= set(asked)
    back = allowed(answer.headers["location"], "ann")
    session, token = (
        one
        for one in site.http.get(back, follow_redirects=False).headers.get_list("set-cookie")
        if "Max-Age=0" not in one
    )
    assert re.search(r"^venire_session=\S+; HttpOnly; Max-Age=43200; Path=/; SameSite=st", session)
    assert re.search(r"^venire_id_token=\S+; HttpOnly; Max-Age=43200; Path=/sign-out; Same", token)
    https = site.http.get(
        "/sign-in/oidc", headers={"x-forwarded-proto": "https"}, follow_redirects=False
    )
    assert "Secure" in https.headers["set-cookie"]
    assert "redirect_uri=https%3A%2F%2Ftestserver" in https.headers["location"]


def test_nothing_secret_is_in_the_store(site: InProcess) -> None:
    sign_in(site, "ann")
    session = site.http.cookies["venire_session"]
    token = site.http.cookies["venire_id_token"]
    storage = site.service.runtime.storage
    kept = json.dumps([storage.metas(""), list(map(str, storage.keys()))])
    assert session not in kept
    assert token not in kept
    assert SECRET not in kept


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"iss": "https://evil.example"}, "another issuer"),
        ({"iss": None}, "no iss"),
        ({"aud": ["another"]}, "another client"),
        ({"aud": "another"}, "another client"),
        ({"aud": None}, "no aud"),
        ({"aud": [CLIENT, "another"]}, "no azp"),
        ({"azp": "another"}, "another client"),
        ({"exp": 1}, "expired"),
        ({"exp": None}, "no exp"),
        ({"exp": "soon"}, "expired"),
        ({"iat": 1 << 40}, "future"),
        ({"iat": None}, "no iat"),
        ({"nbf": 1 << 40}, "future"),
        ({"nonce": "of another sign-in"}, "another sign-in"),
        ({"nonce": None}, "no nonce"),
        ({"at_hash": "xxxx"}, "another access token"),
        ({"sub": None}, "no sub"),
        ({"sub": ""}, "sub"),
    ],
)
def test_a_token_that_is_not_for_this_sign_in_is_refused(
    site: InProcess, provider: Provider, wrong: dict[str, Any], why: str
) -> None:
    provider.wrong = wrong
    answer = sign_in(site, "ada")
    assert answer.status_code == 403
    assert why in answer.text
    assert me(site) is None


@pytest.mark.parametrize("skew", [-50, 50])
def test_clocks_may_differ_by_a_minute(site: InProcess, provider: Provider, skew: int) -> None:
    now = int(time.time())
    provider.wrong = {"iat": now + max(skew, 0), "exp": now + min(skew, 0) + 5}
    assert sign_in(site, "vic").status_code == 200


@pytest.mark.parametrize(
    ("key", "kid", "alg"),
    [(OTHER_RSA, "first", "RS256"), (OTHER_RSA, "unknown", "RS256"), (OCT, "first", "HS256")],
)
def test_a_token_with_another_key_is_refused(
    site: InProcess, provider: Provider, key: Any, kid: str, alg: str
) -> None:
    provider.use(key, kid, alg, publish=False)
    answer = sign_in(site, "ada")
    assert answer.status_code == 403
    assert "none of the provider" in answer.text or "HS256" in answer.text or "alg" in answer.text
    assert me(site) is None
    assert provider.asked.count("/keys") <= 2


def test_a_token_that_is_not_signed_is_refused(site: InProcess, provider: Provider) -> None:
    provider.signed = False
    assert sign_in(site, "ada").status_code == 403
    assert me(site) is None


def test_new_keys_are_read_when_they_are_used_and_not_more_often(
    site: InProcess, provider: Provider
) -> None:
    assert sign_in(site, "vic").status_code == 200
    CLOCK.ahead += UNKNOWN + 1
    provider.asked.clear()
    assert sign_in(site, "vic").status_code == 200
    assert "/keys" not in provider.asked
    provider.use(OTHER_RSA, "second")
    assert sign_in(site, "vic").status_code == 200
    assert provider.asked.count("/keys") == 1
    provider.use(EC, "third", "ES256")  # a moment later: the keys are not read again
    assert sign_in(site, "vic").status_code == 403
    assert provider.asked.count("/keys") == 1
    CLOCK.ahead += UNKNOWN + 1
    assert sign_in(site, "vic").status_code == 200


def test_a_sign_in_is_finished_once_and_by_the_browser_that_began_it(
    site: InProcess, provider: Provider
) -> None:
    url = began(site)
    kept = dict(site.http.cookies)
    back = allowed(url, "ada")
    site.http.cookies.clear()
    assert site.http.get(back).status_code == 400  # another browser
    site.http.cookies.update(kept)
    assert site.http.get(back.replace("state=", "state=x")).status_code == 400
    provider.asked.clear()
    assert site.http.get(back).status_code == 200
    assert provider.asked == ["/token"]
    site.http.cookies.clear()
    site.http.cookies.update(kept)
    again = site.http.get(back, headers={"accept": "text/html"})
    assert (again.status_code, "was finished" in again.text) == (400, True)
    assert provider.asked == ["/token"]  # the code did not even go there
    assert me(site) is None


def test_two_tabs_may_sign_in_at_a_time(site: InProcess) -> None:
    first, second = began(site), began(site)
    assert site.http.get(allowed(first, "vic")).status_code == 200
    assert site.http.get(allowed(second, "vic")).status_code == 200


def test_a_sign_in_that_takes_too_long_is_begun_again(site: InProcess) -> None:
    back = allowed(began(site), "ada")
    CLOCK.wall_ahead = WITHIN + 1
    try:
        answer = site.http.get(back, headers={"accept": "text/html"})
    finally:
        CLOCK.wall_ahead = 0.0
    assert (answer.status_code, "ten minutes" in answer.text) == (400, True)


def test_a_cookie_that_somebody_made_is_no_sign_in(site: InProcess) -> None:
    url = began(site)
    (name, kept) = next(iter(site.http.cookies.items()))
    head, body, _ = kept.split(".")
    for forged in (f"{head}.{body}.AAAA", f"e30.{body}.", "x", ""):
        site.http.cookies.clear()
        site.http.cookies.set(name, forged)
        assert site.http.get(allowed(url, "ada")).status_code == 400


@pytest.mark.parametrize(
    "to",
    ["https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)", "/audit"],
)
def test_signing_in_leads_nowhere_else(site: InProcess, to: str) -> None:
    assert 'content="0; url=/"' in sign_in(site, "ada", to).text


def test_signing_in_leads_where_one_was_going(site: InProcess) -> None:
    to = '/streams/posts/items?text=a"><script>'
    page = sign_in(site, "ada", to).text
    assert 'content="0; url=/streams/posts/items?text=a&#34;&gt;&lt;script&gt;"' in page


def test_the_answer_of_another_issuer_or_an_error_is_no_sign_in(site: InProcess) -> None:
    for more, why in (
        ("&iss=https://evil.example", "another issuer"),
        ("&error=access_denied&error_description=<b>no</b>", "&lt;b&gt;no&lt;/b&gt;"),
    ):
        back = allowed(began(site), "ada")
        answer = site.http.get(f"{back}{more}", headers={"accept": "text/html"})
        assert (answer.status_code, why in answer.text) == (403, True), answer.text
    state = parse_qs(urlsplit(began(site)).query)["state"][0]
    assert site.http.get(f"/sign-in/oidc/callback?state={state}").status_code == 403


def test_who_says_no_at_the_provider_is_told_so(site: InProcess) -> None:
    answer = site.http.get(
        httpx2.post(began(site), data={"x": "y"}).headers["location"],
        headers={"accept": "text/html"},
    )
    assert (answer.status_code, "Acme did not sign you in" in answer.text) == (403, True)


def test_a_code_of_another_sign_in_is_worth_nothing(site: InProcess) -> None:
    stolen = parse_qs(urlsplit(allowed(began(site), "ada")).query)["code"][0]
    state = parse_qs(urlsplit(began(site)).query)["state"][0]
    answer = site.http.get(f"/sign-in/oidc/callback?{query_of(state=state, code=stolen)}")
    assert answer.status_code == 502
    assert "invalid_grant" in answer.text  # by PKCE
    assert me(site) is None


def test_without_a_group_that_has_a_role_a_page_says_which_do(site: InProcess) -> None:
    answer = sign_in(site, "eve")
    assert answer.status_code == 403
    assert "&lt;b&gt;bold&lt;/b&gt;" in answer.text
    assert "guests" in answer.text
    assert "venire-admins" in answer.text
    assert me(site) is None
    told = audit(site, "sign_in.refuse")[-1]
    assert (told["subject"], told["details"]["groups"][0]) == ("sub-eve", "guests")


def test_without_any_groups_the_page_says_what_was_looked_for(
    site: InProcess, provider: Provider
) -> None:
    del provider.people["eve"]["groups"]
    answer = sign_in(site, "eve")
    assert "sent nothing as <code>groups</code>" in answer.text


def test_a_role_is_that_of_the_last_sign_in(site: InProcess, provider: Provider) -> None:
    sign_in(site, "vic")
    old = dict(site.http.cookies)
    first = me(site)
    sign_in(site, "vic")
    assert me(site)["key"] == first["key"]
    provider.people["vic"]["groups"] = ["reviewers", "viewers"]
    site.http.cookies.clear()
    sign_in(site, "vic")
    assert me(site)["role"] == "viewer"  # the first in the order of the setting
    provider.people["vic"]["groups"] = ["reviewers"]
    sign_in(site, "vic")
    assert me(site)["role"] == "reviewer"
    assert me(site)["key"] != first["key"]
    site.http.cookies.clear()
    site.http.cookies.update(old)
    assert me(site) is None  # the sessions with the old role have ended
    provider.people["vic"]["groups"] = ["strangers"]
    site.http.cookies.clear()
    sign_in(site, "vic")
    changed = [one["action"] for one in site.call("GET", "/v1/audit").json()][-3:]
    assert changed == ["sign_in", "key.revoke", "sign_in.refuse"]


def test_a_labeler_stays_the_same_whatever_the_provider_calls_it(
    site: InProcess, provider: Provider
) -> None:
    sign_in(site, "ann")
    assert me(site)["labeler"] == "ann@example.org"
    work = site.call("GET", "/v1/streams/posts/next", None).json()
    assert work["item"] in ("a", "b")
    provider.people["ann"]["email"] = "ann.ray@example.org"
    site.http.cookies.clear()
    sign_in(site, "ann")
    assert me(site)["labeler"] == "ann@example.org"
    said = site.call("POST", f"/v1/assignments/{work['token']}/label", None, json={"said": "ok"})
    assert said.status_code == 200
    provider.people["bob"]["email"] = "Ann@example.org"
    answer = sign_in(site, "bob")
    assert (answer.status_code, "somebody else" in answer.text) == (403, True)
    provider.people["bob"] |= {"email": "chief@example.org", "email_verified": False}
    answer = sign_in(site, "bob")
    assert (answer.status_code, "a labeler needs a name" in answer.text) == (403, True)
    provider.people["bob"]["email_verified"] = True
    assert sign_in(site, "bob").status_code == 200
    assert me(site)["labeler"] == "chief@example.org"


def test_claims_may_be_at_the_userinfo_endpoint(site: InProcess, provider: Provider) -> None:
    provider.in_token = ("name",)
    sign_in(site, "ann")
    assert me(site)["role"] == "labeler"
    assert provider.asked[-1] == "/userinfo"


def test_a_client_may_prove_itself_by_basic_authentication(
    site: InProcess, provider: Provider
) -> None:
    provider.methods = ("client_secret_basic",)
    assert sign_in(site, "vic").status_code == 200


def test_signing_out_here_and_there(site: InProcess, provider: Provider) -> None:
    sign_in(site, "vic")
    kept = dict(site.http.cookies)
    page = site.http.post("/sign-out", follow_redirects=False)
    assert page.status_code == 200
    (url,) = re.findall(r'href="(http://127[^"]+)"', page.text)
    assert not site.http.cookies.get("venire_session")
    assert not site.http.cookies.get("venire_id_token")
    site.http.cookies.update(kept)
    assert me(site) is None
    done = httpx2.get(url.replace("&amp;", "&"), follow_redirects=False)
    assert (done.status_code, done.headers["location"]) == (303, f"{SITE}/")
    provider.more = {"end_session_endpoint": f"{provider.url}/end"}
    foreign = site.http.post("/sign-out", headers={"sec-fetch-site": "cross-site"})
    assert foreign.status_code == 403


def test_signing_out_where_the_provider_has_no_place_for_it(
    site: InProcess, provider: Provider
) -> None:
    sign_in(site, "vic")
    provider.down = True
    CLOCK.ahead += KEPT + 1
    page = site.http.post("/sign-out", follow_redirects=False)
    assert (page.status_code, "sign out on its own page" in page.text) == (200, True)
    assert me(site) is None


def test_a_provider_that_is_down_is_named_and_keys_still_open(
    site: InProcess, provider: Provider
) -> None:
    provider.down = True
    with capture_logs() as log:
        page = site.http.get("/sign-in/oidc", headers={"accept": "text/html"})
    assert page.status_code == 502
    assert [one["event"].partition(" cannot")[0] for one in log] == ["single sign-on: Acme"]
    assert "Acme cannot answer GET /.well-known/openid-configuration" in page.text
    assert "sign in with a key" in page.text
    assert SECRET not in page.text
    site.http.post("/sign-in", data={"key": site.keys["viewer"]})
    assert me(site)["role"] == "viewer"
    asked = len(provider.asked)
    site.http.get("/sign-in/oidc")
    assert len(provider.asked) == asked  # a moment later it is not asked again
    provider.down = False
    CLOCK.ahead += 3
    assert sign_in(site, "vic").status_code == 200


def test_a_provider_that_does_not_answer_is_given_up(
    site: InProcess, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("venire.server.edge.oidc.PATIENCE", 0.1)
    provider.hangs = True
    page = site.http.get("/sign-in/oidc")
    assert (page.status_code, "does not answer" in page.json()["error"]["message"]) == (502, True)


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"issuer": "https://other.example/"}, "says that its issuer is"),
        ({"issuer": 7}, "does not describe a provider"),
        ({"token_endpoint": "http://other.example/token"}, "as token_endpoint, expected https"),
        ({"jwks_uri": None}, "as jwks_uri, expected https"),
        ({"userinfo_endpoint": "ftp://x"}, "as userinfo_endpoint, expected https"),
    ],
)
def test_a_provider_that_is_not_what_was_set_is_said_to_be(
    site: InProcess, provider: Provider, more: dict[str, Any], why: str
) -> None:
    provider.more = more
    page = site.http.get("/sign-in/oidc")
    assert (page.status_code, why in page.json()["error"]["message"]) == (502, True)


def test_another_server_on_the_store_finishes_what_one_began(
    site: InProcess, provider: Provider
) -> None:
    """As after a restart, or behind a balancer: what was begun is with the browser."""
    back = allowed(began(site), "vic")
    assert site.http.portal is not None
    gate = site.http.app.state.gate  # type: ignore[attr-defined]
    settings = ServerSettings(**settings_for(provider))
    gate.provider = provider_of(settings, CLOCK)
    assert site.http.get(back).status_code == 200


def test_without_a_provider_there_is_no_other_way_to_sign_in() -> None:
    with in_process() as served:
        assert "Sign in with" not in served.http.get("/").text
        for path in ("/sign-in/oidc", "/sign-in/oidc/callback?state=x&code=y"):
            assert served.http.get(path).status_code == 404


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"oidc_client_id": ""}, "VENIRE_OIDC_CLIENT_ID is not"),
        ({"oidc_roles": {}}, "VENIRE_OIDC_ROLES is empty"),
        ({"oidc_issuer": "http://login.example.org"}, "expected an address with https"),
        ({"oidc_client_secret_file": Path("/nowhere")}, "got both"),
        ({"oidc_client_secret": "", "oidc_client_secret_file": Path("/nowhere")}, "cannot read"),
    ],
)
def test_settings_with_which_nobody_could_sign_in(settings: dict[str, Any], why: str) -> None:
    told = settings_for(Provider(url="https://login.example.org"))
    with pytest.raises(InputError, match=re.escape(why)):
        provider_of(ServerSettings(**{**told, **settings}), CLOCK)


def test_the_secret_may_be_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text(f"{SECRET}\n")
    told = settings_for(Provider(url="https://login.example.org"))
    told |= {"oidc_client_secret": "", "oidc_client_secret_file": file}
    settings = ServerSettings(**told)
    assert provider_of(settings, CLOCK) is not None
    assert SECRET not in repr(ServerSettings(**settings_for(Provider(url="https://x"))))


def test_roles_as_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VENIRE_OIDC_ROLES", '{"staff": "viewer"}')
    assert ServerSettings().oidc_roles == {"staff": "viewer"}
    for wrong, why in (("staff=viewer", "expected JSON"), ('{"staff": "boss"}', "'admin'")):
        monkeypatch.setenv("VENIRE_OIDC_ROLES", wrong)
        with pytest.raises(ValueError, match=why):
            ServerSettings()
