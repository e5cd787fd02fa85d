"""A recorded stream served over HTTP gives the verdicts of the simulator, to the bit.

The record is what `simulate` did with a world, or what an engine did with labels at random: who
came in each slot, what they said. The service gets the same items and labels over HTTP, its clock
moved by hand; labelers ask in the order in which Algorithm 1 serves them. Every assignment, gain
and exit must come out the same.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.integration.server.harness import in_process
from venire import Assignment, Exit, Item, Label, Labeler, Scheduler
from venire.scheduling.by_name import policy_named
from venire.server import ManualClock
from venire.simulation import Poisson, World, simulate

SLOTS, SLOT_SECONDS = 40, 2.0
CLASSES = ("spam", "ok", "unsure")

Record = tuple[list[Labeler], list[dict[str, Any]], list[Exit]]


def simulated(policy: str, seed: int) -> Record:
    """The same of a run of the simulator; what is open at its end has not left for the server."""
    skills = [0.9 - 0.05 * n for n in range(8)]
    most = [1, 1, 2, 1, 2, 1, 1, 1]
    drawn = World.synthetic(seed, skills, Poisson(2), capacity=most, classes=len(CLASSES))
    run = simulate(replace(drawn, classes=CLASSES), policy_named(policy), slots=SLOTS)
    slots: list[dict[str, Any]] = [{"items": [], "given": [], "said": []} for _ in range(SLOTS)]
    for row, (slot, weight) in enumerate(zip(run.items.arrival, run.items.weight, strict=True)):
        slots[slot]["items"].append(Item(str(row), weight=float(weight)))
    for given, said in zip(run.assignments(), run.touches["said"], strict=True):
        slots[given.slot]["given"].append(given)
        slots[given.slot]["said"].append(Label(given.item, given.labeler, CLASSES[said]))
    return list(run.world.panel), slots, [x for x in run.exits() if x.reason != "horizon"]


def record(policy: str, seed: int) -> Record:
    """What came and what was said in each slot, and who left."""
    draw = random.Random(seed)
    people = [
        Labeler(f"m{n}", competence=0.55 + 0.04 * n, capacity=draw.choice([1, 1, 2]))
        for n in range(8)
    ]
    people.sort(key=lambda labeler: -(labeler.competence or 0))
    engine = Scheduler(people, CLASSES, policy_named(policy))
    slots: list[dict[str, Any]] = []
    exits: list[Exit] = []
    for slot in range(SLOTS):
        items = [
            Item(f"{slot}-{n}", weight=draw.randint(2, 30))
            for n in range(draw.randint(0, 4) if slot < SLOTS - 15 else 0)
        ]
        engine.arrive(items)
        given: list[Assignment] = []
        for labeler in people:
            for _ in range(labeler.capacity):
                given += engine.assign(asked=(labeler.id,))
        said = [Label(a.item, a.labeler, draw.choice(CLASSES)) for a in given]
        engine.observe(said)
        slots.append({"items": items, "given": given, "said": said})
        exits += engine.close()
    return people, slots, exits


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("policy", ["greedy", "fixed-overlap:3"])
@pytest.mark.parametrize("recorded", [simulated, record])
def test_served_over_http_it_is_the_same(
    recorded: Callable[[str, int], Record], policy: str, seed: int
) -> None:
    people, slots, exits = recorded(policy, seed)
    clock = ManualClock()
    with in_process(clock) as served:
        panel = [{"id": p.id, "competence": p.competence, "capacity": p.capacity} for p in people]
        settings: dict[str, Any] = {"classes": list(CLASSES), "panel": panel, "min_labels": 0}
        served.make_stream(**settings, policy=policy, slot_seconds=SLOT_SECONDS)
        for slot in slots:
            if slot["items"]:
                rows = [{"id": item.id, "weight": item.weight} for item in slot["items"]]
                assert served.call("POST", "/v1/streams/posts/items", json=rows).status_code == 200
            for given, said in zip(slot["given"], slot["said"], strict=True):
                work = served.take(given.labeler)
                assert (work["item"], work["slot"], work["gain"]) == (
                    given.item,
                    given.slot,
                    given.gain,
                )
                slot.setdefault("tokens", []).append((work["token"], said.said))
            for token, said in slot.get("tokens", ()):
                label = served.call("POST", f"/v1/assignments/{token}/label", json={"said": said})
                assert label.status_code == 200
            clock.advance(SLOT_SECONDS)
        answer = served.call("GET", "/v1/streams/posts/exits?limit=10000")
        told = [json.loads(line) for line in answer.text.splitlines()]
        assert [(x["item"], x["verdict"], x["confidence"], x["reason"]) for x in told] == [
            (x.item, x.verdict.label, x.verdict.confidence, x.reason) for x in exits
        ]
        assert [(x["arrived_slot"], x["slot"], x["labels"]) for x in told] == [
            (x.arrival, x.slot, x.labels) for x in exits
        ]
        assert len(told) > 20
