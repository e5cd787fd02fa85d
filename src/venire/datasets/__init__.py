"""Your own data and public label sets.

Readers check everything first, writers write all or nothing. Names are loaded when they are
first used, so that `venire datasets list` needs no NumPy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from venire.datasets.items import ItemTable, read_items
    from venire.datasets.library import cache_folder, fetch, load, path_of
    from venire.datasets.panel import read_panel
    from venire.datasets.registry import DataSet, data_set, data_sets
    from venire.datasets.results import (
        Output,
        assignments_output,
        check_targets,
        exits_output,
        write_outputs,
    )
    from venire.datasets.verdicts import columns_output, skills_output, verdicts_output

_HOME = {
    "items": ("ItemTable", "read_items"),
    "library": ("cache_folder", "fetch", "load", "path_of"),
    "panel": ("read_panel",),
    "registry": ("DataSet", "data_set", "data_sets"),
    "results": (
        "Output",
        "assignments_output",
        "check_targets",
        "exits_output",
        "write_outputs",
    ),
    "verdicts": ("columns_output", "skills_output", "verdicts_output"),
}
_MODULE = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "DataSet",
    "ItemTable",
    "Output",
    "assignments_output",
    "cache_folder",
    "check_targets",
    "columns_output",
    "data_set",
    "data_sets",
    "exits_output",
    "fetch",
    "load",
    "path_of",
    "read_items",
    "read_panel",
    "skills_output",
    "verdicts_output",
    "write_outputs",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULE[name]}"), name)


def __dir__() -> list[str]:
    return __all__
