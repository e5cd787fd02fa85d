"""Simulated worlds, runs on them, and their results."""

from __future__ import annotations

from venire.simulation.run import Run, simulate
from venire.simulation.world import Arrivals, Bursty, Fixed, Poisson, Trace, World

__all__ = ["Arrivals", "Bursty", "Fixed", "Poisson", "Run", "Trace", "World", "simulate"]
