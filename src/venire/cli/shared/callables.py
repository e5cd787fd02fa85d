"""Policies and functions that users name.

Policies are named, or `module:Class`; functions are `package.module:function`.
A module is looked for in the folder that the command is run in, then where Python finds modules.
Only the command line imports what it is told to; the server never does.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib import import_module
from inspect import isclass
from types import ModuleType
from typing import TYPE_CHECKING, Any

from venire.errors import InputError, UnknownName

if TYPE_CHECKING:
    from venire.scheduling import Policy


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


def policy_of(text: str, seed: int = 0) -> Policy:
    """The policy of this name, or of this module and class, with its settings.

    >>> policy_of("fixed-overlap:5")
    FixedOverlap(overlap=5)
    >>> policy_of("venire:FixedOverlap:5")
    FixedOverlap(overlap=5)
    """
    from venire.scheduling import Policy
    from venire.scheduling.by_name import exported, made_of, policy_named

    name, _, rest = text.partition(":")
    wanted, *_ = rest.split(":")
    if name in exported(Policy) or not wanted.isidentifier():
        return policy_named(text, seed)
    module = _imported(name, text)
    values = {key: getattr(module, key) for key in dir(module)}
    found = {
        key: value
        for key, value in values.items()
        if isclass(value) and issubclass(value, Policy) and hasattr(value, "name")
    }
    if wanted not in found:
        raise UnknownName(f"policy of {name}", wanted, found)
    made: Policy = made_of("policy", rest, found, seed)
    return made


def _imported(name: str, text: str) -> ModuleType:
    try:
        return user_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise  # the module is there, and what it imports is not
    raise InputError(
        f"got the policy {text!r}, and there is no module {name!r}: expected a policy that "
        "`venire simulate --help` lists, or module:Class of a file in this folder"
    )
