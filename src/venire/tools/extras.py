"""The libraries of the extras, imported when they are used."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from venire.errors import MissingExtra

__all__ = ["library"]

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
