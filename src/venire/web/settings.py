"""What an operator can set about the server: options of `venire serve`, or `VENIRE_*` variables.

Streams have settings of their own, which are changed live; these are read once, at the start.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

__all__ = ["ServerSettings"]

MEBIBYTE = 1024 * 1024

Positive = Annotated[int, Field(ge=1)]
Seconds = Annotated[float, Field(gt=0)]


class ServerSettings(BaseSettings):
    """The settings of one server; each is also a variable, such as `VENIRE_MAX_BODY`.

    >>> ServerSettings(max_batch=100).max_batch
    100
    """

    model_config = SettingsConfigDict(
        env_prefix="VENIRE_", extra="ignore", use_attribute_docstrings=True
    )

    storage: str = "sqlite:///venire.db"
    """Where everything is kept, a URL."""
    host: str = "127.0.0.1"
    """The address to listen on."""
    port: Annotated[int, Field(ge=0, le=65535)] = 8400
    """The port; 0 takes a free one."""
    max_body: Annotated[int, Field(ge=1024)] = 8 * MEBIBYTE
    """Bytes in the body of a request."""
    max_batch: Positive = 20_000
    """Items or labels in one request."""
    max_labelers: Positive = 10_000
    """Labelers that may come to a stream by asking or by sending labels."""
    rate: Annotated[float, Field(ge=0)] = 500.0
    """Requests a second for each key; 0 for no limit."""
    burst: Positive = 1_000
    """Requests that a key may send at once."""
    max_waiting: Positive = 1_000
    """Requests that wait for news, or follow them, at a time."""
    max_wait: Seconds = 60.0
    """Seconds that a request may wait for news."""
    heartbeat: Seconds = 15.0
    """Seconds between signs of life for those who follow events."""
    session_hours: Seconds = 12.0
    """Hours after which people have to sign in again."""
    secure_cookies: bool = False
    """Send cookies over HTTPS alone: set it behind a proxy that speaks HTTPS."""
    image_hosts: str = ""
    """Hosts, separated by commas, whose images the labelling page may show.

    Over https, unless the host is written with its scheme, as in `http://127.0.0.1:9000`.
    """
    allow_private_webhooks: bool = False
    """Webhooks may go to private networks."""
    grace: Annotated[float, Field(ge=0)] = 10.0
    """Seconds for requests to finish when the server is told to stop."""
    log_format: Literal["console", "json"] = "console"
    """How the log is written."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """From which level on."""
