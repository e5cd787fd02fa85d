"""The tables, the tuples and the migrations agree."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from venire.server.store import open_storage, rows
from venire.server.store.sql import schema, tables
from venire.server.store.sql.writing import SqlStorage


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_the_migrations_lead_to_the_tables(new_url: Callable[[str], str], kind: str) -> None:
    with open_storage(new_url(kind)) as storage:
        assert isinstance(storage, SqlStorage)
        with storage._engine.connect() as connection:
            options = {"compare_type": True, "version_table": schema.VERSION_TABLE}
            context = MigrationContext.configure(connection, opts=options)
            assert compare_metadata(context, tables.metadata) == []
            assert schema.version_of(connection) == schema.HEAD


def test_the_last_script_is_the_version_of_the_code() -> None:
    scripts = ScriptDirectory(str(Path(schema.__file__).parent / "migrations"))
    assert scripts.get_current_head() == schema.HEAD
    assert sorted(script.revision for script in scripts.walk_revisions()) == [
        f"{n:04}" for n in range(1, int(schema.HEAD) + 1)
    ]


@pytest.mark.parametrize("table", sorted(rows.ROWS))
def test_a_tuple_has_the_columns_of_its_table(table: str) -> None:
    columns = tuple(column.name for column in tables.metadata.tables[table].columns)
    assert columns == rows.ROWS[table]._fields  # type: ignore[attr-defined]


def test_no_table_is_forgotten() -> None:
    assert {*rows.ROWS, "meta", "servers", "claims"} == set(tables.metadata.tables)
    written = {name for name in rows.__all__ if name.endswith("Row")} - {"ExitRow"}
    assert {row.__name__ for row in rows.ROWS.values()} == written
