"""Things of which there are hundreds of thousands, and which the collector of cycles may pass over.

A full collection goes through every object that Python tracks, and stops all threads meanwhile:
with 300,000 open items that took half a second, time and again. Items hold names and numbers,
nothing that leads back to them, so that they are in no cycle; without being tracked they go as
ever when nobody needs them. The same holds for the lists of them, whose entries it would look at.
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
    """The same thing, which the collector does not look at any more; it must be in no cycle.

    >>> from venire import Item
    >>> gc.is_tracked(untracked(Item("post-1")))
    False
    """
    if _CPYTHON and gc.is_tracked(thing):
        _untrack(thing)
    return thing
