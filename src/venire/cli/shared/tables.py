"""What commands about a table of labels share: columns, repeats, prices, the truth, clusters."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, cast, get_args

import typer

from venire.cli.shared import first_given, screen
from venire.errors import FileError, InputError, UnknownName
from venire.tools.addresses import Address, PathOrAddress, located, readable

if TYPE_CHECKING:
    from collections.abc import Hashable

    from venire.files.audits import KnownLabels
    from venire.labels import LabelTable
    from venire.labels import Repeats as Kept
    from venire.labels.partitions import Table


_LABELS = (
    "The labels: CSV, Parquet, JSON Lines or .xlsx with task,worker,label or other usual names, or "
    "a column for each judge; - is stdin; or a pattern of files, or a folder; here, or at an "
    "address (s3://bucket/*.parquet)."
)
_COLUMNS = (
    "The names of the columns. [default: task,worker,label, or the columns that look like them]"
)
_REPEATS = "Repeated labels of a task by one worker: error, or keep the first or the last."
_FAMILIES = (
    "Who may share errors: a file with labeler,family, or a YAML, TOML or JSON mapping of labeler "
    "to family. [default: a column family of the labels]"
)
WIDE = "Each judge has a column, and each item a row. [default: detected]"
BLANK = "Labels that mean no label, such as N/A: rows with them are left out."
COSTS = "What errors cost, truth:verdict=cost, as in toxic:ok=10; the others cost 1."
CLASSES = "The possible labels, such as spam,ok. [default: the labels that occur]"
PROBABILITIES = "With --out: also the probability of each class, one column each."
VERDICT_COLUMNS = "The names of the columns of the verdicts. [default: task,label]"
MERGE = "Merge labels that look alike: 1, 1.0 and True; Yes and yes."

# The options of the commands that read a table of labels.
Labels = Annotated[str, typer.Argument(metavar="LABELS", help=_LABELS)]
Columns = Annotated[str | None, typer.Option(metavar="NAMES", help=_COLUMNS)]
Repeats = Annotated[str | None, typer.Option(metavar="WHICH", help=_REPEATS)]
FamiliesFile = Annotated[Path | None, typer.Option(metavar="FILE", help=_FAMILIES)]
Wide = Annotated[bool, typer.Option("--wide", help=WIDE)]
CostsGiven = Annotated[str | None, typer.Option(metavar="COSTS", help=COSTS)]
Classes = Annotated[str | None, typer.Option(metavar="NAMES", help=CLASSES)]
Probabilities = Annotated[bool, typer.Option("--probabilities", help=PROBABILITIES)]
VerdictColumns = Annotated[str | None, typer.Option(metavar="NAMES", help=VERDICT_COLUMNS)]
Merge = Annotated[bool, typer.Option("--merge", help=MERGE)]
Blank = Annotated[str | None, typer.Option(metavar="NAMES", help=BLANK)]

#: Files that map labelers to their families; others are tables.
_MAPPINGS = (".json", ".toml", ".yaml", ".yml")


def blank_of(text: str | None) -> tuple[str, ...]:
    """The labels in `N/A,-` that stand for none.

    >>> blank_of(" N/A, -"), blank_of(None)
    (('N/A', '-'), ())
    """
    return tuple(filter(None, (name.strip() for name in (text or "").split(","))))


def names_of(text: str | None) -> tuple[str, ...] | None:
    """The classes in `a,b,c`; None for None."""
    if text is None:
        return None
    names = tuple(name.strip() for name in text.split(","))
    if len(names) < 2 or "" in names or len(set(names)) < len(names):
        raise InputError(f"got --classes {text!r}, expected two names or more, such as spam,ok")
    return names


def columns_of(text: str | None, default: Sequence[str], wide: bool = False) -> tuple[str, ...]:
    """The names in `item,judge,verdict`; the default for None.

    In a wide table they are the column of the items and those of the judges.
    """
    if text is None:
        return tuple(default)
    names = tuple(name.strip() for name in text.split(","))
    if wide and len(set(names)) == len(names) > 2 and "" not in names:
        return names
    if wide:
        raise InputError(
            f"got --wide --columns {text!r}, expected the column of the items and those of two or "
            "more judges, as in id,gpt,llama"
        )
    if len(set(names)) != len(default) or len(names) != len(default) or "" in names:
        raise InputError(
            f"got --columns {text!r}, expected {len(default)} names, for {', '.join(default)}"
        )
    return names


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How a table of labels is read: the options of the commands that read one."""

    columns: Columns = None
    wide: Wide = False
    merge: Merge = False
    blank: Blank = None
    repeats: Repeats = "error"

    @cached_property
    def named(self) -> tuple[str, ...]:
        """What the columns are called."""
        from venire.labels.sources import COLUMNS

        return columns_of(self.columns, COLUMNS, self.wide)

    @property
    def beside(self) -> tuple[str, ...]:
        """What columns are called in other files about these labels, which have none of judges."""
        from venire.labels.sources import COLUMNS

        return COLUMNS if self.wide else self.named

    @cached_property
    def kept(self) -> Kept:
        """What to do with repeated labels; other words are refused."""
        from venire.labels import Repeats as Kept

        text = self.repeats or "error"
        if text not in get_args(Kept):
            raise UnknownName("way with --repeats", text, get_args(Kept))
        return cast("Kept", text)

    def check(self) -> None:
        """Refuse wrong options before anything is read."""
        _ = self.named, self.kept

    def table(
        self, labels: PathOrAddress, classes: Sequence[str] | None = None, ordered: bool = False
    ) -> LabelTable:
        """The labels of one file."""
        from venire.labels.sources import as_ordered, as_table

        read = as_ordered if ordered else as_table
        form: dict[str, Any] = {"wide": self.wide, "merge": self.merge}
        form |= {"blank": blank_of(self.blank), "tell": screen.say}
        return read(labels, classes, self.kept, self.named, **form)

    def partitioned(
        self,
        labels: PathOrAddress,
        client: Any,
        classes: Sequence[str] | None,
        ordered: bool = False,
        repartition: bool = False,
        working: Callable[[str], object] = str,
    ) -> Table:
        """The labels of a file, or of several: as partitions on the cluster if there is one."""
        if client is None and not is_several(labels):
            return self.table(labels, classes, ordered)
        from venire.cluster import partitioned

        def progress(what: str, done: int, total: int) -> None:
            working(f"{what}: {done:,} of {total:,} files")

        form = {"wide": self.wide, "merge": self.merge, "blank": blank_of(self.blank) or None}
        given = first_given(form)
        if given is not None:
            raise InputError(
                f"--{given} is for one file: columns of several files are recognised in each, or "
                "named with --columns"
            )
        table = partitioned(
            labels,
            client,
            classes=classes,
            repeats=self.kept,
            columns=self.named,
            ordered=ordered,
            repartition=repartition or client is None,
            progress=progress,
        )
        return table if client is not None else table.gather()


def prices_of(path: Path, table: LabelTable) -> dict[Hashable, float]:
    """The prices of a file, by the labelers' names in the table, which may be whole numbers."""
    from venire.files import read_prices

    read = read_prices(path)
    missing = next((name for name in table.labelers if str(name) not in read), None)
    if missing is not None:
        message = f"labeler {str(missing)!r} has labels and no price: add a line, 0 for free labels"
        raise FileError(path, None, message)
    return {name: read[str(name)] for name in table.labelers}


def families_of(
    file: Path | None, labels: PathOrAddress, table: Table, columns: Sequence[str]
) -> dict[Hashable, Hashable] | None:
    """The families that a file declares, else a column `family` of the labels; None: neither."""
    from venire.cluster.partitions import files_of
    from venire.labels.sources import as_families

    if file is not None:
        return _declared(file, table)
    if isinstance(labels, Path) and labels.exists() and not (labels.is_file() or labels.is_dir()):
        return None  # a pipe can be read once
    found: dict[Hashable, Hashable] = {}
    paths = [located(path) for path in files_of(labels)] if is_several(labels) else [labels]
    for path in paths:
        for name, family in (as_families(path, table, (columns[1], "family")) or {}).items():
            if found.setdefault(name, family) != family:
                message = (
                    f"labeler {name!r} is of family {family!r}, and of {found[name]!r} in a file "
                    "before: expected one family for each, correct one of them"
                )
                raise FileError(path, None, message)
    return found or None


def gold_of(
    path: Path, table: LabelTable, columns: Sequence[str], *, others: bool = False
) -> KnownLabels:
    """The known labels in a file, by the names of items and classes in the table.

    Rows without a label are skipped, as in a list that is not yet filled in. A class that nobody
    ever said is refused, unless `others` may be there.
    """
    from venire.files import read_known
    from venire.files.audits import KnownLabels
    from venire.labels.sources.columns import like
    from venire.labels.sources.sheets import truth_columns

    read, day, asked = read_known(path, truth_columns(path, columns))
    names, labels = like(list(read), table.items), like(list(read.values()), table.classes)
    odd = next((said for said in labels if said not in set(table.classes)), None)
    if odd is not None and not others:
        raise InputError(
            f"{path} has the label {odd!r}, which is not one of the classes "
            f"{list(table.classes)}: name all of them with --classes, or correct it"
        )
    there = set(table.items)
    if read and not there.intersection(names):
        message = f"none of its tasks is among the labels', such as {table.items[0]!r}"
        raise FileError(path, None, message)
    known = {name: k for name, k in zip(names, labels, strict=True) if name in there}
    chosen = frozenset(name for name, text in zip(names, read, strict=True) if text in asked)
    return KnownLabels(known, day, chosen)


def related_lines(relations: Sequence[str]) -> Sequence[str]:
    """Who shares errors, a sentence each; one that says so if nobody does."""
    return relations or ("nobody is known to share errors",)


def _declared(path: Path, table: Table) -> dict[Hashable, Hashable]:
    """The families of a file: a table, or a mapping of labeler to family."""
    from venire.files.trees import read_tree
    from venire.labels.sources import as_families
    from venire.labels.sources.columns import like

    columns = "labeler", "family"
    if path.suffix.lower() not in _MAPPINGS:
        found = as_families(path, table, columns)
        if found is None:
            message = "there is no column 'family': expected labeler,family, a row for each labeler"
            raise FileError(path, None, message)
        return found
    tree = read_tree(path)
    named = tree.content if isinstance(tree.content, dict) else {}
    odd = next((who for who, family in named.items() if isinstance(family, dict | list)), None)
    if not named or odd is not None:
        got = type(tree.content).__name__ if odd is None else f"{odd!r}: {named[odd]!r}"
        message = (
            f"got {got}, expected a mapping of labeler to family: write llama-a: llama for each"
        )
        raise FileError(path, None if odd is None else tree.line((odd,)), message)
    source = dict(zip(columns, (like(named, table.labelers), list(named.values())), strict=True))
    try:
        return as_families(source, table, columns) or {}
    except InputError as error:
        raise FileError(path, None, str(error)) from None


def true_labels(
    path: PathOrAddress, table: LabelTable, columns: Sequence[str]
) -> dict[Hashable, Hashable]:
    """The true classes in a file, by item; one that nobody ever said is never right."""
    from venire.labels.sources import as_truth
    from venire.labels.sources.sheets import truth_columns

    codes = as_truth(path, table, truth_columns(path, columns))
    outside = ("a class that nobody ever said",)
    names = (*table.classes, outside)
    pairs = zip(table.items, codes.tolist(), strict=True)
    return {item: names[k] for item, k in pairs if k >= 0}


def check_list(out: Path, sources: Iterable[PathOrAddress | None], holds: str) -> None:
    """Refuse to overwrite a list that may have been filled in, and what cannot be written."""
    from venire.files import check_targets

    check_targets([out], sources)
    if out.is_file():
        raise FileError(out, None, f"it exists and may hold {holds}: choose another name")


CLUSTER = "Work on a Dask cluster: the address of its scheduler, or local to start one here."
JOBS = "Processes to run at once. [default: one for each core]"
REPARTITION = "With several files: move labels until all those of a task are in one partition."

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


def hint(labels: PathOrAddress) -> None:
    """Say when labels may take much of the memory of this machine."""
    from venire.cluster.partitions import files_of

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


def refuse(cluster: str | None, what: str) -> None:
    if cluster is not None:
        raise InputError(f"--cluster and {what} exclude each other: it needs all in one process")
