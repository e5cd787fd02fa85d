"""`venire plan`: the length of the learning phase that the theory requires for a panel."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from venire.cli.worlds import PANEL, names_of, warn_below_chance
from venire.errors import InputError

if TYPE_CHECKING:
    from venire.paper.learning_length import Plan

__all__ = ["plan"]

EPSILON = "The error within which every competence is learned, ..."
DELTA = "... with probability at least 1 - DELTA."
CLASSES = "The possible labels, such as spam,ok. [default: 1,2]"
WEIGHTS = "The weights of items, such as 3,4 or 3-10: also plan for decisions as if known."
MAX_DELAY = "With --weights: the longest delay of an item, in slots."


def plan(
    panel: Annotated[Path, typer.Option(metavar="FILE", help=PANEL)],
    epsilon: Annotated[float, typer.Option(metavar="X", help=EPSILON)] = 0.1,
    delta: Annotated[float, typer.Option(metavar="X", help=DELTA)] = 0.05,
    classes: Annotated[str | None, typer.Option(metavar="NAMES", help=CLASSES)] = None,
    weights: Annotated[str | None, typer.Option(metavar="TEXT", help=WEIGHTS)] = None,
    max_delay: Annotated[int | None, typer.Option(metavar="N", help=MAX_DELAY)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Compute the length of the learning phase that the theory requires."""
    from venire.files import read_panel
    from venire.paper import learning_length

    if max_delay is not None and weights is None:
        raise InputError("--max-delay needs --weights: give the weights of the items, such as 3,4")
    count = len(names_of(classes) or (1, 2))
    labelers = read_panel(panel)
    warn_below_chance(labelers, count)
    made = learning_length.plan(
        [labeler.competence or 0.0 for labeler in labelers],
        epsilon,
        delta,
        count,
        weights=_weights(weights),
        max_delay=max_delay or 0,
    )
    if as_json:
        print(json.dumps(_record(made), indent=2, allow_nan=False))
    else:
        print("\n".join(made.describe()))


def _weights(text: str | None) -> tuple[float, ...] | None:
    if text is None:
        return None
    from venire.simulation.world import weights_named

    return weights_named(text)


def _record(made: Plan) -> dict[str, Any]:
    """The plan as a JSON object; infinities are null."""
    values = asdict(made) | {"kappa_3": made.kappa_3, "large_enough": made.large_enough}
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in values.items()
    }
