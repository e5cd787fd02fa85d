"""A provider of identities: authlib's authorization server behind real HTTP, with keys of its own.

It checks what a real one checks (client, redirect address, code, PKCE). What is wrong with its id
tokens is up to the test: `wrong` has claims that are put in their place, None takes one away.
"""

from __future__ import annotations

import json
import time
from base64 import b64decode, b64encode, urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode

from authlib.oauth2 import OAuth2Error, OAuth2Request
from authlib.oauth2.rfc6749 import AuthorizationCodeMixin, AuthorizationServer, ClientMixin
from authlib.oauth2.rfc6749.grants import AuthorizationCodeGrant
from authlib.oauth2.rfc6749.requests import BasicOAuth2Payload
from authlib.oauth2.rfc6750 import BearerTokenGenerator
from authlib.oauth2.rfc7636 import CodeChallenge
from authlib.oidc.core import OpenIDCode, UserInfo
from joserfc import jwt
from joserfc.jwk import ECKey, KeySet, OctKey, RSAKey
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.types import Receive, Scope, Send

CLIENT, SECRET = "venire-1", "a secret+of/the client"

#: Who may sign in: what the provider says of them.
PEOPLE: dict[str, dict[str, Any]] = {
    "ada": {"name": "Ada Admin", "email": "ada@example.org", "groups": ["staff", "venire-admins"]},
    "vic": {"name": "Vic View", "email": "vic@example.org", "groups": ["viewers"]},
    "ron": {"name": "Ron Review", "email": "ron@example.org", "groups": ["reviewers"]},
    "ann": {"name": "Ann Ray", "email": "ann@example.org", "groups": ["crowd"]},
    "bob": {"name": "Bob", "email": "bob@example.org", "groups": ["crowd"]},
    "pat": {"name": "Pat", "email": "pat@example.org", "groups": ["producers"]},
    "eve": {"name": "Eve", "email": "eve@example.org", "groups": ["guests", "<b>bold</b>"]},
}
#: The role of each group, as a server is told.
ROLES = {
    "venire-admins": "admin",
    "crowd": "labeler",
    "viewers": "viewer",
    "reviewers": "reviewer",
    "producers": "producer",
}


class Asked(OAuth2Request):  # type: ignore[misc]
    """A request, with the fields of its form or its query."""

    def __init__(self, method: str, url: str, fields: dict[str, str], headers: dict[str, str]):
        super().__init__(method, url, headers=headers)
        self.payload, self._fields = BasicOAuth2Payload(fields), fields

    @property
    def form(self) -> dict[str, str]:
        return self._fields

    @property
    def args(self) -> dict[str, str]:
        return self._fields


class Client(ClientMixin):  # type: ignore[misc]
    """The server of venire, as the provider knows it."""

    def __init__(self, provider: Provider) -> None:
        self.provider = provider

    def get_client_id(self) -> str:
        return CLIENT

    def get_default_redirect_uri(self) -> str:
        return ""

    def get_allowed_scope(self, scope: str) -> str:
        return scope

    def check_redirect_uri(self, redirect_uri: str) -> bool:
        return redirect_uri in self.provider.redirects

    def check_client_secret(self, client_secret: str) -> bool:
        return client_secret == SECRET

    def check_endpoint_auth_method(self, method: str, endpoint: str) -> bool:
        return method in self.provider.methods

    def check_response_type(self, response_type: str) -> bool:
        return response_type == "code"

    def check_grant_type(self, grant_type: str) -> bool:
        return grant_type == "authorization_code"


@dataclass
class Code(AuthorizationCodeMixin):  # type: ignore[misc]
    """A code, until it is exchanged."""

    user: str
    redirect_uri: str
    scope: str
    nonce: str | None
    code_challenge: str | None
    code_challenge_method: str | None
    code: str

    def get_redirect_uri(self) -> str:
        return self.redirect_uri

    def get_scope(self) -> str:
        return self.scope

    def get_nonce(self) -> str | None:
        return self.nonce

    def get_auth_time(self) -> int:
        return int(time.time())

    def get_acr(self) -> None:
        return None

    def get_amr(self) -> None:
        return None


class Grant(AuthorizationCodeGrant):  # type: ignore[misc]
    """The authorization code grant, with its codes in memory."""

    TOKEN_ENDPOINT_AUTH_METHODS = ("client_secret_basic", "client_secret_post", "none")

    def save_authorization_code(self, code: str, request: OAuth2Request) -> None:
        asked = request.payload.data
        names = ("redirect_uri", "scope", "nonce", "code_challenge", "code_challenge_method")
        self.server.provider.codes[code] = Code(
            request.user, *(asked.get(name) for name in names), code=code
        )

    def query_authorization_code(self, code: str, client: Client) -> Code | None:
        found: Code | None = self.server.provider.codes.get(code)
        return found

    def delete_authorization_code(self, authorization_code: Code) -> None:
        del self.server.provider.codes[authorization_code.code]

    def authenticate_user(self, authorization_code: Code) -> str:
        return authorization_code.user


class IdTokens(OpenIDCode):  # type: ignore[misc]
    """The id tokens, with what is wrong with them."""

    def __init__(self, provider: Provider) -> None:
        super().__init__(require_nonce=True)
        self.provider = provider

    def exists_nonce(self, nonce: str, request: OAuth2Request) -> bool:
        return False

    def resolve_client_private_key(self, client: Client) -> Any:
        return self.provider.key

    def get_client_algorithm(self, client: Client) -> str:
        return self.provider.alg

    def get_encode_header(self, client: Client) -> dict[str, str]:
        return {"alg": self.provider.alg, "kid": self.provider.kid}

    def get_client_claims(self, client: Client) -> dict[str, Any]:
        now = int(time.time())
        return {"iss": self.provider.url, "aud": [CLIENT], "iat": now, "exp": now + 300}

    def generate_user_info(self, user: str, scope: str) -> UserInfo:
        return UserInfo(self.provider.claims_of(user, self.provider.in_token))

    def encode_id_token(self, token: dict[str, Any], request: OAuth2Request) -> str:
        made = super().encode_id_token(token, request)
        if not self.provider.signed:
            head = urlsafe_b64encode(b'{"alg":"none"}').decode().rstrip("=")
            return f"{head}.{made.split('.')[1]}."
        if not self.provider.wrong:
            return str(made)
        claims = jwt.decode(made, self.provider.key, [self.provider.alg]).claims
        claims = {**claims, **self.provider.wrong}
        kept = {name: value for name, value in claims.items() if value is not None}
        header = self.get_encode_header(request.client)
        return jwt.encode(header, kept, self.provider.key, [self.provider.alg])


class Server(AuthorizationServer):  # type: ignore[misc]
    """Authlib's server, between the requests and responses of Starlette."""

    def __init__(self, provider: Provider) -> None:
        super().__init__()
        self.provider = provider
        make = BearerTokenGenerator(lambda **_: provider.new_access_token())
        self.register_token_generator("default", make)
        self.register_grant(Grant, [IdTokens(provider), CodeChallenge(required=True)])

    def query_client(self, client_id: str) -> Client | None:
        return Client(self.provider) if client_id == CLIENT else None

    def save_token(self, token: dict[str, Any], request: OAuth2Request) -> None:
        self.provider.granted[token["access_token"]] = request.user

    def send_signal(self, name: str, *args: Any, **kwargs: Any) -> None:
        pass

    def create_oauth2_request(self, request: Any) -> OAuth2Request:
        if isinstance(request, OAuth2Request):
            return request
        return Asked(*request)

    def handle_response(self, status: int, body: Any, headers: Any) -> Response:
        if isinstance(body, dict):
            return JSONResponse(body, status, dict(headers))
        return Response(body, status, dict(headers))


@dataclass
class Provider:
    """An ASGI application: what it is told to do, and what it was asked."""

    url: str = ""
    redirects: set[str] = field(default_factory=set)
    people: dict[str, dict[str, Any]] = field(
        default_factory=lambda: {name: dict(one) for name, one in PEOPLE.items()}
    )
    wrong: dict[str, Any] = field(default_factory=dict)
    more: dict[str, Any] = field(default_factory=dict)  # what its description says instead
    in_token: tuple[str, ...] = (
        "name",
        "email",
        "email_verified",
        "groups",
    )  # the rest is at its userinfo endpoint
    methods: tuple[str, ...] = ("client_secret_post",)
    down: bool = False
    hangs: bool = False  # until who asks is gone
    signed: bool = True
    asked: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.codes: dict[str, Code] = {}
        self.granted: dict[str, str] = {}
        self.alg, self.kid, self.key = "RS256", "", RSA
        self.published: list[Any] = []
        self.use(RSA, "first")
        self.server = Server(self)

    def use(self, key: Any, kid: str, alg: str = "RS256", publish: bool = True) -> None:
        """Sign with another key from now on."""
        self.key, self.kid, self.alg = key, kid, alg
        if publish:
            self.published = [{**key.as_dict(private=False), "kid": kid, "alg": alg, "use": "sig"}]

    def new_access_token(self) -> str:
        return f"access-{len(self.granted)}-{time.monotonic_ns()}"

    def claims_of(self, user: str, names: tuple[str, ...] | None = None) -> dict[str, Any]:
        told = self.people[user]
        return {"sub": f"sub-{user}"} | {k: v for k, v in told.items() if not names or k in names}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        path, form = request.url.path, dict(parse_qsl((await request.body()).decode()))
        self.asked.append(path)
        if self.hangs:
            while (await receive())["type"] != "http.disconnect":
                pass
        if self.down or self.hangs:
            answer: Response = JSONResponse({"message": "maintenance"}, 503)
        else:
            answer = await run_in_threadpool(self._answer, request, path, form)
        await answer(scope, receive, send)

    def _answer(self, request: Request, path: str, form: Mapping[str, str]) -> Response:
        query = dict(request.query_params)
        headers = {name.title(): value for name, value in request.headers.items()}
        if path == "/.well-known/openid-configuration":
            return JSONResponse(self._description())
        if path == "/keys":
            return JSONResponse({"keys": self.published})
        if path == "/token":
            scheme, _, pair = headers.get("Authorization", "").partition(" ")
            if scheme == "Basic":  # RFC 6749, 2.3.1: both parts are encoded, which authlib skips
                plain = ":".join(map(unquote, b64decode(pair).decode().split(":")))
                headers["Authorization"] = f"Basic {b64encode(plain.encode()).decode()}"
            done: Response = self.server.create_token_response(
                ("POST", str(request.url), dict(form), headers)
            )
            return done
        if path == "/userinfo":
            token = headers.get("Authorization", "").removeprefix("Bearer ")
            return JSONResponse(self.claims_of(self.granted[token]))
        if path == "/logout":
            claims = jwt.decode(query["id_token_hint"], KeySet.import_key_set(self.keys)).claims
            assert claims["aud"] == [query["client_id"]]
            return RedirectResponse(query["post_logout_redirect_uri"], 303)
        if path == "/authorize":
            return self._authorize(request, query, form, headers)
        return Response("nothing here", 404)

    @property
    def keys(self) -> Any:
        return {"keys": self.published}

    def _authorize(
        self, request: Request, query: dict[str, str], form: Mapping[str, str], headers: Any
    ) -> Response:
        """A page on which somebody says who they are, and what comes after it."""
        asked = ("GET", str(request.url), query, headers)
        user = form.get("user")
        try:
            grant = self.server.get_consent_grant(asked, user)
        except OAuth2Error as error:
            return JSONResponse(dict(error.get_body()), error.status_code)
        if request.method == "GET":
            buttons = "".join(
                f'<button name="user" value="{name}">{one["name"]}</button>'
                for name, one in self.people.items()
            )
            return HTMLResponse(f'<form method="post">{buttons}<button>No</button></form>')
        done: Response = self.server.create_authorization_response(
            self.server.create_oauth2_request(asked), user, grant
        )
        return done

    def _description(self) -> dict[str, Any]:
        paths = {
            "authorization_endpoint": "/authorize",
            "token_endpoint": "/token",
            "userinfo_endpoint": "/userinfo",
            "jwks_uri": "/keys",
            "end_session_endpoint": "/logout",
        }
        told = {
            "issuer": self.url,
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256", "ES256", "HS256", "none"],
            "token_endpoint_auth_methods_supported": list(self.methods),
            "code_challenge_methods_supported": ["S256"],
        }
        return told | {name: f"{self.url}{path}" for name, path in paths.items()} | self.more


#: Keys are made once: each RSA key takes a while.
RSA, OTHER_RSA = RSAKey.generate_key(2048), RSAKey.generate_key(2048)
EC, OCT = ECKey.generate_key("P-256"), OctKey.generate_key(256)


def settings_for(provider: Provider, **more: Any) -> dict[str, Any]:
    """The settings of a server whose people sign in with a provider."""
    told = {"oidc_issuer": provider.url, "oidc_client_id": CLIENT, "oidc_client_secret": SECRET}
    return {**told, "oidc_name": "Acme", "oidc_roles": ROLES, **more}


def variables_for(provider: Provider) -> dict[str, str]:
    """The same as variables of the environment."""
    texts = {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in settings_for(provider).items()
    }
    return {f"VENIRE_{name.upper()}": value for name, value in texts.items()}


def query_of(**fields: str) -> str:
    return urlencode(fields)
