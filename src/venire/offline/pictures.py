"""What a certificate looks like: columns for a dataframe, a table for a notebook, a plot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from venire.display.drawing import COLOURS, axes_for
from venire.display.html import block, facts

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from venire.offline.certificate import Certificate

__all__ = ["plot_certificate", "schedule_columns", "shown_certificate"]


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
