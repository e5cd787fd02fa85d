"""How the kernels are compiled.

Two decorators over `numba.njit`:

    @kernel   an entry point, kept in Numba's cache on disk
    @inlined  a part of one, compiled into whatever calls it

Kernels allocate nothing, so both switch Numba's reference counting off: it costs two atomic
operations for every array handed to a function, thirty times what a turn itself costs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

from numba import njit

__all__ = ["inlined", "kernel"]

F = TypeVar("F", bound=Callable[..., Any])

# `_nrt` is not in njit's published signature, hence the dictionary. With NumPy's error model a
# division need not look whether it is by zero; the kernels divide by nothing that can be.
_LEAN: Final[dict[str, Any]] = {"_nrt": False, "error_model": "numpy"}


def kernel(function: F) -> F:
    """Compile an entry point, and keep the result on disk."""
    compiled: F = njit(cache=True, **_LEAN)(function)
    return compiled


def inlined(function: F) -> F:
    """Compile a part of a kernel."""
    compiled: F = njit(forceinline=True, **_LEAN)(function)
    return compiled
