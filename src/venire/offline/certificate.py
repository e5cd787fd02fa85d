"""A certificate: an upper bound on what anyone could have earned, and how tight it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from venire.display import COLOURS, axes_for, block, facts
from venire.estimators.frames import Backend, frame_of
from venire.offline.exact import exact, small
from venire.offline.instance import Block, Instance, value_of
from venire.offline.prices import candidates
from venire.offline.schedule import plan

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def schedule_columns(certificate: Certificate) -> dict[str, list[int]]:
    """The columns of `Certificate.to_frame`, by slot."""
    blocks = sorted((slot, item, labeler) for item, labeler, slot in certificate.schedule)
    names = ("slot", "item", "labeler")
    return {name: [block[k] for block in blocks] for k, name in enumerate(names)}


def shown_certificate(certificate: Certificate) -> str:
    """The bounds in HTML."""
    found = {
        "nobody can earn more than": certificate.bound,
        "known to be possible": certificate.lower,
        "gap": f"{certificate.gap:.2%}",
        "found by": certificate.method,
        "items": certificate.items,
    }
    return block("Certificate", [facts(found)])


def plot_certificate(
    certificate: Certificate, earned: Mapping[str, float], axes: Axes | None = None
) -> Axes:
    """Bars for what is possible and what was earned, and a line for the bound."""
    bars = {"known to be possible": certificate.lower, **earned}
    axes = axes_for(axes, height=1.1 + 0.35 * len(bars))
    names, values = list(bars), list(bars.values())
    colours = [COLOURS["grey"]] + [COLOURS["blue"]] * len(earned)
    axes.barh(names, values, color=colours, height=0.6)
    axes.axvline(certificate.bound, color=COLOURS["red"], linewidth=1.5)
    for k, value in enumerate(values):
        share = certificate.share(value)
        if share is not None and value > 0:
            axes.text(value, k, f"{share:.1%} ", ha="right", va="center", color="white", fontsize=9)
    axes.invert_yaxis()
    axes.set_xlabel("utility")
    axes.set_title(f"share of the bound, {certificate.bound:,.4g} (red line)")
    return axes


#: Schedules are planned at all prices whose bound is within this share of the best.
NEAR: Final = 0.02

#: With more items than this, only at the last two of them, the rough ones: they break ties, which
#: makes better plans.
MANY: Final = 20_000


@dataclass(frozen=True)
class Certificate:
    """OPT is between `lower` and `bound`; `gap` is the bound over the lower, less 1.

    `method` says how the bound was found: `exact` (the optimum of an integer program, to the
    solver's tolerance), `lp` (a Lagrangian bound at the duals of a linear program) or `prices`
    (one at prices found by sweeps); the last two are rounded outward. `schedule` is one that
    earns what is known to be possible: `lower`, unless a run that was given earns more.
    """

    bound: float
    lower: float
    method: str
    items: int
    schedule: tuple[Block, ...] = field(repr=False)

    @property
    def gap(self) -> float:
        """How much the bound may be too high, as a share of what is known to be possible."""
        return self.bound / self.lower - 1.0 if self.lower > 0 else float(self.bound > 0)

    def share(self, utility: float) -> float | None:
        """A utility as a share of the bound; None if there was nothing to earn."""
        return utility / self.bound if self.bound > 0 else None

    def to_frame(self, backend: Backend | None = None) -> Any:
        """The schedule as a dataframe: slot, item and labeler of each label, by their numbers.

        >>> tiny = Instance([8.0, 3.0], [0, 0], slots=2, evidence=[[1.0, 0.5]], capacity=[1, 1])
        >>> certify(tiny).to_frame("pandas").values.tolist()
        [[0, 0, 0], [0, 0, 1], [1, 1, 0], [1, 1, 1]]
        """
        return frame_of(schedule_columns(self), backend)

    def plot(self, earned: Mapping[str, float] | None = None, axes: Axes | None = None) -> Axes:
        """Draw what is known to be possible, and what runs `earned`, against the bound.

        On `axes` of matplotlib, or on new ones, which are returned. Needs the extra `plot`.

        >>> tiny = Instance([8.0, 3.0], [0, 0], slots=2, evidence=[[1.0, 0.5]], capacity=[1, 1])
        >>> axes = certify(tiny).plot({"mine": 6.0})
        >>> [label.get_text() for label in axes.get_yticklabels()]
        ['known to be possible', 'mine']
        """
        return plot_certificate(self, earned or {}, axes)

    def _repr_html_(self) -> str:
        """What a notebook shows: the bounds, and how they were found."""
        return shown_certificate(self)


def certify(
    instance: Instance,
    earned: float = 0.0,
    sweeps: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Certificate:
    """Bound what anyone could earn on an instance, from above and from below.

    `earned` is what some schedule is known to earn. Small instances are solved exactly, others by
    prices; for instances of medium size those of a linear program are tried too. `sweeps` is the
    number of passes over the items that find the prices.

    >>> tiny = Instance([8.0, 3.0], [0, 0], slots=2, evidence=[[1.0, 0.5]], capacity=[1, 1])
    >>> c = certify(tiny)
    >>> round(c.lower, 3), round(c.bound, 3), c.method
    (7.546, 7.546, 'exact')
    """
    if not len(instance) or not np.any(instance.evidence):
        return Certificate(0.0, 0.0, "exact", len(instance), ())
    ranked = candidates(instance, sweeps, progress)
    price, bound, method = ranked[0]
    lower, schedule = -1.0, list[Block]()
    near = [other for other in ranked if other.bound <= (1.0 + NEAR) * bound]
    for other in near if len(instance) <= MANY else near[-2:]:
        found = plan(instance, other.price)
        value = value_of(instance, found)
        if value > lower:
            lower, schedule = value, found
    if small(instance):
        best = exact(instance, price, bound, schedule)
        if best is not None:
            schedule, lower = list(best.schedule), best.value
            bound, method = min(bound, best.bound), "exact"
    return Certificate(bound, max(lower, earned), method, len(instance), tuple(schedule))
