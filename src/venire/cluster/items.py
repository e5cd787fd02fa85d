"""Whether all labels of an item are in one partition; and partitions in which they are.

Items are compared by 64 bits of a hash of their names, in buckets of some millions, so that no
process needs all of them; where two hashes are the same, the names decide.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from venire.cluster.part import Part, compact, plain
from venire.cluster.placing import Place, Progress
from venire.labels import LabelTable, Repeats

__all__ = ["divided_item", "shuffled"]

Hashes = NDArray[np.uint64]

#: About as many items are compared at a time.
BUCKET: Final = 1 << 22


def divided_item(
    place: Place, parts: Sequence[Any], items: int, progress: Progress | None = None
) -> tuple[Any, int, int] | None:
    """An item that lies in two partitions, and which; None if there is none.

    >>> from venire.cluster.placing import Here
    >>> one, two = (LabelTable.from_rows([(i, "ann", 0), (9, "ann", 1)]) for i in (1, 2))
    >>> divided_item(Here(), [Part(one), Part(two)], 4)
    (9, 0, 1)
    """
    hashes = [place.submit(_hashes, part) for part in parts]
    place.finish(hashes, progress)
    buckets = 1 + items // BUCKET
    twice = [
        place.submit(_twice, [place.submit(_bucket, some, b, buckets) for some in hashes])
        for b in range(buckets)
    ]
    for found in place.results(twice):
        for code, first, second in found:
            asked = [place.submit(_named, parts[i], code) for i in (first, second)]
            one, other = place.results(asked)
            both = sorted(set(one) & set(other), key=str)
            if both:
                return both[0], first, second
    return None


def shuffled(
    place: Place, parts: Sequence[Any], repeats: Repeats, progress: Progress | None = None
) -> list[Any]:
    """As many partitions, in which every item is whole: by the hashes of the names.

    Of two labels of a labeler for an item, the one of the earlier partition is the first.
    """
    n = len(parts)
    split = [place.submit(_split, part, n) for part in parts]
    place.finish(split, progress)
    made = [
        place.submit(_merged, [place.submit(_take, pieces, j) for pieces in split], repeats)
        for j in range(n)
    ]
    place.finish(made, progress)
    return made


def _hashes(part: Part) -> Hashes:
    names = plain(part.table.items)
    codes = (blake2b(str(name).encode(), digest_size=8).digest() for name in names)
    return np.frombuffer(b"".join(codes), np.uint64)


def _bucket(hashes: Hashes, bucket: int, buckets: int) -> Hashes:
    return hashes[hashes % np.uint64(buckets) == bucket] if buckets > 1 else hashes


def _twice(found: list[Hashes]) -> list[tuple[int, int, int]]:
    """Hashes in two partitions, and which; a few of them."""
    codes = np.concatenate(found)
    part = np.repeat(np.arange(len(found)), [len(some) for some in found])
    order = np.argsort(codes, kind="stable")
    codes, part = codes[order], part[order]
    same = np.flatnonzero((codes[1:] == codes[:-1]) & (part[1:] != part[:-1]))[:100]
    return [(int(codes[i]), int(part[i]), int(part[i + 1])) for i in same]


def _named(part: Part, code: int) -> list[Any]:
    places = np.flatnonzero(_hashes(part) == np.uint64(code)).tolist()
    names = plain(part.table.items)
    return [names[i] for i in places]


def _split(part: Part, parts: int) -> list[LabelTable]:
    """The items of each new partition."""
    table, to = part.table, _hashes(part) % np.uint64(parts)
    names, sizes = np.array(plain(table.items), object), np.diff(table.start)
    of_label = np.repeat(to, sizes)
    pieces = []
    for j in range(parts):
        start = np.concatenate([[0], np.cumsum(sizes[to == j])]).astype(np.int64)
        labels = table.labeler[of_label == j], table.said[of_label == j]
        items = compact(tuple(names[to == j]))
        pieces.append(LabelTable(items, table.labelers, table.classes, start, *labels))
    return pieces


def _take(pieces: list[LabelTable], j: int) -> LabelTable:
    return pieces[j]


def _merged(pieces: list[LabelTable], repeats: Repeats) -> Part:
    """One partition of pieces of the others."""
    places: dict[Any, int] = {}
    codes = [
        np.array([places.setdefault(name, len(places)) for name in plain(piece.items)], np.int64)
        for piece in pieces
    ]
    item = np.concatenate([own[piece.item] for own, piece in zip(codes, pieces, strict=True)])
    labeler, said = (
        np.concatenate([getattr(piece, name) for piece in pieces]) for name in ("labeler", "said")
    )
    names = compact(tuple(places)), pieces[0].labelers, pieces[0].classes
    return Part(LabelTable.from_codes(item, labeler, said, *names, repeats=repeats, fewest=1))
