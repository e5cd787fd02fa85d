"""What an operator can set about the server: options of `venire serve`, or `VENIRE_*` variables.

Streams have settings of their own, which are changed live; these are read once, at the start.
"""

from __future__ import annotations

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

__all__ = ["ServerSettings"]

MEBIBYTE = 1024 * 1024


class ServerSettings(BaseSettings):
    """The settings of one server; each is also a variable, such as `VENIRE_MAX_BODY`.

    >>> ServerSettings(max_batch=100).max_batch
    100
    """

    model_config = SettingsConfigDict(env_prefix="VENIRE_", extra="ignore")

    storage: str = Field("sqlite:///venire.db", description="Where everything is kept, a URL.")
    host: str = Field("127.0.0.1", description="The address to listen on.")
    port: int = Field(8400, ge=0, le=65535, description="The port; 0 takes a free one.")
    max_body: int = Field(8 * MEBIBYTE, ge=1024, description="Bytes in the body of a request.")
    max_batch: int = Field(20_000, ge=1, description="Items or labels in one request.")
    rate: float = Field(500.0, ge=0, description="Requests a second for each key; 0: no limit.")
    burst: int = Field(1_000, ge=1, description="Requests that a key may send at once.")
    max_waiting: int = Field(1_000, ge=1, description="Requests that wait or follow at a time.")
    max_wait: float = Field(60.0, gt=0, description="Seconds that a request may wait for news.")
    heartbeat: float = Field(15.0, gt=0, description="Seconds between signs of life on a stream.")
    session_hours: float = Field(12.0, gt=0, description="Hours until one has to sign in again.")
    secure_cookies: bool = Field(False, description="Cookies over HTTPS alone: behind a proxy.")
    image_hosts: str = Field("", description="https hosts, by commas, whose images /work may show.")
    allow_private_webhooks: bool = Field(False, description="Webhooks may go to private networks.")
    grace: float = Field(10.0, ge=0, description="Seconds to finish requests when told to stop.")
    log_format: str = Field("console", pattern="^(console|json)$", description="console or json.")
    log_level: str = Field("info", pattern="^(debug|info|warning|error)$", description="How much.")
