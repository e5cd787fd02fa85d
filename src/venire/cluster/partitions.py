"""Partitions: files are loaded as partitions, and functions of them run where they lie.

**Where functions of partitions run: on the workers of a Dask cluster, or in this process.**

Nothing is put on a worker by hand. Everything there is what a function returned, of files or of
other such results, so that whatever a dead worker held is computed again by others.

A client of a Dask cluster: one that runs, or one that is started on this machine.

**Files of labels as partitions: each is read where it will stay, and coded by names of all.**
"""

from __future__ import annotations

import glob
import logging
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np

from venire.cluster.table import Part, PartitionedTable, compact, divided_item, plain, shuffled
from venire.errors import FileError, InputError, MissingExtra, StateError
from venire.labels import LabelTable, Names, Repeats
from venire.labels.sources.build import coded_columns, once_each, ordered_classes
from venire.labels.sources.columns import as_text
from venire.labels.sources.files import is_json_lines, is_parquet
from venire.labels.sources.sheets import COLUMNS
from venire.labels.sources.truth import by_size
from venire.tools.addresses import Address, PathOrAddress, located

#: The address that stands for a cluster of this machine.
LOCAL = "local"

#: Seconds to wait for a scheduler.
PATIENCE = 10

#: What a cluster of ours does otherwise than Dask's default. Partitions stay where they were read.
#: They are all needed in every iteration, so that spilling some of them to disk, which is slow,
#: is put off until a worker has hardly any memory left.
CONFIG = {
    "distributed.scheduler.work-stealing": False,
    "distributed.worker.memory.target": 0.85,
    "distributed.worker.memory.spill": 0.9,
    "distributed.worker.memory.pause": 0.93,
    "distributed.worker.memory.terminate": 0.97,
}


@contextmanager
def connected(
    address: str, workers: int | None = None, memory: str | float = "auto"
) -> Iterator[Any]:
    """A client of the scheduler at this address, such as tcp://10.0.0.1:8786.

    "local" starts a cluster on this machine: a worker process for each processor, or as many as
    `workers` says, each with a share of the memory, or `memory` of it ("2GB"). A worker that dies
    is started again. At the end it is stopped.
    """
    try:
        import dask
        from distributed import Client, LocalCluster
    except ImportError:
        raise MissingExtra("dask", "distributed") from None
    from venire.estimators.blocks import usable_processors

    with ExitStack() as stack:
        if address == LOCAL:
            stack.enter_context(dask.config.set(CONFIG))
            cluster = LocalCluster(
                n_workers=workers or usable_processors(),
                threads_per_worker=1,
                memory_limit=memory,
                dashboard_address="127.0.0.1:0",  # any free port, and of this machine alone
                silence_logs=logging.CRITICAL,
            )
            stack.enter_context(cluster)
            yield stack.enter_context(Client(cluster))
            return
        try:
            client = Client(address, timeout=PATIENCE)
        except (OSError, ValueError, TimeoutError) as error:
            raise InputError(
                f"there is no Dask scheduler at {address!r} ({error}): give the address that "
                f"`dask scheduler` prints, such as tcp://10.0.0.1:8786, or {LOCAL!r}"
            ) from None
        yield stack.enter_context(client)


#: Told how many partitions are done, and of how many.
Progress = Callable[[int, int], None]

#: Bytes of arguments that are sent along with every task; more of them choke a scheduler.
SMALL: Final = 1 << 14


class Place(Protocol):
    """Somewhere to run functions; what they return is there, behind a handle."""

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """A handle of what the function will return; arguments may be handles, or lists of them."""
        ...

    def share(self, value: Any) -> Any:
        """The value, or a handle of it, to be an argument many times."""
        ...

    def results(self, handles: Sequence[Any], progress: Progress | None = None) -> list[Any]:
        """What is behind the handles, brought here."""
        ...

    def finish(self, handles: Sequence[Any], progress: Progress | None = None) -> None:
        """Wait until all is there."""
        ...


class Here:
    """In this process: a handle is the result itself.

    >>> here = Here()
    >>> here.results([here.submit(sum, [1, 2])])
    [3]
    """

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return function(*arguments)

    def share(self, value: Any) -> Any:
        return value

    def results(self, handles: Sequence[Any], progress: Progress | None = None) -> list[Any]:
        return list(handles)

    def finish(self, handles: Sequence[Any], progress: Progress | None = None) -> None:
        """Nothing to wait for."""


class OnDask:
    """A cluster, by its client: a handle is a future."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return self._client.submit(function, *arguments, pure=False)

    def share(self, value: Any) -> Any:
        """The value, if it is small; else a task that holds it, so that no other need to."""
        from dask.sizeof import sizeof

        return value if sizeof(value) < SMALL else self.submit(_same, value)

    def results(self, handles: Sequence[Any], progress: Progress | None = None) -> list[Any]:
        """What the futures hold; the error of the first that failed."""
        self.finish(handles, progress)
        with _explained():
            return list(self._client.gather(list(handles)))

    def finish(self, handles: Sequence[Any], progress: Progress | None = None) -> None:
        """Wait until all are done."""
        from distributed import as_completed

        with _explained():
            for done, future in enumerate(as_completed(list(handles)), 1):
                if future.status == "error":
                    future.result()
                if progress is not None:
                    progress(done, len(handles))


def _same(value: Any) -> Any:
    return value


@contextmanager
def _explained() -> Iterator[None]:
    """A cluster that is lost, or keeps dying, in words."""
    from distributed import KilledWorker
    from distributed.client import FutureCancelledError

    try:
        yield
    except KilledWorker as error:
        raise StateError(
            "workers of the cluster died again and again on the same partition, perhaps out of "
            f"memory: give them more, or write smaller files ({error})"
        ) from None
    except FutureCancelledError as error:
        raise StateError(
            f"the cluster was lost: check its scheduler and start again ({error})"
        ) from None


#: Told what is being done, how many partitions are done, and of how many.
Watch = Callable[[str, int, int], None]

#: The endings of the files that are taken from a folder.
ENDINGS: Final = (".parquet", ".pq", ".csv", ".jsonl", ".ndjson")


def partitioned(
    files: str | PathOrAddress | Iterable[str | PathOrAddress],
    client: Any = None,
    *,
    classes: Sequence[Hashable] | None = None,
    repeats: Repeats = "error",
    columns: Sequence[str] = COLUMNS,
    ordered: bool = False,
    repartition: bool = False,
    progress: Watch | None = None,
) -> PartitionedTable:
    r"""Load files of labels as the partitions of a table, on the workers of a Dask cluster.

    Parameters
    ----------
    files
        A pattern such as ``labels/*.parquet`` or ``s3://bucket/labels/*.parquet``, a folder, or
        paths and addresses: CSV, Parquet or JSON Lines with task, worker and label. Workers read
        them, so they must find them under these names, and may read them.
    client : distributed.Client, optional
        The cluster; without it everything stays in this process.
    classes, repeats, columns
        As for `as_table`.
    ordered : bool
        Whether classes that are numbers, or text of numbers, are to be in order, for `Ordinal`.
    repartition : bool
        What to do with tasks that have labels in more than one file: raise an error, or, if true,
        move labels among the partitions until no task has.
    progress
        Called with what is being done, how many partitions are done, and of how many.

    Examples
    --------
    >>> import tempfile
    >>> from venire import MajorityVote
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name, rows in {"a": "1,ann,no", "b": "2,ann,yes"}.items():
    ...         _ = Path(folder, f"{name}.csv").write_text(f"task,worker,label\n{rows}\n")
    ...     table = partitioned(f"{folder}/*.csv")
    >>> table
    PartitionedTable(2 partitions, 2 items, 1 labelers, 2 classes)
    >>> MajorityVote().fit(table).labels_
    {1: 'no', 2: 'yes'}
    """
    paths = files_of(files)
    place: Place = Here() if client is None else OnDask(client)
    watch = _watch(progress)
    raw = [place.submit(_read, path, tuple(columns), repeats) for path in paths]
    place.finish(raw, watch("reading"))
    found = place.results([place.submit(_names, own) for own in raw])
    _, labelers, said = merged = [
        _merged([own[n] for own in found], paths, column) for n, column in enumerate(columns)
    ]
    wanted = by_size(tuple(said)) if ordered and classes is None else classes
    named, moved = ordered_classes(said, wanted, columns[2])
    names = tuple(labelers), named
    of_class = dict(zip(said, moved.tolist(), strict=True))
    coding = labelers, of_class, names, isinstance(next(iter(merged[0])), str)
    shared = place.submit(_same, coding)
    parts = [place.submit(_recoded, own, shared) for own in raw]
    place.finish(parts, watch("coding"))
    counts = [own[3] for own in found]
    divided = divided_item(place, parts, sum(counts), watch("comparing tasks"))
    if divided is not None:
        if not repartition:
            item, one, other = divided
            raise InputError(
                f"{columns[0]} {item!r} has labels in {paths[one]} and in {paths[other]}, expected "
                "all labels of one in the same file: write them so, or move labels to where the "
                "others are with repartition=True (--repartition)"
            )
        parts = shuffled(place, parts, repeats, watch("moving labels"))
        counts = place.results([place.submit(_count, part) for part in parts])
    return PartitionedTable(place, parts, counts, names, paths)


def files_of(files: str | PathOrAddress | Iterable[str | PathOrAddress]) -> list[str]:
    """The files of a pattern, in order, of a folder, or as they are listed.

    >>> files_of(["b.csv", "a.csv", "file:///data/c.csv"])
    ['b.csv', 'a.csv', '/data/c.csv']
    """
    if not isinstance(files, str | Path | Address):
        listed = [str(located(path)) for path in files]
    elif isinstance(place := located(files), Address):
        listed = place.files(ENDINGS)
    elif place.is_dir():
        listed = sorted(str(p) for p in place.iterdir() if p.suffix.lower() in ENDINGS)
    elif place.is_file():
        listed = [str(place)]
    else:
        listed = sorted(glob.glob(str(place)))
    if not listed:
        raise InputError(
            f"there is no file of labels {str(files)!r}: give a pattern such as labels/*.parquet, "
            "in quotes, or a folder"
        )
    return listed


def _watch(progress: Watch | None) -> Callable[[str], Any]:
    def of(what: str) -> Any:
        return None if progress is None else lambda done, total: progress(what, done, total)

    return of


def _read(path: str, columns: tuple[str, ...], repeats: Repeats) -> LabelTable:
    """The labels of a file, coded by its own names."""
    try:
        (task, worker, label), blame = coded_columns(path, columns, "labels")
        names = label.codes, label.names
        table = once_each(task, worker, *names, repeats, columns, blame, fewest=1)
    except FileError as error:
        raise InputError(str(error)) from None  # which can be sent to the client
    items = compact(table.items)
    return LabelTable(items, table.labelers, table.classes, table.start, table.labeler, table.said)


def _names(table: LabelTable) -> tuple[list[Any], list[Any], list[Any], int]:
    """An item to tell their type by, labelers, classes, and how many items there are."""
    some = plain(table.items[:1])
    return some, plain(table.labelers), plain(table.classes), len(table.items)


def _merged(found: Sequence[list[Any]], paths: Sequence[str], column: str) -> dict[Any, int]:
    """All names in the order in which they appear: all text, or none.

    Numbers of one CSV file are text if those of another are: so they would be in one file.
    """
    text = [isinstance(names[0], str) for names in found]
    if any(text) and not all(text):
        typed = [n for n, is_text in enumerate(text) if not is_text and not _is_csv(paths[n])]
        if typed:
            one, other = typed[0], text.index(True)
            raise InputError(
                f"{column} is {found[one][0]!r} in {paths[one]} and {found[other][0]!r}, text, in "
                f"{paths[other]}: mixed types, expected all of one: convert the column"
            )
        found = [list(as_text(names)) for names in found]
    every = dict.fromkeys(name for names in found for name in names)
    return {name: code for code, name in enumerate(every)}


def _is_csv(path: str) -> bool:
    return not is_parquet(located(path)) and not is_json_lines(located(path))


Coding = tuple[dict[Any, int], dict[Any, int], tuple[Names, Names], bool]


def _recoded(table: LabelTable, coding: Coding) -> Part:
    """The same labels, coded by the names of all."""
    of_labeler, of_class, names, text = coding
    labeler, said = (
        np.array([code[name] if name in code else code[str(name)] for name in plain(own)], np.int64)
        for code, own in ((of_labeler, table.labelers), (of_class, table.classes))
    )
    items = table.items
    if text and not isinstance(plain(items[:1])[0], str):
        items = compact(as_text(plain(items)))
    codes = table.item, labeler[table.labeler], said[table.said]
    return Part(LabelTable.from_codes(*codes, items, *names, fewest=1))


def _count(part: Part) -> int:
    return len(part.table.items)
