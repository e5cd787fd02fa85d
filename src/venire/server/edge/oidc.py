"""Single sign-on by OpenID Connect: what is asked of the provider, and what is believed of it.

The authorization code flow with PKCE. What a browser has to come back with is in a cookie, signed
with a secret of the store, so that it may begin at one server and end at another, or after a
restart. Of an id token issuer, audience, signature, times and nonce are checked; a key that is not
known is looked for once more, since providers change theirs. People are what their groups say at
each sign-in: `venire.server.keys.identities`.
"""

from __future__ import annotations

import asyncio
import base64
import hmac
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any, Final
from urllib.parse import quote, urlsplit

import structlog

from venire.errors import InputError
from venire.model import Role
from venire.server.clock import Clock
from venire.server.edge.errors import RequestError
from venire.server.edge.settings import ServerSettings
from venire.server.keys.identities import Person
from venire.server.tokens import new_token
from venire.tools.http import ApiDown, ApiError, JsonApi
from venire.tools.lazy import library

#: Seconds that somebody has to sign in, and that a request to the provider may take.
WITHIN: Final = 600.0
PATIENCE: Final = 10.0

#: Seconds after which a provider is asked anew what it is, and for its keys; after which it is
#: asked again if it failed, and after which a token with an unknown key has its keys read again.
KEPT: Final = 3600.0
FAILED: Final = 2.0
UNKNOWN: Final = 10.0

#: Seconds by which the clocks of the provider and of this server may differ.
SKEW: Final = 60

#: Requests to the provider at a time: anybody may begin to sign in.
MOST: Final = 20

#: With what an id token may be signed: by nothing that this server could sign with too.
ALGORITHMS: Final = frozenset(
    {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512"}
    | {"EdDSA", "Ed25519"}
)

#: What a provider has to have, and what it may have.
NEEDED: Final = ("authorization_endpoint", "token_endpoint", "jwks_uri")
OPTIONAL: Final = ("userinfo_endpoint", "end_session_endpoint")

#: What is wrong with an id token, by the claim that is.
WRONG: Final[Mapping[str, str]] = {
    "iss": "it is of another issuer",
    "aud": "it is for another client",
    "azp": "it is for another client",
    "exp": "it has expired: is the clock of this machine right, and that of the provider?",
    "iat": "it is of the future: is the clock of this machine right, and that of the provider?",
    "nbf": "it is of the future: is the clock of this machine right, and that of the provider?",
    "nonce": "it was made for another sign-in",
    "at_hash": "it belongs to another access token",
}

_log = structlog.get_logger("venire")


@dataclass(frozen=True, slots=True)
class Begun:
    """A sign-in that was begun: `back` is where the provider sends the browser, `to` where next."""

    state: str
    nonce: str
    verifier: str
    back: str
    to: str
    exp: float


class Provider:
    """The provider of the settings; nothing is asked of it before somebody signs in."""

    def __init__(self, settings: ServerSettings, clock: Clock) -> None:
        core = library("authlib.oidc.core", "oidc")
        self._token, self._jwt = core.CodeIDToken, library("joserfc.jwt", "oidc")
        self._jwk, self._errors = library("joserfc.jwk", "oidc"), library("joserfc.errors", "oidc")
        self._settings, self._clock = settings, clock
        self.name, self.issuer = settings.oidc_name, settings.oidc_issuer
        self._secret = _secret(settings)
        _check(settings)
        self._told: dict[str, Any] = {}  # its own description
        self._keys: Any = None
        self._read_at = self._keys_at = -KEPT
        self._fault: tuple[float, RequestError] | None = None
        self._reading, self._asking = asyncio.Lock(), asyncio.Semaphore(MOST)

    async def check(self) -> None:
        """Say in the log if the provider does not answer as it should: nobody can sign in then."""
        with suppress(RequestError):
            await self._description()

    async def begin(self, back: str, to: str) -> tuple[str, Begun]:
        """Begin to sign in: where to send the browser, and what it is to come back with."""
        told = await self._description()
        until = self._clock.wall() + WITHIN
        begun = Begun(new_token(), new_token(), new_token(), back, to, until)
        grants = library("authlib.oauth2.rfc6749.parameters", "oidc")
        pkce = library("authlib.oauth2.rfc7636", "oidc")
        url = grants.prepare_grant_uri(
            told["authorization_endpoint"],
            self._settings.oidc_client_id,
            "code",
            redirect_uri=back,
            scope=self._settings.oidc_scopes,
            state=begun.state,
            nonce=begun.nonce,
            code_challenge=pkce.create_s256_code_challenge(begun.verifier),
            code_challenge_method="S256",
        )
        return str(url), begun

    def sealed(self, begun: Begun, secret: bytes) -> str:
        """A sign-in as its browser keeps it."""
        key = self._jwk.OctKey.import_key(secret)
        return str(self._jwt.encode({"alg": "HS256"}, asdict(begun), key))

    def opened(self, kept: str, secret: bytes, state: str) -> Begun | None:
        """The sign-in that a browser kept, if it has not expired and is the one of this state."""
        try:
            key = self._jwk.OctKey.import_key(secret)
            claims = self._jwt.decode(kept, key, ["HS256"]).claims
            self._jwt.JWTClaimsRegistry(now=self._now).validate(claims)
            begun = Begun(**claims)
        except (self._errors.JoseError, ValueError, TypeError):
            return None
        return begun if hmac.compare_digest(begun.state.encode(), state.encode()) else None

    async def finish(self, begun: Begun, answer: Mapping[str, str]) -> tuple[Person, str]:
        """Who signed in, by what the browser came back with; and the id token, to sign out with."""
        if answer.get("iss", self.issuer) != self.issuer:
            raise _refused(f"the answer is from another issuer, not from {self.name}")
        if "error" in answer:
            why = answer.get("error_description") or answer["error"]
            raise _refused(f"{self.name} did not sign you in: {why[:300]}")
        if not answer.get("code"):
            raise _refused(f"{self.name} sent you back without a code")
        told = await self._description()
        granted = await self._exchange(told, begun, answer["code"])
        token, access = granted.get("id_token"), granted.get("access_token")
        if not isinstance(token, str):
            raise _faulty(f"{self.name} sent no id token: is openid among VENIRE_OIDC_SCOPES?")
        claims = await self._checked(told, token, access, begun.nonce)
        wanted = {*self._group_claims, self._settings.oidc_labeler_claim}
        if "userinfo_endpoint" in told and any(_claim(claims, one) is None for one in wanted):
            headers = {"authorization": f"Bearer {access}"}
            more = await self._call("GET", told["userinfo_endpoint"], headers)
            if isinstance(more, dict) and more.get("sub") == claims["sub"]:
                claims = {**more, **claims}
        return self._person(claims), token

    async def end_url(self, token: str, back: str) -> str | None:
        """Where somebody signs out at the provider too; None if that cannot be."""
        try:
            told = await self._description()
        except RequestError:
            return None
        if "end_session_endpoint" not in told:
            return None
        hint = {"id_token_hint": token} if token else {}
        urls = library("authlib.common.urls", "oidc")
        asked = {"client_id": self._settings.oidc_client_id, "post_logout_redirect_uri": back}
        return str(urls.add_params_to_uri(told["end_session_endpoint"], (hint | asked).items()))

    @property
    def roles(self) -> Mapping[str, Role]:
        """The role of each group, in the order in which they count."""
        return self._settings.oidc_roles

    @property
    def groups_claim(self) -> str:
        return self._settings.oidc_groups_claim

    @property
    def _group_claims(self) -> list[str]:
        return [one.strip() for one in self.groups_claim.split(",") if one.strip()]

    def _now(self) -> int:
        return int(self._clock.wall())

    def _person(self, claims: Mapping[str, Any]) -> Person:
        groups = tuple(dict.fromkeys(g for one in self._group_claims for g in _texts(claims, one)))
        group = next((one for one in self.roles if one in groups), None)
        names = ("name", "preferred_username", "email", "sub")
        found = (_plain(text) for one in names for text in _texts(claims, one))
        labeler = next(_texts(claims, self._settings.oidc_labeler_claim), None)
        return Person(
            self.issuer,
            claims["sub"],
            next((one for one in found if one), "somebody"),
            groups,
            group,
            None if group is None else self.roles[group],
            None if labeler is None else labeler.strip(),
        )

    async def _exchange(self, told: Mapping[str, Any], begun: Begun, code: str) -> dict[str, Any]:
        """What the provider grants for a code."""
        client, headers = self._settings.oidc_client_id, {}
        form = {"grant_type": "authorization_code", "code": code, "client_id": client}
        form |= {"redirect_uri": begun.back, "code_verifier": begun.verifier}
        methods = told.get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
        if self._secret and "client_secret_post" in methods:
            form["client_secret"] = self._secret
        elif self._secret:
            pair = f"{quote(client, safe='')}:{quote(self._secret, safe='')}"
            headers = {"authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}
        granted = await self._call("POST", told["token_endpoint"], headers, form)
        if not isinstance(granted, dict):
            raise _faulty(f"{told['token_endpoint']} does not answer with a JSON object")
        return granted

    async def _checked(
        self, told: Mapping[str, Any], token: str, access: Any, nonce: str
    ) -> dict[str, Any]:
        """The claims of an id token, if it is one for this client and this sign-in."""
        errors = self._errors
        algorithms = ALGORITHMS & set(told.get("id_token_signing_alg_values_supported", ["RS256"]))
        try:
            try:
                found = self._jwt.decode(token, self._keys, sorted(algorithms))
            except (errors.InvalidKeyIdError, errors.BadSignatureError):
                if not await self._has_new_keys(told):
                    raise
                found = self._jwt.decode(token, self._keys, sorted(algorithms))
            options: dict[str, Any] = {
                name: {"essential": True} for name in ("sub", "exp", "iat", "nonce")
            }
            options["iss"] = {"essential": True, "value": self.issuer}
            options["aud"] = {"essential": True, "value": self._settings.oidc_client_id}
            params = {"nonce": nonce, "client_id": self._settings.oidc_client_id}
            params |= {"access_token": access} if isinstance(access, str) else {}
            claims = self._token(found.claims, found.header, options, params)
            claims.validate(self._now(), SKEW)
        except errors.MissingClaimError as error:
            raise self._no_token(f"it has no {error.claim}") from None
        except errors.ClaimError as error:
            raise self._no_token(WRONG.get(error.claim, str(error))) from None
        except (errors.InvalidKeyIdError, errors.BadSignatureError):
            raise self._no_token("it is signed with none of the provider's keys") from None
        except (errors.JoseError, ValueError) as error:
            raise self._no_token(str(error)[:200]) from None
        return dict(claims)

    def _no_token(self, why: str) -> RequestError:
        _log.warning(f"single sign-on: an id token was refused: {why}")
        return _refused(f"{self.name} sent an id token that is not accepted: {why}")

    async def _description(self) -> dict[str, Any]:
        """What the provider says of itself; its keys are read with it."""
        async with self._reading:
            now = self._clock.monotonic()
            if now - self._read_at < KEPT:
                return self._told
            if self._fault is not None and now - self._fault[0] < FAILED:
                raise self._fault[1]
            try:
                told = await self._read()
                self._keys = await self._read_keys(told["jwks_uri"])
            except RequestError as fault:
                self._fault = self._clock.monotonic(), fault
                raise
            self._told, self._read_at, self._fault = told, now, None
            self._keys_at = now
            return told

    async def _read(self) -> dict[str, Any]:
        url = f"{self.issuer.rstrip('/')}/.well-known/openid-configuration"
        told = await self._call("GET", url)
        if not isinstance(told, dict) or not isinstance(told.get("issuer"), str):
            raise _faulty(f"{url} does not describe a provider: is VENIRE_OIDC_ISSUER its issuer?")
        if told["issuer"] != self.issuer:
            raise _faulty(
                f"{url} says that its issuer is {told['issuer'][:200]!r}, and VENIRE_OIDC_ISSUER "
                f"is {self.issuer!r}: set it to exactly what the provider says"
            )
        for name in (*NEEDED, *OPTIONAL):
            if not _is_safe(told.get(name)) and (name in NEEDED or name in told):
                raise _faulty(f"{url} has {told.get(name)!r} as {name}, expected https://...")
        return told

    async def _read_keys(self, url: str) -> Any:
        found = await self._call("GET", url)
        try:
            return self._jwk.KeySet.import_key_set(found)
        except (self._errors.JoseError, ValueError, TypeError, KeyError) as error:
            raise _faulty(f"{url} has no keys that can be used: {str(error)[:200]}") from None

    async def _has_new_keys(self, told: Mapping[str, Any]) -> bool:
        """Read the keys again, unless that was done a moment ago."""
        async with self._reading:
            if self._clock.monotonic() - self._keys_at < UNKNOWN:
                return False
            self._keys = await self._read_keys(told["jwks_uri"])
            self._keys_at = self._clock.monotonic()
            return True

    async def _call(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str] | None = None,
        form: Mapping[str, str] | None = None,
    ) -> Any:
        """The JSON that an address of the provider answers with."""
        parts = urlsplit(url)
        path = f"{parts.path}?{parts.query}" if parts.query else parts.path
        hints = {401: "are VENIRE_OIDC_CLIENT_ID and the secret right?"}
        api = JsonApi(
            self.name, f"{parts.scheme}://{parts.netloc}", headers or {},
            secret=self._secret, hints=hints, timeout=PATIENCE,
        )  # fmt: skip
        try:
            async with self._asking, asyncio.timeout(PATIENCE), api:
                return await api.call(method, path, data=form)
        except TimeoutError:
            raise _faulty(f"{self.name} at {url} does not answer within {PATIENCE:g} s") from None
        except (ApiDown, ApiError) as error:
            raise _faulty(str(error)) from None


def provider_of(settings: ServerSettings, clock: Clock) -> Provider | None:
    """The provider of the settings, if they name one."""
    return Provider(settings, clock) if settings.oidc_issuer else None


def _check(settings: ServerSettings) -> None:
    """Refuse settings with which nobody could sign in."""
    if not _is_safe(settings.oidc_issuer):
        raise InputError(
            f"got the issuer {settings.oidc_issuer!r}, expected an address with https://, or with "
            "http:// if it is on this machine: VENIRE_OIDC_ISSUER"
        )
    if not settings.oidc_client_id:
        raise InputError(
            "VENIRE_OIDC_ISSUER is set and VENIRE_OIDC_CLIENT_ID is not: register this server with "
            "the provider, and set the id that it is given"
        )
    if not settings.oidc_roles:
        raise InputError(
            "VENIRE_OIDC_ISSUER is set and VENIRE_OIDC_ROLES is empty, so that nobody would have a "
            'role: say which group has which, such as {"staff": "labeler"}'
        )


def _secret(settings: ServerSettings) -> str:
    file, secret = settings.oidc_client_secret_file, settings.oidc_client_secret.get_secret_value()
    if file is None:
        return secret
    if secret:
        raise InputError(
            "got both VENIRE_OIDC_CLIENT_SECRET and VENIRE_OIDC_CLIENT_SECRET_FILE: set one of them"
        )
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not text"
        raise InputError(f"VENIRE_OIDC_CLIENT_SECRET_FILE: cannot read {file}: {why}") from None


def _is_safe(url: Any) -> bool:
    """Whether an address is one with https, or one of this machine."""
    security = library("authlib.common.security", "oidc")
    return isinstance(url, str) and bool(security.is_secure_transport(url))


def _claim(claims: Mapping[str, Any], name: str) -> Any:
    """A claim by its name, or by its path; an address that is not verified is none.

    >>> _claim({"realm_access": {"roles": ["staff"]}}, "realm_access.roles")
    ['staff']
    >>> _claim({"https://example.org/groups": ["staff"]}, "https://example.org/groups")
    ['staff']
    >>> _claim({"email": "ann@example.org", "email_verified": False}, "email")
    """
    if name == "email" and claims.get("email_verified", True) not in (True, "true"):
        return None
    if name in claims:
        return claims[name]
    found: Any = claims
    for part in name.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found


def _texts(claims: Mapping[str, Any], name: str) -> Iterator[str]:
    """The texts of a claim, which may be one or a list."""
    found = _claim(claims, name)
    for one in found if isinstance(found, list) else [found]:
        if isinstance(one, str) and one:
            yield one


def _plain(text: str) -> str:
    r"""A name as it is shown: one line, not too long.

    >>> _plain(" Ann\n Ray ")
    'Ann Ray'
    """
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())[:200]


def _faulty(why: str) -> RequestError:
    """The error when the provider, or what is set of it, is at fault: who runs this has to know."""
    _log.warning(f"single sign-on: {why}")
    return RequestError(
        502, "provider", why, hint="sign in with a key, or try again once this is fixed"
    )


def _refused(why: str) -> RequestError:
    """The error when somebody is not let in."""
    hint = "sign in again; if that does not help, tell whoever runs this server"
    return RequestError(403, "not_signed_in", why, hint=hint)
