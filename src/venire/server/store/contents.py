"""What an item holds, as JSON, and the digest that tells whether two contents are the same.

The digest is of the payload with the keys of every object in order, the weight that was sent (None
where none was), who may and who may not label the item, and its own min_confidence if it has one.
The store keeps the payload as it came, so that the digest can be computed again: `is_content_of`
does, for `verify`. `is_in` says which rows of an item are in its segment of the archive.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from itertools import islice
from typing import Any, Final

from venire.model import LeaseStatus
from venire.server.store.records import ItemRow, LabelRow, LeaseRow, NoteRow, SegmentRow

#: Larger values, in characters, are read and written in threads.
LARGE: Final = 50_000


def compact(value: Any) -> str:
    """JSON as the store keeps it.

    >>> compact({"text": "naïve", "n": [1, 2.5]})
    '{"text":"naïve","n":[1,2.5]}'
    """
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest_of(
    payload: object,
    weight: float | None,
    eligible: Sequence[str] | None,
    excluded: Sequence[str],
    min_confidence: float | None = None,
) -> str:
    """The digest of a content; the names must be in order.

    >>> digest_of({"a": 1, "b": 2}, None, None, []) == digest_of({"b": 2, "a": 1}, None, None, [])
    True
    """
    own = [] if min_confidence is None else [float(min_confidence)]
    text = compact([_in_order(payload), weight, eligible, excluded, *own])
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def is_content_of(row: ItemRow) -> bool:
    """Whether the digest of an item is that of its content.

    A producer may have sent no weight, or a whole number; what the store keeps is a float.

    >>> digest = digest_of({"text": "Buy now"}, 10, None, [])
    >>> row = ItemRow.load(["posts", "a", digest, '{"text":"Buy now"}', 10.0, None, "[]", 0, 0.0])
    >>> is_content_of(row), is_content_of(row._replace(payload='{"text":"Buy not"}'))
    (True, False)
    """
    try:
        payload, excluded = json.loads(row.payload), json.loads(row.excluded)
        eligible = None if row.eligible is None else json.loads(row.eligible)
        weights = [None, row.weight, *_whole(row.weight)]
        own = row.min_confidence
        return row.digest in (digest_of(payload, w, eligible, excluded, own) for w in weights)
    except (ValueError, RecursionError):  # it is not JSON, or holds what JSON cannot
        return False


def _whole(weight: float) -> list[int]:
    return [int(weight)] if float(weight).is_integer() else []


def _in_order(value: object) -> object:
    """The same with the keys of every object in order, so that equal contents look equal."""
    if isinstance(value, dict):
        return {_key(key): _in_order(value[key]) for key in sorted(value, key=_key)}
    if isinstance(value, list | tuple):
        return [_in_order(part) for part in value]
    return value


def _key(key: object) -> str:
    """A key as JSON spells it: what is stored must have the digest of what was sent."""
    return key if isinstance(key, str) else json.dumps(key)


def is_large(payload: Any) -> bool:
    """Whether a value takes long to write as JSON; looks at some hundred of its values at most.

    >>> is_large({"text": "short"}), is_large({"text": "x" * 100_000}), is_large([[]] * 1000)
    (False, True, True)
    """
    left, pending = LARGE, [payload]
    while pending and left > 0:
        value = pending.pop()
        left -= len(value) if isinstance(value, str) else LARGE // 500
        if isinstance(value, dict):
            pending += islice(value, 500)
            pending += islice(value.values(), 500)
        elif isinstance(value, list):
            pending += islice(value, 500)
    return left <= 0


def is_in(segment: SegmentRow, row: LabelRow | LeaseRow | NoteRow) -> bool:
    """Whether a segment has this row of one of its items: what came since is not in it.

    Numbers and slots grow, and only late labels come once an item has left, so that nothing can
    come later that looks as if it had been there.

    >>> segment = SegmentRow.load(["posts", 1, 9.0, 0, 4, 2.0, 6, 1, 0, 3, "1", "abc"])
    >>> label = LabelRow.load(["posts", "a", "ann", "ok", 1.0, 6, False, None, "bulk"])
    >>> is_in(segment, label), is_in(segment, label._replace(late=True))
    (True, False)
    """
    match row:
        case LabelRow():
            return not row.late or row.slot < segment.slot
        case NoteRow():
            return row.n <= segment.notes
        case _:
            ended = row.ended_at is not None and row.ended_at <= segment.at
            return row.status != LeaseStatus.OPEN and ended
