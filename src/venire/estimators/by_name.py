"""Estimators by name, as the command line and settings take them.

Every estimator that `venire.estimators` exports and that has a `name` is known; there is no list to
maintain.
"""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any

from venire.errors import InputError, UnknownName
from venire.estimators.base import BaseEstimator

PACKAGE = "venire.estimators"


def estimator_of(given: BaseEstimator | str) -> BaseEstimator:
    """An estimator, by name or as it is.

    >>> estimator_of("majority")
    MajorityVote()
    >>> estimator_of(len)
    Traceback (most recent call last):
    venire.errors.InputError: got estimator=<built-in function len>, expected a name such as ...
    """
    if isinstance(given, str):
        return method_named(given)
    if not isinstance(given, BaseEstimator):
        raise InputError(
            f"got estimator={given!r}, expected a name such as 'one-coin', or an object such as "
            "venire.OneCoin()"
        )
    return given


def method_named(name: str) -> BaseEstimator:
    """The estimator of this name, with its own defaults.

    >>> method_named("majorty")
    Traceback (most recent call last):
    venire.errors.UnknownName: unknown method 'majorty': did you mean 'majority'? Known: ...
    """
    known = methods()
    if name not in known:
        raise UnknownName("method", name, known)
    made: BaseEstimator = known[name]()
    return made


def methods() -> dict[str, type[Any]]:
    """The estimators by name.

    >>> "one-coin" in methods()
    True
    """
    package = import_module(PACKAGE)
    found: list[Any] = [getattr(package, name) for name in dir(package)]
    kinds: list[Any] = [v for v in found if inspect.isclass(v) and issubclass(v, BaseEstimator)]
    return {kind.name: kind for kind in kinds if isinstance(getattr(kind, "name", None), str)}
