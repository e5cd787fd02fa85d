"""Policies and ways of learning by name, as the command line, `simulate` and `Scheduler` take them.

A name is the class's own `name`, followed by its settings (the dataclass fields that are
numbers or words, without the seed) separated by colons: `fixed-overlap:5`, `then-serve:45`,
`while-serving:one-coin`. A setting that may be None is then written `none`. Whatever
`venire.scheduling` exports is known; there is no list to keep.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from venire import scheduling
from venire.errors import InputError, UnknownName
from venire.scheduling.base import Learning, Policy

#: The name for competences that are known from the start.
KNOWN = "known"

#: Settings are kept in 32 bits.
LARGEST = 2**31 - 1

T = TypeVar("T")


def policy_named(text: str, seed: int = 0) -> Policy:
    """The policy of this name with these settings; `seed` seeds it if it draws at random.

    >>> policy_named("fixed-overlap:5"), policy_named("random", seed=7)
    (FixedOverlap(overlap=5), Random(overlap=3, seed=7))
    """
    made: Policy = made_of("policy", text, exported(Policy), seed)
    return made


def learning_named(text: str, seed: int = 0) -> Learning | None:
    """The way of learning of this name; None for `known`.

    >>> learning_named("then-serve:45").slots
    45
    """
    if text == KNOWN:
        return None
    made: Learning = made_of("learning", text, exported(Learning), seed, others=(KNOWN,))
    return made


def policy_of(given: Policy | str | None) -> Policy:
    """A policy, by name or as it is; None: `Realised`.

    >>> policy_of("greedy"), policy_of(None)
    (Greedy(), Realised())
    >>> policy_of(int)
    Traceback (most recent call last):
    venire.errors.InputError: got policy=<class 'int'>, expected a name such as 'greedy', or an ...
    """
    if isinstance(given, str):
        return policy_named(given)
    made = scheduling.Realised() if given is None else given
    _check_kind("policy", made, Policy, "greedy", "Greedy()")
    return made


def learning_of(given: Learning | str | None) -> Learning | None:
    """A way of learning, by name or as it is; None and "known": competences are known.

    >>> learning_of("then-serve:45").slots, learning_of(None)
    (45, None)
    """
    if isinstance(given, str):
        return learning_named(given)
    if given is not None:
        _check_kind("learning", given, Learning, "while-serving", "LearnWhileServing()")
    return given


def _check_kind(what: str, given: object, kind: type, name: str, example: str) -> None:
    """Reject a class in place of an object, where the mistake is made."""
    if not isinstance(given, kind):
        raise InputError(
            f"got {what}={given!r}, expected a name such as {name!r}, or an object such as "
            f"venire.{example}"
        )


def exported(kind: type) -> dict[str, type[Any]]:
    """The classes of a kind that `venire.scheduling` exports, by name.

    >>> sorted(exported(Policy))  # doctest: +NORMALIZE_WHITESPACE
    ['everyone', 'fixed-overlap', 'greedy', 'lookahead', 'random', 'realised', 'realised-proxy',
     'round-robin', 'waterfill']
    """
    values: list[Any] = [getattr(scheduling, name) for name in dir(scheduling)]
    found = [v for v in values if inspect.isclass(v) and issubclass(v, kind)]
    return {cls.name: cls for cls in found if hasattr(cls, "name")}


def made_of(
    kind: str,
    text: str,
    known: Mapping[str, type[T]],
    seed: int | None = None,
    others: tuple[str, ...] = (),
) -> T:
    """Make an object of one of the known classes from `name:setting:setting`.

    >>> from venire import Greedy
    >>> made_of("policy", "greedy:3", {"greedy": Greedy})
    Traceback (most recent call last):
    venire.errors.InputError: policy 'greedy:3' has 1 setting, expected none: write greedy
    """
    name, *settings = text.split(":")
    if name not in known:
        raise UnknownName(kind, name, (*known, *others))
    cls = known[name]
    types = get_type_hints(cls)
    taken = [f for f in fields(cls) if f.name != "seed" and _written(types[f.name])]  # type: ignore[arg-type]
    _check_count(kind, text, name, settings, taken)
    values: dict[str, Any] = {
        f.name: _setting(kind, text, f.name, types[f.name], given)
        for f, given in zip(taken, settings, strict=False)
    }
    if seed is not None and "seed" in types:
        values["seed"] = seed
    return cls(**values)


def _check_count(
    kind: str, text: str, name: str, settings: list[str], taken: list[Field[Any]]
) -> None:
    needed = [f for f in taken if f.default is MISSING]
    if len(needed) <= len(settings) <= len(taken):
        return
    usage = name + "".join(
        f":{f.name.upper()}" if f in needed else f"[:{f.name.upper()}]" for f in taken
    )
    got = "1 setting" if len(settings) == 1 else f"{len(settings) or 'no'} settings"
    least = str(len(needed)) if needed else "none"
    expected = least if len(needed) == len(taken) else f"{len(needed)} to {len(taken)}"
    raise InputError(f"{kind} {text!r} has {got}, expected {expected}: write {usage}")


def _written(kind: Any) -> bool:
    """Whether a setting of this type can be written as text: a number, a known word, or none."""
    if get_origin(kind) is UnionType:
        return all(part is NoneType or _written(part) for part in get_args(kind))
    return kind in (int, float) or get_origin(kind) is Literal


def _setting(kind: str, text: str, name: str, cls: Any, given: str) -> int | float | str | None:
    if get_origin(cls) is UnionType:
        if given == "none":
            return None
        cls = next(part for part in get_args(cls) if part is not NoneType)
    if get_origin(cls) is Literal:
        if given not in get_args(cls):
            raise UnknownName(name, given, get_args(cls))
        return given
    try:
        value: int | float = int(given) if cls is int else float(given)
    except ValueError:
        value = math.nan
    if abs(value) <= LARGEST:
        return value
    expected = f"a {'whole ' if cls is int else ''}number up to {LARGEST}"
    raise InputError(f"{kind} {text!r} has {name} {given!r}, expected {expected}")
