"""The contract of a policy: who labels what, and when an item leaves.

A policy is a small frozen value (its settings) that names its compiled kernels. The engine and
the simulator call the same kernels; nothing else decides. To add one: write a file with the
kernels and a `Policy` subclass, and name it in the package's `__init__`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import Field, fields, is_dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from venire.labels import LabelTable

__all__ = ["Kernels", "Learning", "Policy"]


class Kernels(NamedTuple):
    """The compiled side of a policy; each works on a `Desk`.

    enter(desk, row, slot)    the row becomes outstanding, or comes back with another value
    leave(desk, row)          the row is taken out of whatever the policy keeps
    serve(desk, slot)         hand out this slot's work by `touch`
    settle(desk, slot)        end the slot; how many rows leave, listed in `desk.gone`
    run(desk, stream, a, b)   slots a..b-1 of a simulated stream, by the four above
    """

    enter: Callable[..., None]
    leave: Callable[..., None]
    serve: Callable[..., None]
    settle: Callable[..., Any]
    run: Callable[..., int]


class Policy(ABC):
    """Who labels what, and when an item leaves."""

    name: ClassVar[str]

    @abstractmethod
    def kernels(self) -> Kernels:
        """The compiled kernels."""

    def settings(self) -> tuple[int, ...]:
        """Up to four whole numbers that the kernels read from `meta[SETTING:]`."""
        return ()

    def describe(self) -> str:
        """Name and settings, as `--policy` takes them.

        >>> from venire import FixedOverlap
        >>> FixedOverlap(5).describe()
        'fixed-overlap:5'
        """
        own: tuple[Field[Any], ...] = fields(self) if is_dataclass(self) else ()
        values = [str(getattr(self, f.name)) for f in own if f.name != "seed"]
        return ":".join([self.name, *values])


class Learning(ABC):
    """How the competences come to be known while a policy runs.

    Where there is none, the competences are known from the start (the paper's genie).
    """

    name: ClassVar[str]

    @abstractmethod
    def phase(self, slot: int) -> Policy | None:
        """The policy that takes this slot over, None to serve."""

    @abstractmethod
    def next_refresh(self, slot: int) -> int | None:
        """The first slot, this one or a later one, at whose end competences are learned anew."""

    @abstractmethod
    def refresh(self, table: LabelTable) -> NDArray[np.float64]:
        """The competences, in panel order, from all labels so far."""

    def counts_from(self) -> int:
        """The first slot whose arrivals count for the utility."""
        return 0

    def describe(self) -> str:
        """Name and settings, as `--learning` takes them."""
        return self.name
