"""What a student sees of an item: hashed words and characters of a text, or a vector.

A text becomes counts of its words and pairs of words, and of the runs of three characters inside
words, each hashed to one of 2**13 places and scaled to length one. Nothing is learned for that, so
the features of an item never change, and no word is kept. A list of numbers, nested or not, such as
pixels or an embedding, is taken as it is, up to 4,096 numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from venire.errors import InputError
from venire.tools.extras import library

__all__ = ["Features", "Rows", "Seen", "rows_of"]

#: A matrix with a row for each item, dense or sparse.
Rows: TypeAlias = Any
#: Contents to rows, for features of your own.
Features: TypeAlias = Callable[[Sequence[Any]], Rows]

#: Places that words, and runs of characters, are hashed to.
PLACES: Final = 2**13

#: Numbers in a vector, at most: a picture of 64 by 64. Longer ones are not used.
LONGEST: Final = 2**12

#: Fields of a record that say nothing of its content.
RESERVED: Final = frozenset({"id", "weight", "target", "eligible", "excluded"})


class Seen(NamedTuple):
    """What is seen of items: a row for each, which of them can be used, and of what kind they are.

    Rows that cannot be used are zero.
    """

    rows: Rows
    usable: NDArray[np.bool_]
    kind: str


def rows_of(
    contents: Sequence[Any],
    features: Features | None = None,
    field: str | None = None,
    like: tuple[str, int] | None = None,
) -> Seen:
    """What is seen of the contents.

    Of a record `field` is taken, or all of its text. Without `features`, items are seen as texts if
    at least half of them are, else as vectors of the most frequent length; with `like`, a kind and
    a number of features, as that.

    >>> rows_of(["Buy now!", "hello", None]).usable.tolist()
    [True, True, False]
    >>> rows_of([{"pixels": [0.5, 1]}, {"pixels": [0, 0.25]}], field="pixels").rows.tolist()
    [[0.5, 1.0], [0.0, 0.25]]
    """
    if features is not None:
        return _own(contents, features)
    values = [_value(content, field) for content in contents]
    texts = np.array([isinstance(value, str) for value in values], np.bool_)
    is_text = texts.any() and texts.sum() * 2 >= len(values) if like is None else like[0] == "text"
    if is_text:
        told = [value if isinstance(value, str) else "" for value in values]
        return Seen(_hashed(told), texts, "text")
    vectors = [_vector(value) for value in values]
    sizes = [len(v) for v in vectors if v is not None]
    if not sizes and like is None:
        where = f"the field {field!r}" if field else "their content"
        raise InputError(
            f"the items have no features: expected a text or a list of numbers in {where}, got "
            f"{contents[0] if len(contents) else None!r}"
        )
    size = max(set(sizes), key=sizes.count) if like is None else like[1]
    usable = np.array([v is not None and len(v) == size for v in vectors], np.bool_)
    rows = np.zeros((len(vectors), size))
    for i in np.flatnonzero(usable):
        rows[i] = vectors[i]
    return Seen(rows, usable, "vector")


def _own(contents: Sequence[Any], features: Features) -> Seen:
    rows = features(contents)
    if getattr(rows, "shape", (0,))[0] != len(contents) or len(rows.shape) != 2:
        raise InputError(
            f"the features of {len(contents)} items have the shape "
            f"{getattr(rows, 'shape', None)}, expected a row for each"
        )
    return Seen(rows, np.ones(len(contents), np.bool_), "own")


def _value(content: Any, field: str | None) -> Any:
    if not isinstance(content, Mapping):
        return content
    if field is not None:
        return content.get(field)
    told = [v for k, v in content.items() if isinstance(v, str) and k not in RESERVED]
    if told:
        return "\n".join(told)
    lists = [v for k, v in content.items() if _vector(v) is not None and k not in RESERVED]
    return lists[0] if len(lists) == 1 else None


def _vector(value: Any) -> NDArray[np.float64] | None:
    """A list of finite numbers, flattened; None for anything else, and for one that is too long."""
    if not isinstance(value, list | tuple | np.ndarray) or len(value) > LONGEST:
        return None
    try:
        flat = np.asarray(value, np.float64).ravel()
    except (TypeError, ValueError, OverflowError):
        return None
    return flat if 0 < flat.size <= LONGEST and np.isfinite(flat).all() else None


def _hashed(texts: Sequence[str]) -> Rows:
    from scipy.sparse import hstack

    return hstack([hashing.transform(texts) for hashing in _hashings()], format="csr")


@cache
def _hashings() -> tuple[Any, ...]:
    text = library("sklearn.feature_extraction.text", "student")
    words = text.HashingVectorizer(n_features=PLACES, ngram_range=(1, 2))
    characters = text.HashingVectorizer(n_features=PLACES, analyzer="char_wb", ngram_range=(3, 3))
    return words, characters
