"""How the kernels are compiled, and when compiled code on disk is still valid.

Three decorators over `numba.njit`, all of which let other threads run:

    @kernel   an entry point, kept in Numba's cache on disk
    @inlined  a part of one, compiled into whatever calls it
    @threaded an entry point that may allocate; it takes options of njit

Kernels allocate nothing, so the first two switch reference counting off: it costs two atomic
operations for every array passed to a function, thirty times the cost of a labeler's turn.

Numba optimises each function and generates machine code for it, again in everything that calls it,
and wraps it for Python and for C. Parts need none of this: theirs is done once, in the entry point
that they are compiled into (`_PartCode`, `_EntryCode`). Called from Python, a part is an entry
point of its own, and an entry point that another one calls is a part of that one.

What is on disk is found by content: the key of a kernel holds a digest of all sources that a kernel
may be made of, since Numba itself does not see a change in a part that comes from another file.
After a change there everything is compiled again; after installing the same version again, nothing.
Of processes that need the same kernel at the same time one compiles it (`_Turn`).

A kernel may be built by a function, out of kernels that it is given (see
`scheduling.kernel.build`). Numba's own key would hold these kernels pickled, which is different
in every process, so that nothing would ever be found on disk. Here the key names each of them, with
a digest of its file.
"""

# mypy: disable-error-code="no-untyped-call,attr-defined,import-untyped"
# Numba has few types.

from __future__ import annotations

import atexit
import hashlib
import logging
import os
import pickle
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from threading import Event
from types import FunctionType, MethodType
from typing import Any, ClassVar, Final, TypeVar

from llvmlite.binding import parse_assembly
from numba import config, njit, types
from numba.core.caching import FunctionCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.environment import lookup_environment

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


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

#: Modules at the root that neither a kernel nor a decision of the engine is made of.
NO_PART: Final = ("datasets.py", "operations.py", "testing.py")

F = TypeVar("F", bound=Callable[..., Any])


class Notice:
    """One line where somebody waits for the compiler: on stderr, or wherever the program logs.

    It comes with the eleventh function, since ten take no time worth a word. `given` is set by
    whoever shows more than this line.
    """

    given: ClassVar[bool] = False
    functions: ClassVar[int] = 0

    @classmethod
    def count(cls) -> None:
        """One more function is compiled.

        >>> Notice.count()
        """
        cls.functions += 1
        if cls.given or cls.functions <= 10:
            return
        cls.given = True
        logging.getLogger("venire").warning(
            "venire compiles, which takes up to half a minute the first time; "
            "`venire warm-up` does it beforehand"
        )


class _PartCode(JITCodeLibrary):
    """The code of a part: neither optimised as a whole nor made into machine code."""

    @property
    def codegen(self) -> Any:
        """For Numba, which would set the environment in machine code that there is not."""
        return _NoCode

    def finalize(self) -> None:
        self._raise_if_finalized()
        self._final_module.verify()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        self._ensure_finalized()
        return 0

    def with_parts(self) -> dict[int, Any]:
        """It and all that it is made of, each once."""
        found: dict[int, Any] = {id(self): self}
        for library in self._linking_libraries:
            found |= (
                library.with_parts() if isinstance(library, _PartCode) else {id(library): library}
            )
        return found

    def _get_module_for_linking(self) -> Any:
        """It with its parts, for a function that was not compiled by this module."""
        if self._shared_module is None:
            libraries = list(self.with_parts().values())
            empty = self._codegen._create_empty_module(self.name)
            self._shared_module = parse_assembly(str(empty))
            _link(self._shared_module, [one for one in libraries if isinstance(one, _PartCode)])
            for one in libraries:
                if not isinstance(one, _PartCode):
                    self._shared_module.link_in(one._get_module_for_linking(), preserve=True)
        return self._shared_module


class _NoCode:
    """Stands for a code generator that generated nothing."""

    @staticmethod
    def set_env(name: str, environment: Any) -> None:
        """There is nothing to set it in; the entry point does (`_EntryCode._finalize_specific`)."""


class _EntryCode(JITCodeLibrary):
    """The code of an entry point: all of its parts are linked into it, then it is optimised."""

    def add_linking_library(self, library: Any) -> None:
        if not isinstance(library, _PartCode):
            super().add_linking_library(library)
            return
        library._ensure_finalized()
        for one in library.with_parts().values():
            if isinstance(one, _PartCode):
                self.parts[id(one)] = one
            else:
                super().add_linking_library(one)

    @property
    def parts(self) -> dict[int, _PartCode]:
        """The parts, by identity."""
        found: dict[int, _PartCode] = self.__dict__.setdefault("_parts", {})
        return found

    def finalize(self) -> None:
        for part in self.parts.values():
            self._reload_init.update(part._reload_init)
        _link(self._final_module, list(self.parts.values()))
        super().finalize()

    def _verify_declare_only_symbols(self) -> None:
        """Numba looks for its own functions; one of ours would be a call of nothing."""
        super()._verify_declare_only_symbols()
        for function in self._final_module.functions:
            if function.is_declaration and function.name.startswith("_ZN"):
                raise AssertionError(f"{function.name} is called and not there")

    def _finalize_specific(self) -> None:
        super()._finalize_specific()
        for variable in self._final_module.global_variables:
            if variable.name.startswith("_ZN08NumbaEnv"):
                environment = lookup_environment(variable.name)
                if environment is not None:
                    self._codegen.set_env(variable.name, environment)


class _LeanCode(_EntryCode):
    """An entry point that counts no references: no pass that looks for them."""

    def _optimize_final_module(self) -> None:
        passes, builder = self._codegen._module_pass_manager()
        with self._recorded_timings.record("Module passes (full optimization)", builder):
            passes.run(self._final_module, builder)


def _link(module: Any, parts: list[_PartCode]) -> None:
    """Add the functions of parts to a module, from which whatever nobody calls may then be removed.

    Only then: LLVM does not even add what may be removed and has not been called yet.
    """
    for part in parts:
        own = [one.name for one in part._final_module.functions if not one.is_declaration]
        module.link_in(part._final_module, preserve=True)
        for name in own:
            module.get_function(name).linkage = "linkonce_odr"


class _Into(Compiler):
    """Numba's compiler, which puts the code into a library of this class."""

    library: ClassVar[type[JITCodeLibrary]]

    def define_pipelines(self) -> Any:
        Notice.count()
        if self.state.library is None:
            codegen = self.state.targetctx.codegen()
            self.state.library = self.library(codegen, self.state.func_id.func_qualname)
            self.state.library.enable_object_caching()
        return super().define_pipelines()


class _IntoPart(_Into):
    library = _PartCode


class _IntoEntry(_Into):
    library = _EntryCode


class _IntoLeanEntry(_Into):
    library = _LeanCode


# `_nrt` is not in njit's published signature, hence the dictionary. With NumPy's error model a
# division is not checked for zero; no kernel divides by zero.
_LEAN: Final[dict[str, Any]] = {"nogil": True, "_nrt": False, "error_model": "numpy"}
_ENTRY: Final[dict[str, Any]] = {
    **_LEAN,
    "no_cfunc_wrapper": True,
    "pipeline_class": _IntoLeanEntry,
}
_THREADED: Final[dict[str, Any]] = {
    "nogil": True,
    "no_cfunc_wrapper": True,
    "pipeline_class": _IntoEntry,
}
_PART: Final[dict[str, Any]] = {
    **_LEAN,
    "forceinline": True,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
    "pipeline_class": _IntoPart,
}


def kernel(function: F) -> F:
    """Compile an entry point, and keep the result on disk until a source of kernels changes.

    Another kernel that calls it takes it as a part.
    """
    entry: Any = _kept(njit(**_ENTRY)(function))
    if hasattr(entry, "py_func"):  # with NUMBA_DISABLE_JIT nothing is compiled
        part: Any = inlined(function)
        entry.get_call_template, entry.get_overload = part.get_call_template, part.get_overload
    compiled: F = entry
    return compiled


def inlined(function: F) -> F:
    """Compile a part of a kernel."""
    part: Any = njit(**_PART)(function)
    if hasattr(part, "py_func"):
        # Python never sees a compiled part, and so always asks for one to be compiled
        part.add_overload = lambda done: part.overloads.update({tuple(done.signature.args): done})
        part._compile_for_args = lambda *given, **named: _alone(function)._compile_for_args(
            *given, **named
        )
        template = part.get_call_template
        part.get_call_template = lambda given, named: template(
            tuple(map(_wide, given)), {name: _wide(kind) for name, kind in named.items()}
        )
    compiled: F = part
    return compiled


def _wide(kind: Any) -> Any:
    """The type with which a part is compiled for an argument of this one: all integers are one.

    Numba would compile one for each size of integer, and for each constant that it is given.
    """
    kind = types.unliteral(kind)
    small = isinstance(kind, types.Integer) and kind.bitwidth < 64
    return types.int64 if small else kind


@cache
def _alone(part: FunctionType) -> Any:
    """A part as an entry point, for callers in Python."""
    return njit(**_ENTRY)(part)


def threaded(**options: Any) -> Callable[[F], F]:
    """Compile an entry point that may allocate, and keep the result on disk likewise."""

    def compiled(function: F) -> F:
        kept: F = _kept(njit(**_THREADED, **options)(function))
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
    if all(digest for _, digest, _ in parts):  # code from a prompt has no file to check
        try:
            compiled._cache = _SourceCache(function, parts)
        except RuntimeError:  # Numba has no folder that it may write to
            if _temporary_folder():
                compiled._cache = _SourceCache(function, parts)
    return compiled


@cache
def _temporary_folder() -> bool:
    """Keep compiled code in a folder of this process alone; whether there is one."""
    named = os.environ.get("NUMBA_CACHE_DIR")
    why = (
        f"NUMBA_CACHE_DIR={named} is not a folder that this user may write to"
        if named
        else "there is no folder for compiled code that this user may write to"
    )
    try:
        folder = tempfile.mkdtemp(prefix="venire-kernels-")
    except OSError:
        kept = "nothing is kept"
    else:
        owner = os.getpid()

        def remove() -> None:
            if os.getpid() == owner:  # and not a process that was forked from this one
                shutil.rmtree(folder, ignore_errors=True)

        atexit.register(remove)
        # Numba reads the variable again when it changes, and processes started by this one see it
        os.environ["NUMBA_CACHE_DIR"] = config.CACHE_DIR = folder
        kept = f"it is kept in {folder} until the program ends"
    warnings.warn(
        f"{why}: {kept}, and each start compiles for up to a minute. Set NUMBA_CACHE_DIR to a "
        "folder that it may write to",
        RuntimeWarning,
        stacklevel=2,
    )
    return kept != "nothing is kept"


class _SourceCache(FunctionCache):
    """Numba's cache on disk, with the sources of all kernels in its key."""

    def __init__(self, function: FunctionType, parts: list[_Part]) -> None:
        super().__init__(function)
        self._parts = parts
        file: Any = self._cache_file
        self._turn = _Turn(Path(file._index_path).with_suffix(".lock"))
        source = Path(function.__code__.co_filename)
        file.contents = lambda: (_sources(), _digest(source))
        file.save = MethodType(_save, file)
        file._load_index = MethodType(_load_index, file)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """What is on disk; if another process is compiling it, what that one puts there."""
        found = super().load_overload(sig, target_context)
        if found is None and self._turn.taken():
            found = super().load_overload(sig, target_context)
        if found is not None:
            self._turn.over()
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep it on disk; who waits for it reads it there."""
        try:
            super().save_overload(sig, data)
        finally:
            self._turn.over()

    def _index_key(self, sig: Any, codegen: Any) -> tuple[Any, ...]:
        code = hashlib.sha256(self._py_func.__code__.co_code).hexdigest()
        parts = hashlib.sha256(repr(self._parts).encode()).hexdigest()
        return sig, codegen.magic_tuple(), (code, parts), _sources()


class _Turn:
    """Whose turn it is to compile a kernel, among processes that share a cache: by a locked file.

    Nobody waits for longer than `PATIENCE`: who has the lock may be suspended. Where files cannot
    be locked, each compiles for itself.
    """

    PATIENCE: ClassVar[float] = 60.0

    def __init__(self, path: Path) -> None:
        self._path, self._file = path, -1

    def taken(self) -> bool:
        """Take the turn, after somebody else if need be; whether somebody else had it."""
        if fcntl is None or self._file >= 0:
            return False
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(self._path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o666)
        except OSError:
            return False
        for waited in range(int(self.PATIENCE / 0.05)):
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                Event().wait(0.05)
            except OSError:
                return False
            else:
                return waited > 0
        return False

    def over(self) -> None:
        """Let the next one have it."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


#: The name of a part, a digest of its file (empty without one), and one of its code.
_Part = tuple[str, str, str]


def _parts(function: FunctionType) -> list[_Part]:
    """What a built kernel is made of: the functions in its closure, and in theirs."""
    found: list[_Part] = []
    for cell in function.__closure__ or ():
        part = getattr(cell.cell_contents, "py_func", cell.cell_contents)
        if isinstance(part, FunctionType):
            path = Path(part.__code__.co_filename)
            code = hashlib.sha256(part.__code__.co_code).hexdigest()
            name = f"{part.__module__}.{part.__qualname__}"
            found += [(name, _digest(path), code), *_parts(part)]
        else:
            found.append((repr(part), "constant", ""))
    return found


@cache
def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def _load_index(file: Any) -> dict[Any, str]:
    """Numba's index of a cached function; empty where another version of venire wrote it.

    The index names the types of arguments by their modules, and fails to load without them. It is
    for sources of these contents, in place of Numba's size and time of change.
    """
    file._source_stamp = file.contents()
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


def source_files(packages: Iterable[str]) -> list[Path]:
    """The files of these packages, and of the modules at the root, but those of `NO_PART`."""
    root = Path(__file__).parent.parent
    found = [path for path in root.glob("*.py") if path.name not in NO_PART]
    return sorted([*found, *(path for name in packages for path in (root / name).rglob("*.py"))])


@cache
def _sources() -> str:
    """A digest of names and contents of the source files that kernels are made of."""
    digest = hashlib.sha256()
    root = Path(__file__).parent.parent
    for path in source_files(WITH_KERNELS):
        digest.update(f"{path.relative_to(root)} {_digest(path)}\n".encode())
    return digest.hexdigest()
