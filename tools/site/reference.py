"""Reference pages made from the code, so that they cannot lag behind it.

The library comes from the docstrings of every public name, the commands from their own help, the
HTTP API from its OpenAPI document.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

__all__ = ["commands", "http_api", "library", "pages"]


def pages(root: Path) -> dict[str, str]:
    """All of them, by their place in the site."""
    found = {"reference/commands.md": commands(), "reference/http.md": http_api()}
    return found | library(root)


def library(root: Path) -> dict[str, str]:
    """A page for each package that public names come from, and one that lists them."""
    parts: dict[str, list[str]] = {}
    tree = ast.parse((root / "src/venire/__init__.py").read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("venire."):
            package = node.module.split(".")[1]
            names = [a.asname for a in node.names if a.asname]
            parts.setdefault(package, []).extend(f"{node.module}.{name}" for name in names)
    found = {f"reference/library/{name}.md": _package(name, parts[name]) for name in parts}
    toctree = ["```{toctree}", *(f"library/{name}" for name in sorted(parts)), "```"]
    about = "Every public name of the library, by its docstring: `import venire as vn`, `vn.NAME`."
    found["reference/library.md"] = "\n\n".join(["# Library", about, "\n".join(toctree)])
    return found


def _package(package: str, names: list[str]) -> str:
    return "\n\n".join([f"# {package}", *map(_entry, names)])


def _entry(name: str) -> str:
    module, _, last = name.rpartition(".")
    made = getattr(import_module(module), last)
    kind, more = "autodata", ""
    if inspect.isclass(made):
        kind = "autoexception" if issubclass(made, BaseException) else "autoclass"
        more = "\n   :members:\n   :inherited-members: object, Exception, BaseException"
    elif callable(made):
        kind = "autofunction"
    return f"## {last}\n\n```{{eval-rst}}\n.. {kind}:: {name}{more}\n```"


def commands() -> str:
    """Every command, with its arguments and options, by its own help."""
    import typer

    from venire.cli import make_app

    group: Any = typer.main.get_command(make_app())
    lines = ["# Commands", "Made from the help of each command: `venire COMMAND --help`."]
    lines += _commands("venire", group)
    return "\n\n".join(lines)


def _commands(prefix: str, group: Any) -> Iterator[str]:
    for name, command in group.commands.items():
        yield f"{'##' if prefix == 'venire' else '###'} {prefix} {name}"
        yield inspect.cleandoc(command.help or "")
        if hasattr(command, "commands"):
            yield from _commands(f"{prefix} {name}", command)
            continue
        rows = [_option(p) for p in command.params if not getattr(p, "hidden", False)]
        yield "\n".join(["| option | meaning | default |", "|-|-|-|", *rows])


def _option(parameter: Any) -> str:
    named = parameter.param_type_name == "option"
    words = " ".join(f"`{o}`" for o in (*parameter.opts, *parameter.secondary_opts))
    name = words if named else f"`{parameter.name.upper()}`"
    default = parameter.default
    given = "" if default in (None, (), []) or callable(default) else f"`{default}`"
    return f"| {name} | {_cell(getattr(parameter, 'help', None) or '')} | {given} |"


def http_api() -> str:
    """Every route, with its roles, parameters and body, by the OpenAPI document."""
    from venire.server import Service
    from venire.server.app import create_app
    from venire.server.pages.pages import sections
    from venire.server.store import open_storage

    lines = ["# HTTP API", "Made from the OpenAPI document, which a server has at `/openapi.json`."]
    described = create_app(Service(open_storage("memory:"))).openapi()
    for tag, operations in sections(described).items():
        lines.append(f"## {tag}")
        for o in operations:
            lines += [f"### {o.method} {o.path}", o.summary, f"Roles: {', '.join(o.roles)}."]
            for title, rows in (("parameter", o.parameters), ("field", o.fields)):
                if rows:
                    head = [f"| {title} | type | required | meaning |", "|-|-|-|-|"]
                    cells = (
                        f"| `{r.name}` | {_cell(r.kind)} | {'yes' if r.needed else ''} | "
                        f"{_cell(r.text)} |"
                        for r in rows
                    )
                    lines.append("\n".join([*head, *cells]))
            if o.example:
                lines.append(f"```json\n{o.example}\n```")
            answers = (f"- `{status}` {text}" for status, text in o.answers)
            lines.append("\n".join(answers))
    return "\n\n".join(lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
