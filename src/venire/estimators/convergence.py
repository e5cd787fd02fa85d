"""The convergence monitor: when to stop iterating, and the history of the iterations."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from venire.errors import InputError


class Step(NamedTuple):
    """One iteration: the log-likelihood it started from, the largest change it made."""

    log_likelihood: float
    change: float


@dataclass
class Monitor:
    """Stops an iteration when the parameters have converged, or after the maximum number of steps.

    Stopping on the change of the parameters, and not of the likelihood, makes the meaning of
    `tol` independent of the number of labels.

    Parameters
    ----------
    tol : float
        Stop when the largest change of a parameter is at most this.
    max_iter : int
        The maximum number of iterations.

    Attributes
    ----------
    history : list of Step
        Log-likelihood (with the penalty, where there is a prior) and largest change.
    reason : "converged", "max_iter" or None
        Why it stopped; None while it runs.

    Examples
    --------
    >>> monitor = Monitor(tol=0.01, max_iter=10)
    >>> for change in (0.5, 0.05, 0.005, 0.0005):
    ...     if monitor.done:
    ...         break
    ...     monitor.report(log_likelihood=-1.0 - change, change=change)
    >>> monitor.n_iter, monitor.reason, monitor.converged
    (3, 'converged', True)
    """

    tol: float = 1e-6
    max_iter: int = 1000
    history: list[Step] = field(default_factory=list)
    reason: Literal["converged", "max_iter"] | None = None

    def __post_init__(self) -> None:
        if not (math.isfinite(self.tol) and self.tol >= 0):
            raise InputError(f"got a tolerance of {self.tol!r}, expected a number of at least 0")
        if self.max_iter != int(self.max_iter) or self.max_iter < 0:
            raise InputError(f"got max_iter={self.max_iter!r}, expected a whole number, 0 or more")
        self._check_length()

    def report(self, log_likelihood: float, change: float) -> None:
        """Record one iteration and decide whether it was the last."""
        self.history.append(Step(float(log_likelihood), float(change)))
        self._check_length()
        if change <= self.tol:
            self.reason = "converged"

    def resume(self) -> None:
        """Continue after a jump to another start; earlier iterations still count."""
        self.reason = None
        self._check_length()

    def _check_length(self) -> None:
        if self.n_iter >= self.max_iter:
            self.reason = "max_iter"

    @property
    def done(self) -> bool:
        return self.reason is not None

    @property
    def converged(self) -> bool:
        return self.reason == "converged"

    @property
    def n_iter(self) -> int:
        return len(self.history)


def one_iteration() -> Monitor:
    """The monitor of a fit without iterations."""
    monitor = Monitor(0.0, 1)
    monitor.report(0.0, 0.0)
    return monitor
