"""Policies, ways of learning and estimators as plain data, and back.

What venire exports is kept as the name of its class and what its constructor was given:

    {"class": "LearnThenServe", "settings": {"slots": 5, "estimator": {"class": "OneCoin", ...}}}

Numbers, words and lists are themselves; tuples, mappings and arrays are written so that they come
back as what they were. Nothing else can be kept: a class of a user's own, or a function, is refused
here, since it could not be made again from the data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from venire import estimators, model, scheduling
from venire.errors import InputError, VenireError
from venire.estimators.parameters import Parameters

__all__ = ["from_data", "to_data"]

#: Where classes are looked for, by the names that these export.
_HOMES = (scheduling, estimators, model)


def to_data(value: Any, what: str) -> Any:
    """A value as plain data; `what` it is, for the error message.

    >>> from venire import LearnWhileServing
    >>> to_data(LearnWhileServing(prior=(9, 1)), "learning")["settings"]["prior"]
    {'tuple': [9, 1]}
    >>> to_data(print, "policy")
    Traceback (most recent call last):
    venire.errors.InputError: got a builtin_function_or_method as policy, which is not one of ...
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic) and value.dtype.kind in "biuf":
        return value.item()
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        return {"array": value.tolist(), "dtype": value.dtype.str, "shape": list(value.shape)}
    if isinstance(value, list | tuple):
        parts = [to_data(part, f"{what}[{k}]") for k, part in enumerate(value)]
        return parts if type(value) is list else {"tuple": parts}
    if isinstance(value, Mapping):
        pairs = [(to_data(k, what), to_data(x, f"{what}[{k!r}]")) for k, x in value.items()]
        return {"mapping": [list(pair) for pair in pairs]}
    return _object(value, what)


def _object(value: Any, what: str) -> dict[str, Any]:
    name = type(value).__name__
    if _exported(name) is not type(value):
        raise InputError(
            f"got a {name} as {what}, which is not one of venire's own: a snapshot cannot keep it. "
            "Keep the log instead (Scheduler.log), and replay it with a scheduler made the same way"
        )
    given = _given(value).items()
    return {"class": name, "settings": {key: to_data(x, f"{what}.{key}") for key, x in given}}


def _given(value: Any) -> dict[str, Any]:
    """What the constructor was given."""
    if isinstance(value, Parameters):
        return value.get_params(deep=False)
    own = fields(value) if is_dataclass(value) else ()
    return {f.name: getattr(value, f.name) for f in own if f.init}


def _exported(name: str) -> type | None:
    """The class that venire exports by this name."""
    for home in _HOMES:
        found = getattr(home, name) if name in home.__all__ else None
        if isinstance(found, type):
            return found
    return None


def from_data(data: Any) -> Any:
    """What `to_data` was given.

    >>> from_data({"class": "FixedOverlap", "settings": {"overlap": 5}})
    FixedOverlap(overlap=5)
    """
    if isinstance(data, list):
        return [from_data(part) for part in data]
    if not isinstance(data, dict):
        return data
    if "tuple" in data:
        return tuple(from_data(part) for part in data["tuple"])
    if "mapping" in data:
        return {from_data(key): from_data(x) for key, x in data["mapping"]}
    if "array" in data:
        return np.array(data["array"], data["dtype"]).reshape(data["shape"])
    return _made(data["class"], {key: from_data(x) for key, x in data["settings"].items()})


def _made(name: str, settings: dict[str, Any]) -> Any:
    made = _exported(name)
    try:
        if made is None:
            raise TypeError(f"there is no class {name!r}")
        return made(**settings)
    except (TypeError, VenireError) as error:
        raise InputError(
            f"got a snapshot with settings that cannot be read ({error}): another "
            "version wrote it, replay the log instead"
        ) from error
