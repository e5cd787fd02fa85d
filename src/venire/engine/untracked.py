"""Objects that the garbage collector need not look at.

A full collection goes through every object that Python tracks, and stops all threads meanwhile:
150 ms with 300,000 open items. Items hold names and numbers, nothing that leads back to them, so
they are in no cycle; untracked, they are still freed when the last reference goes. The same holds
for the lists of them. Why `gc.freeze` does not do: docs/defense-of-design.md.
"""

from __future__ import annotations

import ctypes
import gc
import platform
from typing import Final, TypeVar

__all__ = ["untracked"]

T = TypeVar("T")

_CPYTHON: Final = platform.python_implementation() == "CPython"

if _CPYTHON:
    _untrack = ctypes.pythonapi.PyObject_GC_UnTrack
    _untrack.argtypes, _untrack.restype = [ctypes.py_object], None


def untracked(thing: T) -> T:
    """The same object, no longer tracked by the collector; it must be in no cycle.

    >>> from venire import Item
    >>> gc.is_tracked(untracked(Item("post-1")))
    False
    """
    if _CPYTHON and gc.is_tracked(thing):
        _untrack(thing)
    return thing
