"""Programs that keep traces of LLM applications, both ways: tables, and streams in step with them.

    async with source_of("phoenix", url, "my-app", "correctness") as source:
        found = await Found.read(source)

Another program is a `Source` in a file of its own, and a line of `PROGRAMS`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final, NamedTuple

from venire.errors import InputError, UnknownName

if TYPE_CHECKING:
    from venire.connectors.traces.source import Source

__all__ = ["PROGRAMS", "Program", "source_of"]


class Program(NamedTuple):
    """The class of a program in the module of its name, and the address that it has by default."""

    kind: str
    url: str


PROGRAMS: Final = {
    "phoenix": Program("Phoenix", "http://127.0.0.1:6006"),
    "mlflow": Program("Mlflow", "http://127.0.0.1:5000"),
    "langfuse": Program("Langfuse", "http://127.0.0.1:3000"),
}


def source_of(program: str, url: str | None, project: str | None, name: str | None) -> Source:
    """The program at an address: `project` is where its traces are, `name` which annotations."""
    if program not in PROGRAMS:
        raise UnknownName("program", program, PROGRAMS)
    if not project or not name:
        raise InputError(f"{program} needs --project and --name: which annotations, and where")
    known = PROGRAMS[program]
    module = import_module(f"venire.connectors.traces.{program}")
    made: Source = getattr(module, known.kind)(url or known.url, project, name)
    return made
