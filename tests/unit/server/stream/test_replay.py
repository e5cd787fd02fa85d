"""Whatever is done to a stream: its log replays to the same state, and `verify` agrees."""

import contextlib
import random
from pathlib import Path
from typing import Any

import pytest

from tests.store.store import MemoryStorage
from tests.unit.server.support import Bench, bench, running
from venire.errors import StateError
from venire.server import ItemIn, Lease
from venire.server.store import Storage, open_storage
from venire.server.store.maintenance.verify import verify

SETTINGS = {
    "bounded": {"max_overlap": 3, "min_confidence": 0.97, "min_labels": 2},
    "greedy": {"policy": "greedy", "default_weight": 30.0, "deadline_slots": 12},
    "learning": {"learning": "then-serve:5", "policy": "greedy", "default_weight": 20.0},
    "open": {"learning": "then-serve:3", "open_panel": True, "panel": ()},
    "budget": {"label_budget": 60},
    "serving": {"learning": "while-serving", "open_panel": True, "panel": (), "policy": "greedy"},
}


async def act(b: Bench, rng: random.Random, step: int, held: list[str]) -> None:
    """Do something at random."""
    names, items = ("ann", "bob", "cec"), sorted(b.live.open)
    what = rng.random()
    if what < 0.2:
        await b.add(*(f"s{step}-{k}" for k in range(rng.randint(1, 4))))
    elif what < 0.5:
        got = await b.service.next("posts", rng.choice(names))
        if isinstance(got, Lease):
            held.append(str(got.token))
    elif what < 0.7 and held:
        token = held.pop(rng.randrange(len(held)))
        with contextlib.suppress(StateError):  # it said otherwise in bulk
            await b.service.label(token, rng.choice(["spam", "ok"]))
    elif what < 0.75 and held:
        with contextlib.suppress(StateError):  # it has its label
            await b.service.release(held.pop(), bar=rng.random() < 0.5)
    elif what < 0.85 and items:
        rows = [
            (rng.choice(items), rng.choice(names), rng.choice(["spam", "ok"])) for _ in range(8)
        ]
        await b.service.add_labels("posts", rows)
    elif what < 0.88 and items:
        await b.service.withdraw("posts", rng.choice(items))
    elif what < 0.9:
        await b.service.change_stream("posts", {"min_labels": rng.randint(0, 2)}, "me")
    else:
        await b.pass_time(rng.choice([1.0, 10.0, 30.0, 200.0]))


@pytest.mark.filterwarnings("ignore:EM ended with a mean competence")
@pytest.mark.parametrize("kind", sorted(SETTINGS))
@pytest.mark.parametrize("store", ["memory", "sqlite"])
@running
async def test_a_stream_is_what_its_log_says(kind: str, store: str, tmp_path: Path) -> None:
    rng = random.Random(f"{kind} {store}")
    storage: Storage = MemoryStorage()
    if store == "sqlite":
        storage = open_storage(f"sqlite:///{tmp_path / 'venire.db'}")
    clock, held, before = None, list[str](), ("", 0)
    with storage:
        for part in range(3):
            async with bench(storage, clock, **SETTINGS[kind]) as b:  # type: ignore[arg-type]
                clock = b.clock
                if part:
                    assert (b.live.engine.fingerprint(), b.live.n) == before
                for step in range(70):
                    await act(b, rng, 100 * part + step, held)
                await b.service.runtime.flush()
                before = b.live.engine.fingerprint(), b.live.n
        assert verify(storage, "posts").differences == ()
        assert storage.counts("posts").left > 0


@running
async def test_however_an_item_was_sent_its_row_agrees_with_the_log() -> None:
    async with bench() as b:
        for step, cost in enumerate((1.0, 3.0)):
            await b.service.change_stream("posts", {"delay_cost": cost}, "me")
            few = {"eligible": ("bob", "ann"), "excluded": ("cec",)}
            sent: list[dict[str, Any]] = [{}, {"weight": 7}, {"weight": 7.1}, few]
            for n, more in enumerate(sent):
                await b.service.add_items("posts", [ItemIn(f"p{step}{n}", {"b": n}, **more)])
        await b.service.add_items("posts", [ItemIn("odd", {True: 1, None: {1: [1.5]}})])
        assert verify(b.storage, "posts").differences == ()
