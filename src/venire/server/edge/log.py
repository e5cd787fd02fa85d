"""The server's log on stderr: venire and its libraries in one format."""

from __future__ import annotations

import difflib
import json
import logging
import sys
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Final

import structlog
from structlog.stdlib import ProcessorFormatter
from structlog.typing import Processor

from venire.server.edge.settings import ServerSettings

__all__ = ["as_line", "configure_log", "library_level", "unknown_variables"]

#: Variables that are no settings of the server.
OTHERS: Final = frozenset({"VENIRE_CONFIG", "VENIRE_DATA", "VENIRE_KEY", "VENIRE_URL"})

#: Libraries that log every migration, and every webhook that is sent.
CHATTY: Final = ("alembic", "httpx2")


def configure_log(settings: ServerSettings) -> None:
    """Configure logging as the settings say."""
    level = getattr(logging, settings.log_level.upper())
    as_json = settings.log_format == "json"
    first: list[Processor] = [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    if as_json:
        first.append(structlog.processors.format_exc_info)
    render = _renderer(as_json)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.add_logger_name, *first],
            processors=[ProcessorFormatter.remove_processors_meta, render],
        )
    )
    logging.basicConfig(level=level, handlers=[handler], force=True)
    for name in CHATTY:
        logging.getLogger(name).setLevel(library_level(settings).upper())
    structlog.configure(
        processors=[*first, render],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(file=sys.stderr),
    )


def as_line(settings: ServerSettings, said: str) -> str:
    """A line for the operator on stdout: as it is, or as a JSON object like those of the log.

    >>> as_line(ServerSettings(log_format="console"), "listening on http://127.0.0.1:8400")
    'listening on http://127.0.0.1:8400'
    >>> json.loads(as_line(ServerSettings(log_format="json"), "stopped"))["event"]
    'stopped'
    """
    if settings.log_format != "json":
        return said
    moment = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    return json.dumps({"event": said, "level": "info", "timestamp": moment})


def unknown_variables(environment: Iterable[str]) -> Iterator[tuple[str, str | None]]:
    """Variables that begin with VENIRE_ and are nothing, each with the one that may be meant.

    >>> list(unknown_variables(["VENIRE_PROT", "VENIRE_PORT", "VENIRE_KEY", "PATH"]))
    [('VENIRE_PROT', 'VENIRE_PORT')]
    """
    known = {f"VENIRE_{name.upper()}" for name in ServerSettings.model_fields} | OTHERS
    for name in sorted(environment):
        if name.upper().startswith("VENIRE_") and name.upper() not in known:
            near = difflib.get_close_matches(name.upper(), known, n=1, cutoff=0.8)
            yield name, near[0] if near else None


def library_level(settings: ServerSettings) -> str:
    """The log level of libraries: warnings only by default, the same as ours otherwise.

    >>> library_level(ServerSettings(log_level="info"))
    'warning'
    """
    return "warning" if settings.log_level == "info" else settings.log_level


def _renderer(as_json: bool) -> Processor:
    if as_json:
        return structlog.processors.JSONRenderer()
    return structlog.dev.ConsoleRenderer(
        colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
    )
