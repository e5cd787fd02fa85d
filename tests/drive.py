"""Drive the engine over a simulated world, slot by slot, by its four verbs."""

from __future__ import annotations

from venire import Item, Label, Learning, Policy, Scheduler, World
from venire.model import Assignment, Exit
from venire.scheduling.loop import ask
from venire.simulation.run import stream_of


def drive(
    world: World, policy: Policy, slots: int, learning: Learning | None = None
) -> tuple[list[Assignment], list[Exit], Scheduler]:
    """The assignments and exits of the engine on the world, every label within its slot."""
    items = world.items(slots)
    stream = stream_of(world, items, slots)
    names = [labeler.id for labeler in world.panel]
    number = {name: m for m, name in enumerate(names)}
    row = {str(items.name(i)): i for i in range(len(items))}
    s = Scheduler(world.panel, world.classes, policy, learning)
    given: list[Assignment] = []
    left: list[Exit] = []
    for slot in range(slots):
        arriving = range(stream.first[slot], stream.first[slot + 1])
        group = items.group if items.group is not None else [0] * len(items)
        s.arrive(
            Item(
                str(items.name(i)),
                float(items.weight[i]),
                frozenset(names[m] for m in items.groups[group[i]]) if group[i] else None,
            )
            for i in arriving
        )
        for a in s.assign():
            given.append(a)
            said = ask(stream, row[a.item], number[a.labeler])
            s.observe(Label(a.item, a.labeler, world.classes[said]))
        left += s.close()
    return given, left, s
