"""The server's log on stderr: venire and its libraries in one format."""

from __future__ import annotations

import logging
import sys
from typing import Final

import structlog
from structlog.stdlib import ProcessorFormatter
from structlog.typing import Processor

from venire.web.settings import ServerSettings

__all__ = ["configure_log", "library_level"]

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
