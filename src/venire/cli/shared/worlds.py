"""The world that options describe, and policies and functions that users name.

Policies are named, or `module:Class`; functions are `package.module:function`.
A module is looked for in the folder that the command is run in, then where Python finds modules.
Only the command line imports what it is told to; the server never does.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module
from inspect import isclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from venire.cli.shared import screen
from venire.errors import InputError, UnknownName

if TYPE_CHECKING:
    from venire.model import Labeler
    from venire.scheduling import Policy
    from venire.simulation import World


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


PANEL = "Your labelers: CSV with labeler,competence and optionally capacity, price."


def make_world(
    items: Path | None,
    panel: Path | None,
    classes: Sequence[str] | None,
    arrivals: str | None,
    weights: str | None,
    slots: int,
    seed: int,
) -> World:
    """Your own items and panel, the synthetic stream with your panel, or all synthetic."""
    if items is None:
        return _synthetic(panel, classes, arrivals, weights, seed)
    if panel is None:
        raise InputError("--items needs --panel: give the labelers in a file of their own")
    for option, given in (("--arrivals", arrivals), ("--weights", weights)):
        if given is not None:
            raise InputError(f"--items and {option} exclude each other: {items} has its own")
    return _trace(items, panel, classes, slots, seed)


def _trace(items: Path, panel: Path, classes: Sequence[str] | None, slots: int, seed: int) -> World:
    from venire.files import read_items, read_panel
    from venire.simulation import World

    labelers = read_panel(panel)
    table = read_items(items, [labeler.id for labeler in labelers], slots, classes)
    return World.columns(
        table.ids,
        table.arrival,
        table.weight,
        labelers,
        table.allowed,
        table.truth,
        table.classes,
        seed,
    )


def _synthetic(
    panel: Path | None,
    classes: Sequence[str] | None,
    arrivals: str | None,
    weights: str | None,
    seed: int,
) -> World:
    from venire.files import read_panel
    from venire.simulation import World
    from venire.simulation.world import arrivals_named, weights_named

    world = World.synthetic(
        seed,
        arrivals=arrivals_named(arrivals or "poisson:5"),
        weights=weights_named(weights or "3-10"),
        classes=len(classes or (1, 2)),
    )
    if panel is not None:
        world = replace(world, panel=read_panel(panel))
    return replace(world, classes=tuple(classes)) if classes else world


def names_of(text: str | None) -> tuple[str, ...] | None:
    """The classes in `a,b,c`; None for None."""
    if text is None:
        return None
    names = tuple(name.strip() for name in text.split(","))
    if len(names) < 2 or "" in names or len(set(names)) < len(names):
        raise InputError(f"got --classes {text!r}, expected two names or more, such as spam,ok")
    return names


def warn_below_chance(panel: Sequence[Labeler], classes: int) -> None:
    low = [who.id for who in panel if (who.competence or 0) <= 1 / classes]
    if not low:
        return
    names = ", ".join(low[:3]) + (f" and {len(low) - 3} more" if len(low) > 3 else "")
    verb = "is" if len(low) == 1 else "are"
    screen.warn(
        f"{names} {verb} at or below chance ({1 / classes:.3g} with {classes} classes): utility "
        "gives no credit for such labels"
    )
