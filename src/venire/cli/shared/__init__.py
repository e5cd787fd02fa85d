"""What several commands share: options, tables, stores, worlds, and what is printed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import wraps
from inspect import Parameter, signature
from typing import Annotated, Any, Final, get_type_hints

import typer

from venire.errors import InputError

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]

#: The server of the commands that talk to one, where neither they nor a variable name another.
HERE: Final = "http://127.0.0.1:8400"
SERVER: Final = "The venire server; several on one store with commas between them."
ADMIN_KEY: Final = "An admin key; preferably given as VENIRE_KEY."
UNTIL_IDLE: Final = "Stop after this many seconds without work."
Url = Annotated[str, typer.Option(metavar="URL", help=SERVER, envvar="VENIRE_URL")]
AdminKey = Annotated[str, typer.Option(metavar="KEY", help=ADMIN_KEY, envvar="VENIRE_KEY")]
UntilIdle = Annotated[float | None, typer.Option(metavar="SECONDS", help=UNTIL_IDLE, min=0)]


def check_key(key: str) -> None:
    if not key:
        raise InputError("no key was given: use --key, or set VENIRE_KEY")


def expanded(command: Callable[..., Any]) -> Callable[..., Any]:
    """A command that takes the fields of its classes of options, and makes these of them.

    >>> from venire.cli.judge import judge
    >>> [name for name in signature(expanded(judge)).parameters][:4]
    ['items', 'config', 'out', 'budget']
    """
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: kind for name, kind in hints.items() if is_dataclass(kind)}
    parameters = []
    for own in signature(command).parameters.values():
        if own.name not in groups:
            parameters.append(own.replace(annotation=hints[own.name]))
            continue
        inner = get_type_hints(groups[own.name], include_extras=True)
        parameters += [
            Parameter(f.name, own.kind, default=f.default, annotation=inner[f.name])
            for f in fields(groups[own.name])
        ]
    shape = signature(command).replace(parameters=parameters)

    @wraps(command)
    def run(*args: Any, **options: Any) -> Any:
        bound = shape.bind(*args, **options)
        given = dict(bound.arguments)
        for name, kind in groups.items():
            mine = [field.name for field in fields(kind) if field.name in given]
            given[name] = kind(**{field: given.pop(field) for field in mine})
        return command(**given)

    run.__signature__ = shape  # type: ignore[attr-defined]
    run.__annotations__ = {own.name: own.annotation for own in parameters}
    return run
