"""Leases against a model: take, heartbeat, expire, late label, release, duplicate, close, restart.

The model knows nothing of gains: which item is given is up to the engine, but it must be one that
the labeler may have, and what the service says of leases, labels and items must be the model's.
"""

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import settings as profile
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    invariant,
    multiple,
    precondition,
    rule,
)

from tests.unit.server.support import Flaky, settings_of
from venire.errors import Conflict, StateError, StoreDown
from venire.server import ItemIn, Lease, ManualClock, Nothing, Service

NAMES = ("ann", "bob", "cec")
CAPACITY = {"ann": 2, "bob": 1, "cec": 1}


@dataclass
class HeldLease:
    """A lease as the model sees it."""

    item: str
    labeler: str
    end: float
    ttl: float
    status: str = "open"
    said: str | None = None


@dataclass
class Model:
    """What must be true."""

    items: dict[str, str] = field(default_factory=dict)  # open, left or withdrawn
    labels: dict[tuple[str, str], tuple[str, bool]] = field(default_factory=dict)
    leases: dict[str, HeldLease] = field(default_factory=dict)

    def holds(self, labeler: str) -> int:
        return sum(
            x.status == "open" and x.labeler == labeler and self.items[x.item] == "open"
            for x in self.leases.values()
        )


class Leases(RuleBasedStateMachine):
    tokens = Bundle("tokens")

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.storage, self.clock, self.model = Flaky(), ManualClock(), Model()
        self.status, self.count, self.exits = "running", 0, 0
        panel = [{"id": name, "competence": 0.9, "capacity": CAPACITY[name]} for name in NAMES]
        self.start()
        self.run(self.service.create_stream("posts", settings_of(panel=panel), "test"))

    def start(self) -> None:
        self.service = Service(self.storage, self.clock)
        self.run(self.service.start())

    def run(self, what: Any) -> Any:
        return self.runner.run(what)

    def teardown(self) -> None:
        self.run(self.service.stop())
        self.runner.close()

    def sync(self) -> None:
        """Time has passed: leases ended, and items left."""
        self.service.runtime.ticker.tick()
        self.run(self.service.runtime.flush())
        for held in self.model.leases.values():
            if held.status == "open" and held.end <= self.clock.monotonic():
                held.status = "expired"
        for exit in self.run(self.service.exits("posts", after=self.exits)):
            assert self.model.items[exit.item] == "open"
            self.model.items[exit.item] = "withdrawn" if exit.reason == "withdrawn" else "left"
            in_time = [k for k, (_, late) in self.model.labels.items() if k[0] == exit.item]
            assert exit.labels == len(in_time)
            self.exits = exit.n

    @precondition(lambda self: self.status != "closed")
    @rule(count=st.integers(1, 3))
    def arrive(self, count: int) -> None:
        ids = [f"p{self.count + k}" for k in range(count)]
        self.count += count
        self.run(self.service.add_items("posts", [ItemIn(id, id) for id in ids]))
        self.model.items |= dict.fromkeys(ids, "open")

    @rule(target=tokens, labeler=st.sampled_from(NAMES))
    def take(self, labeler: str) -> Any:
        got = self.run(self.service.next("posts", labeler))
        items, labels = self.model.items, self.model.labels
        open_items = [item for item, status in items.items() if status == "open"]
        full = self.model.holds(labeler) >= CAPACITY[labeler]
        if isinstance(got, Nothing):
            expected = {
                "paused": self.status == "paused",
                "closed": self.status == "closed" and not open_items,
                "empty": self.status == "running" and not open_items,
                "over_capacity": full,
            }.get(got.reason, bool(open_items) and not full)
            assert expected, got
            return multiple()
        assert isinstance(got, Lease)
        assert self.status != "paused"
        assert items[got.item] == "open"
        assert (got.item, labeler) not in labels
        assert not full
        for held in self.model.leases.values():
            assert (held.status, held.item, held.labeler) != ("open", got.item, labeler)
        assert got.token is not None
        end = self.clock.monotonic() + got.ttl
        self.model.leases[got.token] = HeldLease(got.item, labeler, end, got.ttl)
        return got.token

    @rule(token=tokens)
    def heartbeat(self, token: str) -> None:
        held = self.model.leases[token]
        if held.status == "open":
            left = self.run(self.service.heartbeat(token)) - self.clock.wall()
            held.end = self.clock.monotonic() + left
        else:
            with pytest.raises(StateError):
                self.run(self.service.heartbeat(token))

    @rule(token=tokens, said=st.sampled_from(["spam", "ok"]))
    def label(self, token: str, said: str) -> None:
        held = self.model.leases[token]
        key = held.item, held.labeler
        before = self.model.labels.get(key)
        if held.said is not None:
            before = held.said, False
        if before is not None and before[0] != said:
            with pytest.raises(Conflict):
                self.run(self.service.label(token, said))
            return
        answer = self.run(self.service.label(token, said))
        assert (answer.item, answer.labeler, answer.said) == (held.item, held.labeler, said)
        if held.said is None:
            late = self.model.items[held.item] != "open"
            assert answer.late == late
            assert answer.expired == (held.status != "open")
            held.status, held.said = "done", said
            if before is None:
                self.model.labels[key] = said, late
                for other in self.model.leases.values():
                    if other is not held and (other.item, other.labeler) == key:
                        self._answered(other, said)

    def _answered(self, other: HeldLease, said: str) -> None:
        """The label answers a newer lease of the same labeler for the same item too."""
        if other.status == "open":
            other.status, other.said = "done", said

    @rule(token=tokens)
    def release(self, token: str) -> None:
        held = self.model.leases[token]
        if held.status == "done":
            with pytest.raises(StateError):
                self.run(self.service.release(token))
            return
        self.run(self.service.release(token))
        held.status = "released" if held.status == "open" else held.status

    @rule(
        labeler=st.sampled_from(NAMES),
        said=st.sampled_from(["spam", "ok"]),
        own=st.booleans(),
        data=st.data(),
    )
    def unsolicited(self, labeler: str, said: str, own: bool, data: st.DataObject) -> None:
        """A label in bulk; by the labeler's own key, only of what it was ever given."""
        if not self.model.items:
            return
        item = data.draw(st.sampled_from(sorted(self.model.items)))
        rows = [(item, labeler, said)]
        [outcome] = self.run(self.service.add_labels("posts", rows, own=own))
        before = self.model.labels.get((item, labeler))
        if before is not None:
            assert outcome.status == ("exists" if before[0] == said else "refused")
            return
        given = {(held.item, held.labeler) for held in self.model.leases.values()}
        if own and (item, labeler) not in given:
            assert outcome.code == "not_given"
            return
        late = self.model.items[item] != "open"
        assert outcome.status == ("late" if late else "accepted")
        self.model.labels[item, labeler] = said, late
        for held in self.model.leases.values():
            if (held.item, held.labeler) == (item, labeler):
                self._answered(held, said)

    @precondition(lambda self: self.model.items)
    @rule(data=st.data())
    def erase(self, data: st.DataObject) -> None:
        item = data.draw(st.sampled_from(sorted(self.model.items)))
        self.run(self.service.erase_payload("posts", item, "test"))
        self.sync()
        assert self.model.items[item] != "open"
        assert self.run(self.service.item("posts", item)).payload is None

    @rule(seconds=st.sampled_from([1.0, 9.0, 30.0, 200.0]))
    def pass_time(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.sync()

    @rule(seconds=st.sampled_from([-3600.0, 3600.0]))
    def jump(self, seconds: float) -> None:
        self.clock.jump(seconds)

    @rule()
    def pause_or_resume(self) -> None:
        if self.status != "closed":
            self.status = "running" if self.status == "paused" else "paused"
            verb = self.service.pause if self.status == "paused" else self.service.resume
            self.run(verb("posts", "test"))

    @precondition(lambda self: self.status != "closed")
    @rule()
    def fail(self) -> None:
        """A write fails: the request can be made again, and nothing of it was done."""
        self.storage.down = True
        with pytest.raises(StoreDown):
            self.run(self.service.add_items("posts", [ItemIn("never")]))
        self.storage.down = False
        self.run(self.service.runtime.live_stream("posts"))
        self.renewed()

    @rule()
    def restart(self) -> None:
        self.run(self.service.stop())
        self.start()
        self.renewed()

    def renewed(self) -> None:
        """Open leases have their full time again."""
        [live] = self.service.runtime.loaded()
        ends = {(x.item, x.labeler): x.end for x in live.leases}
        for held in self.model.leases.values():
            if held.status == "open":
                held.end = ends[held.item, held.labeler]

    @precondition(lambda self: self.count > 5)
    @rule()
    def close(self) -> None:
        self.run(self.service.close("posts", "test"))
        self.status = "closed"
        with pytest.raises(StateError):
            self.run(self.service.add_items("posts", [ItemIn("late")]))

    @invariant()
    def the_store_agrees(self) -> None:
        rows = {(r.item, r.labeler): (r.said, bool(r.late)) for r in self.storage.labels("posts")}
        assert rows == self.model.labels
        held = sorted((x.item, x.labeler) for x in self.model.leases.values() if x.status == "open")
        assert sorted((r.item, r.labeler) for r in self.storage.leases("posts")) == held
        assert {r.id: r.status for r in self.storage.items("posts")} == self.model.items
        [live] = self.service.runtime.loaded()
        inside = set(live.engine.in_flight)
        assert inside == {pair for pair in held if self.model.items[pair[0]] == "open"}


TestLeases = Leases.TestCase
TestLeases.settings = profile(max_examples=30, stateful_step_count=40, deadline=None)
