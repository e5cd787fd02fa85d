"""`--cluster`: a Dask cluster in the place of one process, and when it would pay."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from venire.cli import screen
from venire.errors import InputError

if TYPE_CHECKING:
    from venire.labels.partitions import Table

__all__ = ["CLUSTER", "REPARTITION", "client_of", "hint", "is_several", "read_files", "refuse"]

CLUSTER = "Work on a Dask cluster: the address of its scheduler, or local to start one here."
REPARTITION = "Of several files: move labels until each task has all of its own in one partition."

#: Memory that one process needs for a label, at most, as measured: see docs/cluster.md.
BYTES: Final = 150

#: The share of the memory from which a cluster is worth a thought.
SHARE: Final = 0.25


@contextmanager
def client_of(cluster: str | None) -> Iterator[Any]:
    """A client of the cluster; None without one."""
    if cluster is None:
        yield None
        return
    from venire.cluster import connected

    with connected(cluster) as client:
        yield client


def is_several(labels: Path) -> bool:
    """Whether labels are given by a pattern or a folder, not as one file.

    >>> is_several(Path("labels/*.parquet")), is_several(Path("labels.csv"))
    (True, False)
    """
    return labels.is_dir() or (not labels.exists() and any(c in str(labels) for c in "*?["))


def read_files(
    labels: Path,
    client: Any,
    classes: Sequence[str] | None,
    repeats: Any,
    columns: Sequence[str],
    ordered: bool,
    repartition: bool,
    working: Callable[[str], object] = str,
) -> Table:
    """The labels of files as partitions on the cluster; without one, as one table."""
    from venire.cluster import partitioned

    def progress(what: str, done: int, total: int) -> None:
        working(f"{what}: {done:,} of {total:,} files")

    table = partitioned(
        labels,
        client,
        classes=classes,
        repeats=repeats,
        columns=columns,
        ordered=ordered,
        repartition=repartition or client is None,
        progress=progress,
    )
    return table if client is not None else table.gather()


def hint(labels: Path) -> None:
    """Say when labels may take much of the memory of this machine."""
    from venire.cluster.loading import files_of

    files = files_of(labels) if is_several(labels) else [labels]
    rows = sum(_rows(Path(path)) for path in files)
    memory = _memory()
    if memory and rows * BYTES > SHARE * memory:
        screen.warn(
            f"{rows:,.0f} labels may take {rows * BYTES / 1e9:.1f} GB of this machine's "
            f"{memory / 1e9:.1f} GB: write them as several files, all labels of a task in one, and "
            "divide the work with --cluster (docs/cluster.md)"
        )


def _rows(path: Path) -> float:
    """How many labels a file has: of text, about, by its size."""
    from venire.labels.sources.files import is_parquet

    try:
        if is_parquet(path):
            from pyarrow import parquet

            return int(parquet.read_metadata(path).num_rows)
        return path.stat().st_size / 20
    except (ImportError, OSError, ValueError):
        return 0  # whoever reads it says what is wrong


def _memory() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return 0


def refuse(cluster: str | None, what: str) -> None:
    """An error about an option that needs one process."""
    if cluster is not None:
        raise InputError(f"--cluster and {what} exclude each other: it needs all in one process")
