"""What several commands share: options, tables, stores, policies by name, and what is printed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
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


def first_given(options: Mapping[str, Any]) -> str | None:
    """The name of the first option that was given.

    >>> first_given({"--seed": None, "--wide": False, "--at-least": 0})
    '--at-least'
    """
    return next((name for name, x in options.items() if x is not None and x is not False), None)


def counted(number: int, what: str) -> str:
    """A number of things.

    >>> counted(1, "task"), counted(2000, "task")
    ('1 task', '2,000 tasks')
    """
    return f"{number:,} {what}" + ("" if number == 1 else "s")


def expanded(command: Callable[..., Any]) -> Callable[..., Any]:
    """A command that takes the fields of its classes of options, and makes these of them.

    >>> from venire.cli.label import judge
    >>> [name for name in signature(expanded(judge)).parameters][:4]
    ['items', 'config', 'out', 'budget']
    """
    hints = get_type_hints(command, include_extras=True)
    own = signature(command)
    parameters = [
        option for each in own.parameters.values() for option in _options(each, hints[each.name])
    ]
    shape = own.replace(parameters=parameters)

    @wraps(command)
    def run(*args: Any, **options: Any) -> Any:
        bound = shape.bind(*args, **options)
        bound.apply_defaults()
        return command(
            **{name: _made(hints[name], name, bound.arguments) for name in own.parameters}
        )

    run.__signature__ = shape  # type: ignore[attr-defined]
    run.__annotations__ = {option.name: option.annotation for option in parameters}
    return run


def _options(parameter: Parameter, kind: Any) -> Iterator[Parameter]:
    """A parameter, or those of its class of options, which may have others in it."""
    if not is_dataclass(kind):
        yield parameter.replace(annotation=kind)
        return
    hints = get_type_hints(kind, include_extras=True)
    for field in fields(kind):
        default = Parameter.empty if field.default is MISSING else field.default
        yield from _options(parameter.replace(name=field.name, default=default), hints[field.name])


def _made(kind: Any, name: str, given: Mapping[str, Any]) -> Any:
    if not is_dataclass(kind):
        return given[name]
    hints = get_type_hints(kind)
    made: Callable[..., Any] = kind  # type: ignore[assignment] # not an instance of one
    return made(
        **{field.name: _made(hints[field.name], field.name, given) for field in fields(kind)}
    )
