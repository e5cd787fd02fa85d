"""`venire mcp`: an MCP server through which an agent labels and asks."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from typing import Annotated

import typer

from venire.errors import InputError

__all__ = ["mcp"]

URL = "The venire server; several on one store with commas between them."


def mcp(
    url: Annotated[
        str, typer.Option(metavar="URL", help=URL, envvar="VENIRE_URL")
    ] = "http://127.0.0.1:8400",
) -> None:
    """Let an agent label, and ask for verdicts and explanations, by the Model Context Protocol.

    It speaks over standard input and output: agents start it. The key is read from VENIRE_KEY; its
    role decides which tools there are.
    """
    from venire.connectors.mcp import serve

    key = os.environ.get("VENIRE_KEY", "").strip()
    if not key:
        raise InputError("no key was given: set VENIRE_KEY, such as in the settings of the agent")
    logging.basicConfig(level=logging.WARNING, format="%(message)s", stream=sys.stderr)
    asyncio.run(serve(url, key))
