"""The `venire` command line: a function for each command, what they share in `shared`.

A command is a function in the module of the same name, listed in `COMMANDS`; `ELSEWHERE` has the
place of those that are in another module. Modules are imported on demand, and import heavy
dependencies inside their functions, so that `venire --help` is quick.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Annotated, Any

import typer

from venire import __version__
from venire.cli.shared import expanded, screen
from venire.cli.shared.stores import defaults_of
from venire.errors import VenireError

__all__ = ["COMMANDS", "command_of", "main", "make_app"]

COMMANDS = (
    "demo",
    "aggregate",
    "ask",
    "label",
    "judge",
    "rank",
    "panel",
    "audit",
    "estimate",
    "datasets",
    "simulate",
    "compare",
    "plan",
    "reproduce",
    "replay",
    "verify",
    "export",
    "backup",
    "archive",
    "keys",
    "serve",
    "deploy-files",
    "stream",
    "send",
    "work",
    "mcp",
    "connect",
    "import",
    "warm-up",
)

#: The functions of commands that are not in a module with the name of the command.
ELSEWHERE = {
    "archive": "venire.cli.store:archive",
    "backup": "venire.cli.store:backup",
    "compare": "venire_research.commands.compare:compare",
    "connect": "venire.cli.work:connect",
    "demo": "venire_research.commands.demo:demo",
    "deploy-files": "venire.cli.serve:deploy_files",
    "import": "venire.cli.export:importing",
    "judge": "venire.cli.label:judge",
    "keys": "venire.cli.store:keys",
    "mcp": "venire.cli.work:mcp",
    "plan": "venire.cli.simulate:plan",
    "replay": "venire.cli.simulate:replay",
    "reproduce": "venire_research.commands.reproduce:reproduce",
    "send": "venire.cli.stream:send",
    "verify": "venire.cli.store:verify",
    "warm-up": "venire.cli.serve:warm_up",
}

#: Typer's own errors about options and arguments.
_USAGE_ERROR: Any = typer.BadParameter.__mro__[1]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code: 0, 2 for an error, 130 for Ctrl-C.

    >>> main(["--version"])
    venire ...
    0
    """
    args = list(sys.argv[1:] if argv is None else argv)
    commands = tuple(args[:1]) if args and args[0] in COMMANDS else COMMANDS
    with warnings.catch_warnings(), screen.interruptible():
        warnings.showwarning = screen.show_warning
        try:
            command = typer.main.get_command(make_app(commands))
            defaults = defaults_of(args[0] if args else None)
            options: Any = {"standalone_mode": False, "default_map": defaults}
            code = command.main(args, prog_name="venire", **options) or 0
        except VenireError as error:
            return screen.fail(str(error))
        except _USAGE_ERROR as error:
            return screen.fail(error.format_message())
        except RecursionError:
            return screen.fail("something in a file is nested too deeply to be read")
        except UnicodeEncodeError as error:
            half = f"{error.object[error.start : error.end]!r}"
            return screen.fail(f"a text has {half}, half of a character: replace it")
        except MemoryError as error:
            return screen.fail(f"not enough memory ({error}): try fewer slots, items or labels")
        except (KeyboardInterrupt, typer.Abort):
            code = screen.INTERRUPTED
    if code == screen.INTERRUPTED:
        screen.say("interrupted")
    return int(code)


def make_app(commands: Sequence[str] = COMMANDS) -> typer.Typer:
    """The command line with these commands."""
    app = typer.Typer(
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )
    app.callback(invoke_without_command=True)(_venire)
    for command in commands:
        app.command(command)(command_of(command))
    return app


def command_of(name: str) -> Callable[..., Any]:
    """The function that a command runs.

    >>> command_of("backup").__module__
    'venire.cli.store'
    """
    module, _, function = ELSEWHERE.get(name, f"{__name__}.{name}:{name}").partition(":")
    return expanded(getattr(import_module(module), function))


def _venire(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """Assign labelers to the items of a stream, and learn how good they are.

    Slots count from 0. Errors are one line on stderr, with exit code 2.
    """
    if version:
        print(f"venire {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        print(context.get_help())
