"""Settings of the server: options of `venire serve`, or `VENIRE_*` variables.

Streams have settings of their own, which can be changed live; these are read once, at the start.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, SecretStr
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from venire.model import Role
from venire.server.settings import RETRIED
from venire.tools.untrusted import parse_json

MEBIBYTE = 1024 * 1024

Positive = Annotated[int, Field(ge=1)]
Seconds = Annotated[float, Field(gt=0)]
Hours = Annotated[float, Field(gt=0)]


def _object(value: Any) -> Any:
    """A variable holds an object as JSON."""
    if not isinstance(value, str):
        return value
    try:
        return parse_json(value)
    except ValueError as error:
        raise ValueError(f'expected JSON, such as {{"staff": "labeler"}}: {error}') from None


Roles = Annotated[Mapping[str, Role], BeforeValidator(_object), NoDecode]


class ServerSettings(BaseSettings):
    """The settings of one server; each is also an environment variable, such as `VENIRE_MAX_BODY`.

    >>> ServerSettings(max_batch=100).max_batch
    100
    """

    model_config = SettingsConfigDict(
        env_prefix="VENIRE_", extra="ignore", use_attribute_docstrings=True
    )

    storage: str = "sqlite:///venire.db"
    """The URL of the store."""
    host: str = "127.0.0.1"
    """The address to listen on."""
    port: Annotated[int, Field(ge=0, le=65535)] = 8400
    """The port; 0 for any free one."""
    standby: bool = False
    """Wait for the store while another server owns it, and take over when that one is gone."""
    shared: bool = False
    """Share the streams of a PostgreSQL with the other servers on it that do so too."""
    address: str = ""
    """Where these reach this one, as http://HOST:PORT; by default where it listens."""
    archive: Path | None = None
    """The folder into which streams archive what their `retention` does not keep."""
    admin_key_file: Path | None = None
    """A file for the first admin key, readable by its owner alone; without one it is printed."""
    upgrade_copy: bool = True
    """Copy an SQLite store of an earlier schema before it is upgraded."""
    max_body: Annotated[int, Field(ge=1024)] = 8 * MEBIBYTE
    """Most bytes of any body; many routes allow less."""
    max_batch: Positive = 20_000
    """Maximum items or labels in one request."""
    max_labelers: Positive = 10_000
    """Maximum labelers that may join a stream by requesting work or sending labels."""
    rate: Annotated[float, Field(ge=0)] = 500.0
    """Requests per second for each key; 0 for no limit."""
    burst: Positive = 1_000
    """Requests that a key may send in a burst."""
    max_waiting: Positive = 1_000
    """Maximum concurrent long polls and event streams."""
    max_waiting_per_key: Positive = 250
    """Maximum of these for one key."""
    max_wait: Seconds = 60.0
    """Maximum seconds of a long poll."""
    header_timeout: Seconds = 20.0
    """Seconds a client has to send the head of a request."""
    body_timeout: Seconds = 60.0
    """Seconds a client has to send the body of a request."""
    heartbeat: Seconds = 15.0
    """Seconds between heartbeats of an event stream."""
    session_hours: Hours = 12.0
    """Hours after which people have to sign in again."""
    secure_cookies: bool = False
    """Always mark cookies Secure, as when a proxy reports HTTPS."""
    oidc_issuer: str = ""
    """The provider with which people sign in by OpenID Connect; without one they use keys alone."""
    oidc_client_id: str = ""
    """The id under which the provider knows this server."""
    oidc_client_secret: SecretStr = SecretStr("")
    """The secret that goes with it; a public client has none."""
    oidc_client_secret_file: Path | None = None
    """A file with that secret, in place of the secret itself."""
    oidc_name: str = "single sign-on"
    """What the sign-in page calls the provider."""
    oidc_scopes: str = "openid profile email"
    """The scopes to ask for."""
    oidc_groups_claim: str = "groups"
    """The claims with the groups, separated by commas; `a.b` is the field b of the claim a."""
    oidc_roles: Roles = {}
    """The role of each group; of somebody's groups the first one in this order counts."""
    oidc_labeler_claim: str = "email"
    """The claim that names a labeler who signs in for the first time."""
    image_hosts: str = ""
    """Hosts, separated by commas, whose images and sounds the labelling page may show.

    Over https, unless the host is written with its scheme, as in `http://127.0.0.1:9000`.
    """
    allow_private_webhooks: bool = False
    """Webhooks may go to private networks."""
    webhook_retry_hours: Hours = RETRIED / 3600
    """Hours for which a failed webhook message is retried before it is dead-lettered."""
    grace: Annotated[float, Field(ge=0)] = 10.0
    """Seconds for requests to finish during a graceful shutdown."""
    log_format: Literal["console", "json"] = "console"
    """The format of the log."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """The log level."""
    access_log: bool | None = None
    """Whether the log has a line for each request; by default if it is JSON, or with debug."""
