"""Policies on the command line: ours by name, your own as `module:Class`."""

from __future__ import annotations

from inspect import isclass
from types import ModuleType
from typing import TYPE_CHECKING

from venire.cli.imported import user_module
from venire.errors import InputError, UnknownName

if TYPE_CHECKING:
    from venire.scheduling import Policy

__all__ = ["policy_of"]


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
