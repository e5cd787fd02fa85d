"""What all plots share: colours, and the axes that they are drawn on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from venire.errors import MissingExtra

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["COLOURS", "axes_for", "require_matplotlib"]

#: Okabe and Ito's colours, which colour-blind eyes tell apart.
COLOURS: Final = {
    "blue": "#0072B2",
    "orange": "#E69F00",
    "green": "#009E73",
    "red": "#D55E00",
    "purple": "#CC79A7",
    "sky": "#56B4E9",
    "black": "#000000",
    "grey": "#7F7F7F",
}


def require_matplotlib(extra: str = "plot") -> None:
    """Raise an error that says which extra to install if matplotlib is missing."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise MissingExtra("matplotlib", extra) from None


def axes_for(axes: Axes | None, width: float = 6.4, height: float = 3.6) -> Axes:
    """These axes; without any, new ones of this size in inches, which a notebook shows.

    >>> axes_for(None).get_figure().get_size_inches().tolist()
    [6.4, 3.6]
    """
    require_matplotlib()
    if axes is None:
        from matplotlib import pyplot

        drawn: Any = pyplot.subplots(figsize=(width, height), layout="constrained")[1]
        axes = drawn
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return axes
