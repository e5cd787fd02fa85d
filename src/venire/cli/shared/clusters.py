"""`--jobs` and `--cluster`: several processes, or a Dask cluster, in the place of one process."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from venire.cli.shared import screen
from venire.errors import InputError
from venire.tools.addresses import Address, PathOrAddress, located, readable

if TYPE_CHECKING:
    from venire.labels.partitions import Table

__all__ = [
    "CLUSTER",
    "JOBS",
    "REPARTITION",
    "client_of",
    "hint",
    "is_several",
    "read_files",
    "refuse",
    "worker_count",
]

CLUSTER = "Work on a Dask cluster: the address of its scheduler, or local to start one here."
JOBS = "Processes to run at once. [default: one for each core]"
REPARTITION = "Of several files: move labels until each task has all of its own in one partition."

#: Bytes that one process needs for a label, at most, as measured (docs/cluster.md): while it reads
#: the file of the label, and of several files, which it reads one after the other, of each label.
BYTES: Final = 150
JOINED: Final = 45

#: The share of the memory from which a cluster is worth a thought.
SHARE: Final = 0.25

#: What one file gets as advice first.
APART: Final = (
    "write them as several files, all labels of a task in one, which are read one after the other "
    "and take {:.1f} GB, or "
)

#: How many files, and how many bytes of a text, are read to estimate the number of labels.
SAMPLE: Final = 10
FIRST: Final = 1 << 16

#: What a container may have, by the second and the first version of control groups.
LIMITS: Final = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)


def worker_count(jobs: int | None, cluster: str | None = None) -> int:
    """How many processes to run: `jobs`, validated, or one for each core."""
    if jobs is not None and cluster is not None:
        raise InputError("got --jobs and --cluster, expected one of them: a cluster has workers")
    if jobs is not None and not 1 <= jobs <= 1024:
        raise InputError(f"got --jobs {jobs}, expected 1 to 1024 processes")
    return jobs or len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else jobs or 2


@contextmanager
def client_of(cluster: str | None) -> Iterator[Any]:
    """A client of the cluster; None without one."""
    if cluster is None:
        yield None
        return
    from venire.cluster import connected

    with connected(cluster) as client:
        yield client


def is_several(labels: PathOrAddress) -> bool:
    """Whether labels are given by a pattern or a folder, not as one file.

    >>> is_several(Path("labels/*.parquet")), is_several(Path("labels.csv"))
    (True, False)
    """
    if isinstance(labels, Address):
        return labels.is_pattern or labels.is_dir()
    return labels.is_dir() or (not labels.exists() and any(c in str(labels) for c in "*?["))


def read_files(
    labels: PathOrAddress,
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


def hint(labels: PathOrAddress) -> None:
    """Say when labels may take much of the memory of this machine."""
    from venire.cluster.loading import files_of

    several = is_several(labels)
    files = files_of(labels) if several else [str(labels)]
    some = [_rows(located(path)) for path in files[:: -(-len(files) // SAMPLE)]]
    rows = sum(some) * len(files) / len(some)
    need, memory = (BYTES * max(some) + JOINED * rows if several else BYTES * rows), _memory()
    if memory and need > SHARE * memory:
        apart = "" if several else APART.format(JOINED * rows / 1e9)
        screen.warn(
            f"about {rows:,.0f} labels may take {need / 1e9:.1f} GB of this machine's "
            f"{memory / 1e9:.1f} GB: {apart}divide them among machines with --cluster "
            "(docs/cluster.md)"
        )


def _rows(path: PathOrAddress) -> float:
    """How many labels a file has: of text, about, by its size and its first lines."""
    from venire.labels.sources.files import is_parquet

    try:
        if is_parquet(path):
            from pyarrow import parquet

            with readable(path) as file:
                return int(parquet.read_metadata(file).num_rows)
        if isinstance(path, Path) and not path.is_file():  # a pipe can be read once
            return 0
        with path.open(encoding="utf-8", newline="") as text:
            lines = text.readlines(FIRST)
        size = path.size() if isinstance(path, Address) else path.stat().st_size
        return size * len(lines) / sum(len(line.encode()) for line in lines) if lines else 0
    except (ImportError, OSError, ValueError):
        return 0  # whoever reads it says what is wrong


def _memory() -> int:
    """The memory of this machine, or what a container may have of it."""
    try:
        found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return 0
    for limit in LIMITS:
        with suppress(OSError, ValueError):  # no such file, or "max"
            found = min(found, int(limit.read_text()))
    return found


def refuse_forms(form: dict[str, bool]) -> None:
    """An error about options that several files do not have."""
    given = next((name for name, is_set in form.items() if is_set), None)
    if given is not None:
        raise InputError(
            f"--{given} is for one file: columns of several files are recognised in each, or named "
            "with --columns"
        )


def refuse(cluster: str | None, what: str) -> None:
    """An error about an option that needs one process."""
    if cluster is not None:
        raise InputError(f"--cluster and {what} exclude each other: it needs all in one process")
