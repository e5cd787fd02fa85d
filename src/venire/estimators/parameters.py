"""The parameters of an estimator by name, as scikit-learn asks for them."""

from __future__ import annotations

import inspect
from typing import Any, Self

from venire.errors import UnknownName

__all__ = ["Parameters"]


class Parameters:
    """`get_params` and `set_params`, so that scikit-learn's `clone` and searches work.

    >>> from venire import OneCoin
    >>> OneCoin(tol=1e-3).get_params()["tol"]
    0.001
    >>> OneCoin().set_params(max_iter=7).max_iter
    7
    >>> OneCoin().set_params(max_itr=7)
    Traceback (most recent call last):
    venire.errors.UnknownName: unknown parameter 'max_itr': did you mean 'max_iter'? Known: ...
    """

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """What the constructor was given; with `deep` also that of estimators among it."""
        known = list(inspect.signature(type(self).__init__).parameters)[1:]
        found = {name: getattr(self, name) for name in known}
        for name, value in list(found.items()) if deep else ():
            if isinstance(value, Parameters):
                found |= {f"{name}__{inner}": x for inner, x in value.get_params().items()}
        return found

    def set_params(self, **parameters: Any) -> Self:
        """Change some of them, which takes effect at the next `fit`."""
        known = self.get_params()
        for name in parameters:
            if name not in known:
                raise UnknownName("parameter", name, known)
        for name, value in parameters.items():
            owner, _, inner = name.rpartition("__")
            if owner:
                known[owner].set_params(**{inner: value})
            else:
                setattr(self, name, value)
        return self
