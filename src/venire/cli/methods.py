"""Ways of aggregating labels by name, as the command line takes them.

Whatever `venire.aggregation` and `venire.competence` export and that has a `name` is known;
there is no list to keep.
"""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import TYPE_CHECKING, Any

from venire.errors import UnknownName

if TYPE_CHECKING:
    from venire.competence.base import BaseEstimator

__all__ = ["method_named", "methods"]

PACKAGES = ("venire.aggregation", "venire.competence")


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
    from venire.competence.base import BaseEstimator

    modules = [import_module(package) for package in PACKAGES]
    found: list[Any] = [getattr(module, name) for module in modules for name in dir(module)]
    kinds: list[Any] = [v for v in found if inspect.isclass(v) and issubclass(v, BaseEstimator)]
    return {kind.name: kind for kind in kinds if isinstance(getattr(kind, "name", None), str)}
