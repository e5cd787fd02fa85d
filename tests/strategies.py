"""Small random instances: ties, equal competences, capacities, masks, empty slots."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from tests.reference import PlainItem, PlainWorld
from venire import Item, Labeler, World


@dataclass(frozen=True)
class Instance:
    """A panel and a trace, to be handed to the plain reference, the simulator and the engine."""

    panel: tuple[Labeler, ...]
    arrival: tuple[int, ...]
    items: tuple[Item, ...]
    slots: int
    seed: int

    def plain(self) -> PlainWorld:
        number = {labeler.id: m for m, labeler in enumerate(self.panel)}
        everyone = frozenset(number.values())
        items = []
        for arrival, item in zip(self.arrival, self.items, strict=True):
            allowed = everyone
            if item.eligible is not None:
                allowed = frozenset(number[name] for name in item.eligible)
            allowed -= {number[name] for name in item.excluded}
            items.append(PlainItem(arrival, item.weight, allowed))
        p = [labeler.competence or 0.5 for labeler in self.panel]
        capacities = [labeler.capacity for labeler in self.panel]
        prices = [labeler.price for labeler in self.panel]
        return PlainWorld(p, capacities, items, self.slots, prices)

    def world(self) -> World:
        return World.trace(self.items, self.arrival, self.panel, seed=self.seed)


@st.composite
def instances(
    draw: st.DrawFn,
    max_labelers: int = 6,
    max_slots: int = 12,
    few: bool = False,
    priced: bool = False,
) -> Instance:
    """With `few`, most items are for at most four of a large panel; with `priced`, labels cost."""
    price = st.sampled_from([0.0, 0.01, 0.3, 0.3, 1.0, 4.0] if priced else [0.0])
    competence = st.sampled_from([0.3, 0.5, 0.55, 0.6, 0.7, 0.8, 0.8, 0.9, 0.95])
    capacity = st.sampled_from([1, 1, 1, 2, 5])
    n = max_labelers if few else draw(st.integers(1, max_labelers))
    panel = tuple(Labeler(f"m{i}", draw(competence), draw(capacity), draw(price)) for i in range(n))
    names = [labeler.id for labeler in panel]
    some = st.frozensets(st.sampled_from(names), max_size=4 if few else n)
    masked = few or draw(st.booleans())
    arrival: list[int] = []
    items: list[Item] = []
    slots = draw(st.integers(1, max_slots))
    for slot in range(slots):
        for _ in range(draw(st.sampled_from([0, 0, 1, 2, 3, 8]))):
            weight = draw(st.sampled_from([0.1, 1.0, 2.0, 3.0, 3.0, 5.0, 8.0, 8.0, 40.0]))
            eligible = draw(st.none() | some) if masked else None
            excluded = draw(some) if masked and draw(st.booleans()) else frozenset()
            items.append(Item(f"i{len(items)}", weight, eligible, excluded))
            arrival.append(slot)
    return Instance(panel, tuple(arrival), tuple(items), slots, draw(st.integers(0, 99)))
