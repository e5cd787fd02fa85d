"""A stream driven the way a server drives it, into a store: the engine decides, rows follow."""

from __future__ import annotations

from collections import Counter

import numpy as np

from venire import Bounds, Greedy, Item, Label, Labeler, Scheduler
from venire.events import Closed, Withdrawn
from venire.model import ExitReason
from venire.server.settings import StreamSettings, as_body
from venire.server.store import (
    Change,
    EndLeases,
    ExitRow,
    Insert,
    ItemRow,
    LabelRow,
    LeaseEnd,
    LeaseRow,
    LeaveItems,
    SettingsRow,
    SnapshotRow,
    Storage,
    StreamRow,
    encode,
)
from venire.server.store.contents import digest_of

PANEL = [Labeler("ann", 0.9), Labeler("bob", 0.8), Labeler("eve", 0.7, capacity=2)]


SETTINGS = as_body(StreamSettings(classes=("spam", "ok")), "open")


class Stored:
    """A scheduler, its store, and the rows that go with every event."""

    def __init__(self, storage: Storage, stream: str = "posts") -> None:
        self.storage, self.stream = storage, stream
        self.engine = Scheduler(
            PANEL, ["spam", "ok"], Greedy(), bounds=Bounds(deadline=6), remember=5
        )
        self.n = self.exits = self.tokens = 0
        self.at = 1000.0
        self.leases: dict[tuple[str, str], str] = {}
        self.labelled: Counter[str] = Counter()
        settings = SettingsRow(stream=stream, version=1, at=self.at, actor="test", body=SETTINGS)
        first = SnapshotRow(stream=stream, n=0, at=self.at, body=self.engine.snapshot())
        storage.write(
            [
                Insert([StreamRow(name=stream, created_at=self.at)]),
                Insert([settings]),
                Insert([first]),
            ]
        )

    def commit(self, *changes: Change) -> None:
        """Write the changes with the events that the engine has made."""
        events = self.engine.drain()
        rows = [Insert(encode(self.stream, self.n, self.at, events))]
        self.n += len(events)
        left: list[ExitRow] = []
        for event in events:
            if isinstance(event, Closed):
                for e in event.exits:
                    said = None if e.verdict.label is None else str(e.verdict.label)
                    how = (said, e.verdict.confidence, e.labels, e.reason)
                    left.append(self._exit(e.item, "left", e.slot, *how))
            elif isinstance(event, Withdrawn):
                n = self.labelled[event.item]
                how = (None, 0.0, n, ExitReason.WITHDRAWN)
                left.append(self._exit(event.item, "withdrawn", event.slot, *how))
        self.storage.write([*changes, *rows, LeaveItems(left)])
        self.at += 0.25

    def _exit(
        self, item: str, status: str, slot: int, said: str | None, p: float, n: int, reason: str
    ) -> ExitRow:
        self.exits += 1
        return ExitRow(
            stream=self.stream,
            id=item,
            status=status,
            exit_n=self.exits,
            exit_slot=slot,
            left_at=self.at,
            verdict=said,
            confidence=p,
            labels=n,
            reason=reason,
        )

    def arrive(self, *ids: str, weight: float = 10.0) -> None:
        self.engine.arrive([Item(id, weight) for id in ids])
        slot = self.engine.slot
        self.commit(
            Insert(
                [
                    ItemRow(
                        stream=self.stream,
                        id=id,
                        digest=digest_of({"text": id}, weight, None, []),
                        payload=f'{{"text":"{id}"}}',
                        weight=weight,
                        eligible=None,
                        excluded="[]",
                        arrived_slot=slot,
                        arrived_at=self.at,
                    )
                    for id in ids
                ]
            )
        )

    def ask(self, labeler: str) -> str | None:
        given = self.engine.assign([labeler])
        for a in given:
            self.tokens += 1
            self.leases[a.item, labeler] = f"{self.stream}-{self.tokens}"
        rows = [
            LeaseRow(
                token_hash=self.leases[a.item, labeler],
                stream=self.stream,
                item=a.item,
                labeler=labeler,
                given_at=self.at,
                ttl=60.0,
            )
            for a in given
        ]
        self.commit(Insert(rows))
        return given[0].item if given else None

    def label(self, item: str, labeler: str, said: str) -> None:
        late = item not in self.engine.outstanding
        self.engine.observe(Label(item, labeler, said))
        self.labelled[item] += 1
        row = LabelRow(
            stream=self.stream,
            item=item,
            labeler=labeler,
            said=said,
            at=self.at,
            slot=self.engine.slot,
            late=late,
            lead_seconds=None,
            source="x",
        )
        ends = [LeaseEnd(t, "done", self.at) for t in [self.leases.pop((item, labeler), "")] if t]
        self.commit(Insert([row]), EndLeases(ends))

    def release(self, item: str, labeler: str) -> None:
        self.engine.release(item, labeler)
        self.commit(EndLeases([LeaseEnd(self.leases.pop((item, labeler)), "released", self.at)]))

    def advance(self) -> None:
        self.engine.advance(self.engine.slot + 1)
        self.commit()

    def snapshot(self) -> None:
        row = SnapshotRow(stream=self.stream, n=self.n, at=self.at, body=self.engine.snapshot())
        self.storage.write([Insert([row])])


def play(storage: Storage, slots: int = 12, seed: int = 0, stream: str = "posts") -> Stored:
    """A stream with a little of everything."""
    rng = np.random.default_rng(seed)
    run = Stored(storage, stream)
    for slot in range(slots):
        run.arrive(*(f"item-{slot}-{k}" for k in range(rng.integers(0, 4))))
        for labeler in ("ann", "bob", "eve", "eve"):
            item = run.ask(labeler)
            what = rng.random()
            if item is not None and what < 0.7:
                run.label(item, labeler, "spam" if rng.random() < 0.5 else "ok")
            elif item is not None and what < 0.8:
                run.release(item, labeler)
        if slot == 3 and run.engine.outstanding:
            run.engine.withdraw(run.engine.outstanding[0])
            run.commit()
        if slot in (2, 5, 8):
            run.snapshot()
        run.advance()
    return run
