"""Names of a package that are loaded when they are first used.

A package says once, under `if TYPE_CHECKING`, which names it has and where they come from:

    if TYPE_CHECKING:
        from venire.scheduling.policies.greedy import Greedy as Greedy
    else:
        __getattr__, __dir__ = attach(__name__)

Type checkers read those imports. At run time they are read from the source as well, when a name
is asked for, so there is no second list to keep, and importing the package loads nothing.

`library` imports those of the extras, when they are used.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from venire.errors import MissingExtra

#: The names under which packages are installed, where they differ from those of their modules.
_PACKAGES = {"sklearn": "scikit-learn", "yaml": "pyyaml"}


def library(module: str, extra: str) -> Any:
    """A module, or how to install the extra that brings it.

    >>> library("json", "data").__name__
    'json'
    """
    try:
        return import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        raise MissingExtra(_PACKAGES.get(package, package), extra) from None


def attach(package: str, *others: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a package whose names are loaded when they are used.

    `others` are names that the package has anyway, for `dir`.

    >>> find, names = attach("venire.scheduling")
    >>> "Greedy" in names(), find("Greedy").__module__
    (True, 'venire.scheduling.policies.greedy')
    """

    def find(name: str) -> Any:
        if name == "__all__":
            return sorted(_homes(package))
        if name.startswith("__") or name not in _homes(package):
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(_homes(package)[name]), name)

    def names() -> list[str]:
        return sorted([*_homes(package), *others])

    return find, names


@cache
def _homes(package: str) -> dict[str, str]:
    """The module of each name, read from the source of the package."""
    import ast  # not needed to import the package

    spec = find_spec(package)
    source = spec.loader.get_source(package) if spec and spec.loader else None  # type: ignore[attr-defined]
    if source is None:
        raise ImportError(f"the source of {package} is missing, from which its names are read")
    return {
        alias.name: node.module or ""
        for block in ast.parse(source).body
        if isinstance(block, ast.If) and getattr(block.test, "id", None) == "TYPE_CHECKING"
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
