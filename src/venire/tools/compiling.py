"""How the kernels are compiled, and when compiled code on disk is still valid.

Three decorators over `numba.njit`, all of which let other threads run:

    @kernel   an entry point, kept in Numba's cache on disk
    @inlined  a part of one, compiled into whatever calls it
    @threaded an entry point that may allocate; it takes options of njit

Kernels allocate nothing, so the first two switch reference counting off: it costs two atomic
operations for every array passed to a function, thirty times the cost of a labeler's turn.

Numba keeps what it compiled until the file of the entry point changes; it does not see a change
in a part that comes from another file. So the key of a cached kernel holds a digest of all
sources that a kernel may be made of: after any change there, everything is compiled again.

A kernel may be built by a function, out of kernels that it is given (see
`scheduling.algorithm1.build`). Numba's own key would hold these kernels pickled, which is different
in every process, so that nothing would ever be found on disk. Here the key names each of them, with
the state of its file.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import FunctionType, MethodType
from typing import Any, Final, TypeVar

from numba import njit
from numba.core.caching import FunctionCache

__all__ = ["inlined", "kernel", "threaded"]

#: The packages in which parts of kernels live.
WITH_KERNELS: Final = (
    "estimators",
    "labels",
    "offline",
    "paper",
    "scheduling",
    "simulation",
    "tools",
)

F = TypeVar("F", bound=Callable[..., Any])

# `_nrt` is not in njit's published signature, hence the dictionary. With NumPy's error model a
# division is not checked for zero; no kernel divides by zero.
_LEAN: Final[dict[str, Any]] = {"nogil": True, "_nrt": False, "error_model": "numpy"}


def kernel(function: F) -> F:
    """Compile an entry point, and keep the result on disk until a source of kernels changes."""
    compiled: F = _kept(njit(**_LEAN)(function))
    return compiled


def inlined(function: F) -> F:
    """Compile a part of a kernel."""
    compiled: F = njit(forceinline=True, **_LEAN)(function)
    return compiled


def threaded(**options: Any) -> Callable[[F], F]:
    """Compile an entry point that may allocate, and keep the result on disk likewise."""

    def compiled(function: F) -> F:
        kept: F = _kept(njit(nogil=True, **options)(function))
        return kept

    return compiled


def _kept(compiled: Any) -> Any:
    function: FunctionType | None = getattr(compiled, "py_func", None)
    if function is None:  # with NUMBA_DISABLE_JIT nothing is compiled
        return compiled
    parts = _parts(function)
    if parts:  # an index file of its own, not one for all that the same builder makes
        names = hashlib.sha256(repr([name for name, *_ in parts]).encode()).hexdigest()[:16]
        function.__qualname__ = f"{function.__name__}.{names}"
    if all(stamp for _, stamp, _ in parts):  # code from a prompt has no file to check
        compiled._cache = _SourceCache(function, parts)
    return compiled


class _SourceCache(FunctionCache):
    """Numba's cache on disk, with the sources of all kernels in its key."""

    def __init__(self, function: FunctionType, parts: list[_Part]) -> None:
        super().__init__(function)  # type: ignore[no-untyped-call]
        self._parts = parts
        file: Any = self._cache_file
        file.save = MethodType(_save, file)
        file._load_index = MethodType(_load_index, file)

    def _index_key(self, sig: Any, codegen: Any) -> tuple[Any, ...]:
        code = hashlib.sha256(self._py_func.__code__.co_code).hexdigest()
        parts = hashlib.sha256(repr(self._parts).encode()).hexdigest()
        return sig, codegen.magic_tuple(), (code, parts), _sources()


#: The name of a part, the state of its file (empty without one), and the hash of its code.
_Part = tuple[str, str, str]


def _parts(function: FunctionType) -> list[_Part]:
    """What a built kernel is made of: the functions in its closure, and in theirs."""
    found: list[_Part] = []
    for cell in function.__closure__ or ():
        part = getattr(cell.cell_contents, "py_func", cell.cell_contents)
        if isinstance(part, FunctionType):
            path = Path(part.__code__.co_filename)
            stamp = f"{path} {_stamp(path)}" if path.is_file() else ""
            code = hashlib.sha256(part.__code__.co_code).hexdigest()
            found += [(f"{part.__module__}.{part.__qualname__}", stamp, code), *_parts(part)]
        else:
            found.append((repr(part), "constant", ""))
    return found


def _stamp(path: Path) -> str:
    stat = path.stat()
    return f"{stat.st_size} {stat.st_mtime_ns}"


def _load_index(file: Any) -> dict[Any, str]:
    """Numba's index of a cached function; empty where another version of venire wrote it.

    The index names the types of arguments by their modules, and fails to load without them.
    """
    try:
        index: dict[Any, str] = type(file)._load_index(file)
    except (ImportError, AttributeError):
        return {}
    return index


def _save(file: Any, key: Any, data: Any) -> None:
    """Save under a name of the key's own.

    Numba numbers the files of a function. Two processes that compile it at the same time for
    different types may take the same number, and a later one would run code for other types.
    """
    name = f"{Path(file._index_name).stem}.{hashlib.sha256(pickle.dumps(key)).hexdigest()[:16]}.nbc"
    file._save_data(name, data)
    kept = file._load_index()
    kept[key] = name
    file._save_index(kept)


@cache
def _sources() -> str:
    """A digest of names, sizes and times of the source files that kernels are made of."""
    digest = hashlib.sha256()
    root = Path(__file__).parent.parent
    packages = (path for name in WITH_KERNELS for path in (root / name).rglob("*.py"))
    for path in sorted([*root.glob("*.py"), *packages]):
        digest.update(f"{path.relative_to(root)} {_stamp(path)}\n".encode())
    return digest.hexdigest()
