"""The table of docs/operations.md: `python -m tools.operations` writes it.

It comes from `venire.operations`, and what each does from the OpenAPI document.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from venire.model import Role
from venire.operations import OPERATIONS
from venire.server import Service
from venire.server.app import create_app
from venire.server.store import open_storage

__all__ = ["PAGE", "page"]

PAGE: Final = Path(__file__).parent.parent / "docs" / "operations.md"
HEAD: Final = """# Operations of a server

For everyone who writes a client. Every operation of the HTTP API is here, with the method of
`venire.Client` and `venire.AsyncClient` (in brackets where they have none), who may use it, and the
tool under which [agents](mcp.md) have it. Bodies and replies are in the OpenAPI document of a
server (`/docs`, `/openapi.json`).

This page is made of [operations.py](../src/venire/operations.py) by `python -m tools.operations`.

| method | request | roles | what it does | tool |
|-|-|-|-|-|
"""
#: Operations that clients have no method for.
WITHOUT: Final = frozenset(
    {"events", "export_audit", "health", "metrics", "openapi", "ready", "version"}
)


def page() -> str:
    """The whole page."""
    described = create_app(Service(open_storage("memory:"))).openapi()["paths"]
    lines = []
    for one in OPERATIONS.values():
        about = described[one.path][one.method.lower()]["description"].partition("\n")[0]
        name = f"({one.name})" if one.name in WITHOUT else f"`{one.name}`"
        tool = f"`{one.tool}`" if one.tool else ""
        lines.append(f"| {name} | `{one.route}` | {_who(one.roles)} | {about} | {tool} |\n")
    return HEAD + "".join(lines)


def _who(roles: frozenset[Role] | None) -> str:
    """Roles in words."""
    if roles is None:
        return "no key"
    return "all" if roles == frozenset(Role) else ", ".join(sorted(roles))


if __name__ == "__main__":
    PAGE.write_text(page())
