"""What a record is: a tuple whose fields are declared once, by name, with what a database needs.

A record is declared as a class. From its fields come the table in SQL (`sql.tables`), the
statements that insert its rows, the rows that are read back, its lines in an archive
(`maintenance.archive`) and its columns in a Parquet file (`history.files`). Only migrations are
written by hand; a test compares the tables that they make with the declarations.

    class NoteRow(Record, table="notes", key="stream n", indexes={"by_item": "stream item n"}):
        stream: Stream          # belongs to a stream: a foreign key
        n: int                  # BIGINT; `Small` is INTEGER
        item: str
        kind: Annotated[str, OneOf(NoteKind)]  # a CHECK constraint
        text: str
        at: float
        key: str | None = None  # may be NULL

A new field goes to the end and has a default, so that older archives can be restored. Rows are
made by name only: `NoteRow(stream="posts", n=1, ...)`. They are tuples so that a driver takes
thousands of them as they are; a type checker does not know that, and refuses `row[2]`.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import NoneType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    NamedTuple,
    Self,
    TypeAlias,
    TypeVar,
    cast,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

R = TypeVar("R", bound="Record")


@dataclass(frozen=True)
class References:
    """A foreign key: the column that it refers to, and whether rows go with the one they name."""

    column: str
    cascade: bool = False


class OneOf:
    """The values that a column may have."""

    def __init__(self, values: Iterable[str]) -> None:
        self.values = tuple(map(str, values))


#: An INTEGER; other whole numbers are BIGINT.
Small: TypeAlias = Annotated[int, "small"]

#: The name of the stream that a row belongs to.
Stream: TypeAlias = Annotated[str, References("streams.name")]


class Field(NamedTuple):
    """A column: its Python type, whether it may be NULL, and what else was declared of it."""

    name: str
    type: type
    nullable: bool
    marks: tuple[Any, ...]


class Table(NamedTuple):
    """The table of a record; see the keywords of `Record`."""

    name: str
    key: tuple[str, ...]
    fields: tuple[Field, ...]
    unique: Mapping[str, tuple[str, ...]]
    indexes: Mapping[str, tuple[str, ...]]
    numbered: bool
    replaces: bool

    @property
    def of_stream(self) -> bool:
        """Whether its rows belong to a stream, and go with it."""
        return any(References("streams.name") in field.marks for field in self.fields)


def _field(name: str, hint: Any) -> Field:
    """A column by its annotation: `float | None`, `Small`, `Annotated[str, OneOf(...)]`."""
    marks: tuple[Any, ...] = ()
    if get_origin(hint) is Annotated:
        hint, *more = get_args(hint)
        marks = tuple(more)
    parts = [part for part in get_args(hint) if part is not NoneType] or [hint]
    inner = _field(name, parts[0]) if get_origin(parts[0]) is Annotated else None
    if inner is not None:
        return inner._replace(nullable=True)
    return Field(name, parts[0], NoneType in get_args(hint), marks)


def _maker(
    name: str,
    names: tuple[str, ...],
    defaults: Mapping[str, Any],
    record: type | None = None,
) -> Callable[..., Any]:
    """`__new__` with a keyword for each field; of one record, a function without its class."""
    keywords = ", ".join(f"{n}=_{n}" if n in defaults else n for n in names)
    first = "_cls, " if record is None else ""
    source = f"lambda {first}*, {keywords}: _new(_cls, ({', '.join(names)},))"
    values = {f"_{name}": value for name, value in defaults.items()}
    made: Callable[..., Any] = eval(source, {"_new": tuple.__new__, "_cls": record, **values})
    made.__name__ = made.__qualname__ = name
    return made


def _table(
    fields: tuple[Field, ...],
    *,
    table: str,
    key: str,
    unique: Mapping[str, str] | None = None,
    indexes: Mapping[str, str] | None = None,
    numbered: bool = False,
    replaces: bool = False,
) -> Table:
    def split(named: Mapping[str, str] | None) -> dict[str, tuple[str, ...]]:
        return {name: tuple(columns.split()) for name, columns in (named or {}).items()}

    columns = tuple(key.split())
    return Table(table, columns, fields, split(unique), split(indexes), numbered, replaces)


@dataclass_transform(kw_only_default=True, frozen_default=True)
class _RecordType(type):
    """Makes the class of a record: a named tuple that takes its values by name only."""

    def __new__(
        cls, name: str, bases: tuple[type, ...], body: dict[str, Any], **declared: Any
    ) -> Any:
        if not bases:
            return super().__new__(cls, name, bases, body)
        names = tuple(body["__annotations__"])
        defaults = {field: body.pop(field) for field in names if field in body}
        body |= {"__slots__": (), "__new__": _maker(name, names, defaults)}
        made: Any = super().__new__(cls, name, (*bases, namedtuple(name, names)), body)
        hints = get_type_hints(made, include_extras=True)
        made.DEFAULTS = defaults
        made.COLUMNS = tuple(_field(field, hints[field]) for field in names)
        if declared:
            made.TABLE = _table(made.COLUMNS, **declared)
        return made

    def __init__(
        cls, name: str, bases: tuple[type, ...], body: dict[str, Any], **declared: Any
    ) -> None:
        super().__init__(name, bases, body)


def maker(record: type[R]) -> type[R]:
    """A function that makes such records as its class does, but quicker: for thousands of rows.

    Python packs the keywords of a class into a dictionary, and those of a function not.
    """
    return cast("type[R]", _maker(record.__name__, record._fields, record.DEFAULTS, record))


class Record(metaclass=_RecordType):
    """A row with named values.

    Keywords of the class: `table`, its name; `key`, the names of its primary key; `unique` and
    `indexes`, the columns of each by its name; `numbered`, whether the database numbers the rows
    by the first column; `replaces`, whether a row takes the place of one with the same key.

    >>> class Pair(Record, table="pairs", key="left"):
    ...     left: str
    ...     right: float | None = None
    >>> Pair(left="a"), Pair.TABLE.fields[1].nullable
    (Pair(left='a', right=None), True)
    >>> Pair.load(["a", 2.0])._replace(left="b")
    Pair(left='b', right=2.0)
    >>> Pair("a")
    Traceback (most recent call last):
    TypeError: ...
    """

    __slots__ = ()

    COLUMNS: ClassVar[tuple[Field, ...]]
    DEFAULTS: ClassVar[Mapping[str, Any]]
    TABLE: ClassVar[Table]

    if TYPE_CHECKING:  # what it has of a named tuple
        _fields: ClassVar[tuple[str, ...]]

        @classmethod
        def _make(cls, values: Iterable[Any]) -> Self: ...
        def _replace(self, **changes: Any) -> Self: ...
        def _asdict(self) -> dict[str, Any]: ...
        def __lt__(self, other: Self) -> bool: ...

    @classmethod
    def load(cls, values: Iterable[Any]) -> Self:
        """A record from values in the order of its columns, of which an older version had fewer."""
        given = list(values)
        if len(given) > len(cls._fields):
            raise ValueError(f"got {len(given)} values, expected at most {len(cls._fields)}")
        return cls(**dict(zip(cls._fields, given, strict=False)))

    def __reduce__(self) -> tuple[Any, ...]:
        return self._make, (tuple(self),)  # type: ignore[arg-type]
