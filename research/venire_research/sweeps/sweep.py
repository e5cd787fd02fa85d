"""A sweep: many points, each a function with its settings, none of them run twice.

    with Store("points.sqlite") as store:
        results = sweep(points, store, Processes(2))

An interrupted sweep continues where it stopped: call it again with the same store.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from typing import Any

from venire.errors import InputError
from venire_research.sweeps.executors import Executor, Serial
from venire_research.sweeps.store import Store

__all__ = ["Point", "sweep"]

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Point:
    """A function, "module:name", and the settings it is called with.

    The key is a hash of function, settings and `version`; raise the version of a function when
    it returns something else for the same settings. `inputs` are handed to the function too but
    are not hashed: they say where to find something (a folder) that the settings identify.

    >>> a = Point("statistics:fmean", {"data": [1, 2]})
    >>> a.run(), a.key == Point("statistics:fmean", {"data": [1, 2]}).key
    (1.5, True)
    >>> a.key == Point("statistics:fmean", {"data": [1, 2]}, version="2").key
    False
    """

    function: str
    settings: Mapping[str, Any]
    version: str = "1"
    inputs: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def key(self) -> str:
        """The key of the point in a store."""
        return hashlib.sha256(self.canonical().encode()).hexdigest()

    def canonical(self) -> str:
        """Function, settings and version as JSON, always the same text for the same point."""
        record = {"function": self.function, "settings": self.settings, "version": self.version}
        try:
            return json.dumps(record, sort_keys=True, separators=(",", ":"), allow_nan=False)
        except (TypeError, ValueError) as error:
            raise InputError(f"the settings {self.settings!r} are not JSON: {error}") from None

    def run(self) -> Any:
        """Call the function. An error says which point it was."""
        module, _, name = self.function.partition(":")
        try:
            function = getattr(import_module(module), name)
        except (ImportError, AttributeError):
            raise InputError(
                f"there is no function {self.function!r}, expected module:name"
            ) from None
        try:
            return function(**self.settings, **self.inputs)
        except Exception as error:
            error.add_note(f"while running {self.canonical()}")
            raise


def sweep(
    points: Iterable[Point],
    store: Store,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Run the points that the store lacks; the results of all points, by key.

    Every result is stored as soon as it is there. `progress(done, total)` is called after each.

    >>> with Store(":memory:") as store:
    ...     points = [Point("statistics:fmean", {"data": [1, n]}) for n in (2, 3, 2)]
    ...     list(sweep(points, store).values()), len(store)
    ([1.5, 2.0], 2)
    """
    wanted = {point.key: point for point in points}
    results = store.get(wanted)
    missing = [point for key, point in wanted.items() if key not in results]
    total = len(wanted)
    if progress and missing:
        progress(len(results), total)
    with _closing((executor or Serial()).run(missing)) as finished:
        for point, result in finished:
            store.put(point, result)
            results[point.key] = json.loads(json.dumps(result))  # as the store gives it back
            if progress:
                progress(len(results), total)
    return {key: results[key] for key in wanted}


@contextmanager
def _closing(finished: Iterator[tuple[Point, Any]]) -> Iterator[Iterator[tuple[Point, Any]]]:
    """Close the iterator if it can be closed: a generator then stops its processes."""
    try:
        yield finished
    finally:
        close = getattr(finished, "close", None)
        if close is not None:
            close()
