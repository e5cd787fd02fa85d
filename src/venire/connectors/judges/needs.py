"""The libraries of the extra `judges`, imported when they are used."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from venire.errors import MissingExtra

__all__ = ["library"]

#: The names under which packages are installed, where they differ from those of their modules.
_PACKAGES = {"yaml": "pyyaml", "jinja2.sandbox": "jinja2", "jinja2.meta": "jinja2"}


def library(module: str) -> Any:
    """A module, or how to install it.

    >>> library("jinja2.sandbox").SandboxedEnvironment.__name__
    'SandboxedEnvironment'
    """
    try:
        return import_module(module)
    except ImportError:
        raise MissingExtra(_PACKAGES.get(module, module), "judges") from None
