"""What users name on the command line in modules of their own: `package.module:function`.

A module is looked for in the folder that the command is run in, then where Python finds modules.
Only the command line imports what it is told to; the server never does.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

from venire.errors import InputError

__all__ = ["find_callable", "user_module"]


def user_module(name: str) -> ModuleType:
    """Import a module; also from the current folder.

    >>> user_module("string").digits
    '0123456789'
    """
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)  # the processes of a sweep get it too
    return import_module(name)


def find_callable(name: str) -> Callable[[Any], Any]:
    """The callable that `package.module:function` names.

    >>> find_callable("string:capwords")("spam")
    'Spam'
    """
    module, _, attribute = name.partition(":")
    if not module or not attribute:
        raise InputError(f"got the callable {name!r}, expected package.module:function")
    try:
        found: Any = user_module(module)
        for part in attribute.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise InputError(f"cannot find the callable {name!r}: {error}") from error
    if not callable(found):
        raise InputError(f"{name!r} is {type(found).__name__}, expected a callable")
    function: Callable[[Any], Any] = found
    return function
