"""Which verdicts of a stream are guaranteed, by the exits, draws and gold in its store.

Nothing of it is stored: the same rows give the same marks. What counts are the verdicts that left
since the settings that decide the test were last changed, `guarantee`, `guarantee_level` and
`audit_share`: each such change begins a new test, at its own level. What has been moved out of the
store does not count any more.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from venire.audits.guarantees import ExitGuarantee, exit_guarantee
from venire.model import ItemStatus

if TYPE_CHECKING:
    from venire.server.store.sql.storage import Storage

#: The level where the settings say none.
LEVEL: Final = 0.95

#: Exits to read at once.
CHUNK: Final = 5000


class _Test(NamedTuple):
    """What a stream promises, and since when."""

    right: float
    level: float
    share: float
    since: float


@dataclass
class Tested:
    """The exits that count, as far as they were read: number, item and confidence of each.

    `known` are those of items whose class somebody had stated before: they do not count.
    """

    test: _Test
    last: int = 0
    first: int | None = None
    numbers: list[int] = field(default_factory=list)
    items: list[str] = field(default_factory=list)
    confidences: list[float] = field(default_factory=list)
    known: set[int] = field(default_factory=set)


class Guaranteed(NamedTuple):
    """The test, and the exits that do not count though they are among the others."""

    found: ExitGuarantee
    known: frozenset[int]

    def marks(self, number: int | None, confidence: float | None) -> bool:
        """Whether the verdict with which an item left is guaranteed."""
        if number is None or confidence is None or number in self.known:
            return False
        return self.found.marks(number, confidence)


def guaranteed_in(storage: Storage, stream: str) -> Guaranteed | None:
    """What is guaranteed in a stream; None if its settings promise nothing."""
    tested = counted_in(storage, stream, None)
    return None if tested is None else judged_of(storage, stream, tested)


def counted_in(storage: Storage, stream: str, before: Tested | None) -> Tested | None:
    """The exits that count, those read `before` and the ones since; None without a promise."""
    test = _test_of(storage, stream)
    if test is None:
        return None
    tested = Tested(test)
    if before is not None and before.test == test:  # a copy, as another may go on from there too
        lists = list(before.numbers), list(before.items), list(before.confidences)
        tested = Tested(test, before.last, before.first, *lists, set(before.known))
    while rows := storage.exits(stream, tested.last, CHUNK):
        gold = {row.item: row for row in storage.gold_among(stream, [row.id for row in rows])}
        for row in rows:
            number = tested.last = row.exit_n or 0
            left, said = row.left_at or 0.0, gold.get(row.id)
            if left <= test.since or row.status != ItemStatus.LEFT or row.verdict is None:
                continue
            if said is not None and _first(said.at, said.earlier) < left:
                tested.known.add(number)
                continue
            tested.first = number - 1 if tested.first is None else tested.first
            tested.numbers.append(number)
            tested.items.append(row.id)
            tested.confidences.append(row.confidence or 0.0)
    return tested


def judged_of(storage: Storage, stream: str, tested: Tested) -> Guaranteed:
    """What the audits so far say of these exits."""
    place = {item: k for k, item in enumerate(tested.items)}
    drawn = {
        row.item: row.verdict
        for row in storage.checks(stream)
        if row.item in place and not row.extra
    }
    gold = storage.gold_of(stream, drawn)
    wrong = [gold[item] != said if item in gold else None for item, said in drawn.items()]
    test = tested.test
    found = exit_guarantee(
        tested.numbers,
        tested.confidences,
        [place[item] for item in drawn],
        wrong,
        test.share,
        test.right,
        test.level,
        tested.first or 0,
    )
    return Guaranteed(found, frozenset(tested.known))


def _first(at: float, earlier: str | None) -> float:
    """When the class of an item was first stated."""
    first: float = json.loads(earlier)[0][1] if earlier else at
    return first


def _test_of(storage: Storage, stream: str) -> _Test | None:
    """The promise of today, and when it was last changed."""
    bodies: list[tuple[float, dict[str, Any]]] = [
        (row.at, json.loads(row.body).get("settings", {})) for row in storage.settings(stream)
    ]
    promises = [
        (at, (x.get("guarantee"), x.get("guarantee_level") or LEVEL, x.get("audit_share")))
        for at, x in bodies
    ]
    if not promises:
        return None
    since, (right, level, share) = promises[-1]
    if not right or not share:
        return None
    for at, promise in reversed(promises):
        if promise != (right, level, share):
            break
        since = at
    return _Test(right, level, share, since)
