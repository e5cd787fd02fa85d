"""The world that the options of `venire simulate` describe."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from venire.cli import screen
from venire.errors import InputError

if TYPE_CHECKING:
    from venire.model import Labeler
    from venire.simulation import World

__all__ = ["PANEL", "make_world", "names_of", "warn_below_chance"]

PANEL = "Your labelers: CSV with labeler,competence and optionally capacity, price."


def make_world(
    items: Path | None,
    panel: Path | None,
    classes: Sequence[str] | None,
    arrivals: str | None,
    weights: str | None,
    slots: int,
    seed: int,
) -> World:
    """Your own items and panel, the synthetic stream with your panel, or all synthetic."""
    if items is None:
        return _synthetic(panel, classes, arrivals, weights, seed)
    if panel is None:
        raise InputError("--items needs --panel: give the labelers in a file of their own")
    for option, given in (("--arrivals", arrivals), ("--weights", weights)):
        if given is not None:
            raise InputError(f"--items and {option} exclude each other: {items} has its own")
    return _trace(items, panel, classes, slots, seed)


def _trace(items: Path, panel: Path, classes: Sequence[str] | None, slots: int, seed: int) -> World:
    from venire.files import read_items, read_panel
    from venire.simulation import World

    labelers = read_panel(panel)
    table = read_items(items, [labeler.id for labeler in labelers], slots, classes)
    return World.columns(
        table.ids,
        table.arrival,
        table.weight,
        labelers,
        table.allowed,
        table.truth,
        table.classes,
        seed,
    )


def _synthetic(
    panel: Path | None,
    classes: Sequence[str] | None,
    arrivals: str | None,
    weights: str | None,
    seed: int,
) -> World:
    from venire.files import read_panel
    from venire.simulation import World
    from venire.simulation.world import arrivals_named, weights_named

    world = World.synthetic(
        seed,
        arrivals=arrivals_named(arrivals or "poisson:5"),
        weights=weights_named(weights or "3-10"),
        classes=len(classes or (1, 2)),
    )
    if panel is not None:
        world = replace(world, panel=read_panel(panel))
    return replace(world, classes=tuple(classes)) if classes else world


def names_of(text: str | None) -> tuple[str, ...] | None:
    """The classes in `a,b,c`; None for None."""
    if text is None:
        return None
    names = tuple(name.strip() for name in text.split(","))
    if len(names) < 2 or "" in names or len(set(names)) < len(names):
        raise InputError(f"got --classes {text!r}, expected two names or more, such as spam,ok")
    return names


def warn_below_chance(panel: Sequence[Labeler], classes: int) -> None:
    """Warn about labelers at or below chance."""
    low = [who.id for who in panel if (who.competence or 0) <= 1 / classes]
    if not low:
        return
    names = ", ".join(low[:3]) + (f" and {len(low) - 3} more" if len(low) > 3 else "")
    verb = "is" if len(low) == 1 else "are"
    screen.warn(
        f"{names} {verb} at or below chance ({1 / classes:.3g} with {classes} classes): utility "
        "gives no credit for such labels"
    )
