"""What a model is shown of an item: one field, several fields as numbers, or all of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from venire.batch import NoAnswer
from venire.errors import InputError

__all__ = ["Inputs"]

#: After this number of items without the field, and none with it, the name of the field is wrong.
NEVER: Final = 10


class Inputs:
    """The field or fields of an item that a model sees; None for the item as it is.

    >>> Inputs("text").of({"id": "a", "text": "Buy now!"})
    'Buy now!'
    >>> Inputs(["height", "width"]).of({"height": 2, "width": "3.5"})
    [2.0, 3.5]
    """

    def __init__(self, fields: str | Sequence[str] | None = None) -> None:
        """One name, or a list of names of numbers."""
        names = [fields] if isinstance(fields, str) else fields or []
        if not all(isinstance(name, str) and name for name in names):
            raise InputError(f"got input {fields!r}, expected a field of the items, or a list")
        self.fields = fields
        self._missing: int | None = 0

    def of(self, item: Any) -> Any:
        """What the model is shown; raises `NoAnswer` for an item without it."""
        if self.fields is None:
            return item
        if isinstance(self.fields, str):
            return self._field(item, self.fields)
        return [self._number(item, name) for name in self.fields]

    def _field(self, item: Any, name: str) -> Any:
        found = item.get(name) if isinstance(item, Mapping) else None
        if found is not None and found != "":
            self._missing = None
            return found
        if self._missing is not None:
            self._missing += 1
            if self._missing >= NEVER:
                has = sorted(map(str, item)) if isinstance(item, Mapping) else repr(item)[:80]
                raise InputError(
                    f"none of {self._missing} items has the field {name!r}: they have {has}"
                )
        raise NoAnswer(f"the item has no {name}")

    def _number(self, item: Any, name: str) -> float:
        found = self._field(item, name)
        try:
            return float(found)
        except (TypeError, ValueError):
            raise NoAnswer(f"{name} is {str(found)[:80]!r}, expected a number") from None
