"""Estimators by name, as the command line takes them.

Every estimator that `venire.estimators` exports and that has a `name` is known; there is no list to
maintain.
"""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import TYPE_CHECKING, Any

from venire.errors import UnknownName

if TYPE_CHECKING:
    from venire.estimators.base import BaseEstimator

__all__ = ["method_named", "methods"]

PACKAGE = "venire.estimators"


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
    from venire.estimators.base import BaseEstimator

    package = import_module(PACKAGE)
    found: list[Any] = [getattr(package, name) for name in dir(package)]
    kinds: list[Any] = [v for v in found if inspect.isclass(v) and issubclass(v, BaseEstimator)]
    return {kind.name: kind for kind in kinds if isinstance(getattr(kind, "name", None), str)}
