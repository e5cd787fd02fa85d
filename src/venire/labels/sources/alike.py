"""Labels that look alike and are different values: 1, 1.0 and True; Yes and "yes "."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Sequence
from typing import Any

import numpy as np

from venire.labels.sources.coding import Coded
from venire.tools.csv_rows import number

__all__ = ["alike", "alike_words", "merged", "merged_values"]

#: How booleans are written, and the numbers that they may stand for.
_TRUTHS = {"true": 1.0, "false": 0.0}


def alike(names: Iterable[Any]) -> list[list[Any]]:
    """The groups of names that look alike, each in the order of the names.

    >>> alike(["1", "1.0", "True", "no", " NO", "maybe"])
    [['1', '1.0', 'True'], ['no', ' NO']]
    >>> alike(["yes", "no", "true"])
    []
    """
    listed = list(names)
    numeric = any(isinstance(_key(name), float) and not _is_truth(name) for name in listed)
    groups: dict[Hashable, list[Any]] = {}
    for name in listed:
        key = _key(name)
        if _is_truth(name):
            key = _TRUTHS[str(name).strip().casefold()] if numeric else str(name).strip().casefold()
        groups.setdefault(key, []).append(name)
    return [group for group in groups.values() if len(group) > 1]


def alike_words(groups: Sequence[Sequence[Any]], column: str) -> str:
    """The warning about groups of names that look alike."""
    shown = "; ".join(", ".join(map(repr, group)) for group in groups[:3])
    more = f"; and {len(groups) - 3} more" if len(groups) > 3 else ""
    return (
        f"values of {column} look alike and count as different classes: {shown}{more}. If they are "
        "the same, merge them with --merge (in Python as_table(..., merge=True))"
    )


def merged(label: Coded, keep: Collection[Any] = ()) -> Coded:
    """Labels with one name for what looks alike: one of `keep`, or else the commonest.

    >>> made = merged(Coded(np.array([0, 1, 2, 2]), ("yes", "no", "Yes ")))
    >>> made.names, made.codes.tolist()
    (('Yes ', 'no'), [0, 1, 0, 0])
    """
    counts = np.bincount(label.codes, minlength=len(label.names))
    listed = list(label.names)
    instead = list(range(len(listed)))
    by_id = {id(name): place for place, name in enumerate(listed)}
    for group in alike(listed):
        places = [by_id[id(name)] for name in group]
        chosen = next((p for p in places if listed[p] in keep), None)
        best = max(places, key=lambda p: int(counts[p])) if chosen is None else chosen
        for place in places:
            instead[place] = best
    kept = list(dict.fromkeys(instead))
    new = {old: code for code, old in enumerate(kept)}
    codes = np.array([new[place] for place in instead], label.codes.dtype)[label.codes]
    names = [listed[place] for place in kept]
    return Coded(codes, tuple(names))


def merged_values(values: Iterable[Any]) -> list[Any]:
    """Values of more than one type as values of one, where they stand for the same.

    >>> merged_values([1, True, "1.0", 0, 1])
    [1, 1, 1, 0, 1]
    """
    listed = list(values)
    kinds = {type(value) for value in listed}
    if len(kinds) < 2:
        return listed
    if any(issubclass(kind, int | float | np.number) and kind is not bool for kind in kinds):
        return [_number_of(value) for value in listed]
    return [str(value) if isinstance(value, bool | np.bool_) else value for value in listed]


def _number_of(value: Any) -> Any:
    """What stands for a number, as one; other text as it is."""
    if _is_truth(value):
        return int(_TRUTHS[str(value).strip().casefold()])
    key = _key(value)
    if not isinstance(key, float):
        return value
    return int(key) if key.is_integer() else key


def _key(name: Any) -> Hashable:
    """The same for names that look alike, but for booleans."""
    if isinstance(name, str):
        value = number(name.strip())
        return " ".join(name.split()).casefold() if value is None or value != value else value
    if isinstance(name, bool | np.bool_):
        return str(name).casefold()
    return float(name) if isinstance(name, int | float | np.number) else name


def _is_truth(name: Any) -> bool:
    if isinstance(name, bool | np.bool_):
        return True
    return isinstance(name, str) and name.strip().casefold() in _TRUTHS
