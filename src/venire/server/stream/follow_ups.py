"""Items that a reviewer sent back for more labels.

An item leaves once. One that is sent back comes again as another item, its follow-up, which others
label; when that leaves, and is surer than the verdict that is there, the verdict of the first is
revised. Gold that comes meanwhile is final.
"""

from __future__ import annotations

from typing import NamedTuple

from venire.engine import Scheduler
from venire.model import Exit, ItemStatus, Revision, Verdict
from venire.server.store import FollowRow, ItemRow, Storage


class SentBack(NamedTuple):
    """An item that waits for its follow-up: that, the verdict of now, and by how many labels."""

    follow_up: str
    verdict: Verdict
    labels: int


class FollowUps:
    """The follow-ups of a stream: what each follows, and what waits for them.

    >>> from venire import Labeler
    >>> waiting = FollowUps()
    >>> waiting.send("post-1~2", "post-1", Verdict("spam", 0.6), 2)
    >>> waiting.leave(Exit("post-1~2", 0, 5, 3, Verdict("ok", 0.9), "confident"))
    >>> engine = Scheduler([Labeler("ann", 0.9)], classes=["spam", "ok"])
    >>> waiting.settle(engine), engine.log[-1].revision.verdict.label
    (['post-1~2'], 'ok')
    """

    def __init__(self) -> None:
        self.original: dict[str, str] = {}  # of each follow-up, also of those that have left
        self.latest: dict[str, str] = {}  # the last follow-up of each original
        self.waiting: dict[str, SentBack] = {}  # by the original
        self.left: list[tuple[str, Verdict, int]] = []  # follow-ups whose originals do not know

    def send(self, follow_up: str, original: str, verdict: Verdict, labels: int) -> None:
        """An item is sent back."""
        self.original[follow_up], self.latest[original] = original, follow_up
        self.waiting[original] = SentBack(follow_up, verdict, labels)

    def leave(self, exit: Exit) -> None:
        """An item has left, with a verdict or without; it may be a follow-up."""
        if exit.item in self.original:
            self.left.append((exit.item, exit.verdict, exit.labels))

    def revise(self, revision: Revision) -> None:
        """The verdict of an item was revised otherwise."""
        sent = self.waiting.get(revision.item)
        if sent is not None:
            self.waiting[revision.item] = SentBack(
                sent.follow_up, revision.verdict, revision.labels
            )

    def decided(self, item: str) -> None:
        """The class of an item is known: it waits for nothing."""
        self.waiting.pop(item, None)

    def settle(self, engine: Scheduler) -> list[str]:
        """Revise the originals of the follow-ups that left; those follow-ups."""
        done = []
        while self.left:
            item, verdict, labels = self.left.pop(0)
            sent = self.waiting.pop(self.original[item], None)
            if sent is not None and _changes(sent.verdict, verdict):
                engine.revise(self.original[item], verdict, sent.verdict, sent.labels + labels)
            done.append(item)
        return done

    def load(self, storage: Storage, stream: str, rows: list[FollowRow]) -> None:
        """Begin with what the store has."""
        for row in sorted(rows, key=lambda row: row.at):
            self.original[row.item], self.latest[row.original] = row.original, row.item
            if row.settled_at is not None:
                continue
            first, again = (storage.item(stream, x) for x in (row.original, row.item))
            if first is None or again is None or storage.gold_of(stream, [row.original]):
                continue
            self.waiting[row.original] = SentBack(row.item, *verdict_now(storage, first))
            if again.status != ItemStatus.OPEN:  # the server was ended before it was settled
                said = Verdict(again.verdict, again.confidence or 0.0)
                self.left.append((row.item, said, again.labels or 0))


def verdict_now(storage: Storage, row: ItemRow) -> tuple[Verdict, int]:
    """The verdict of an item that has left, by its last revision, and by how many labels."""
    for revision in storage.revisions_of(row.stream, row.id)[-1:]:
        return Verdict(revision.verdict, revision.confidence), revision.labels
    return Verdict(row.verdict, row.confidence or 0.0), row.labels or 0


def _changes(before: Verdict, now: Verdict) -> bool:
    """Whether the verdict of a follow-up takes the place of the one before."""
    if now.label is None or now.label == before.label:
        return False
    return before.label is None or now.confidence > before.confidence
