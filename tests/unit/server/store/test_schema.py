"""The tables, the tuples and the migrations agree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import create_engine, event, text

from venire.errors import StoreError
from venire.server.store import open_storage, records
from venire.server.store.record import Record
from venire.server.store.sql import migrations, tables
from venire.server.store.sql.storage import Storage


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_the_migrations_lead_to_the_tables(new_url: Callable[[str], str], kind: str) -> None:
    with open_storage(new_url(kind)) as storage:
        assert isinstance(storage, Storage)
        with storage._engine.connect() as connection:
            options = {"compare_type": True, "version_table": migrations.VERSION_TABLE}
            context = MigrationContext.configure(connection, opts=options)
            assert compare_metadata(context, tables.metadata) == []
            assert migrations.version_of(connection) == migrations.HEAD


def test_a_store_that_somebody_made_meanwhile_is_left_alone() -> None:
    with create_engine("sqlite://").connect() as connection:
        migrations.upgrade(connection, "sqlite://")
        written: list[str] = []

        def note(_: Any, __: Any, statement: str, *___: Any) -> None:
            written.append(statement)

        event.listen(connection, "before_cursor_execute", note)
        migrations.upgrade(connection, "sqlite://")
        assert [sql for sql in written if not sql.startswith(("SELECT", "PRAGMA"))] == []
        connection.execute(text(f"UPDATE {migrations.VERSION_TABLE} SET version_num = '9999'"))
        with pytest.raises(StoreError, match=r"sqlite:// was written by a newer venire"):
            migrations.upgrade(connection, "sqlite://")
        assert migrations.version_of(connection) == "9999"


def test_no_migration_that_was_released_is_removed_or_moved() -> None:
    released = (
        "first_tables listings queues audit webhooks revisions tallies gold notes console archived "
        "history servers corrections confidence routed rationale repeats"
    )
    names = [migrate.__name__.removeprefix("_") for migrate in migrations.MIGRATIONS[:18]]
    assert names == released.split()


@pytest.mark.parametrize("record", records.RECORDS)
def test_a_record_has_the_columns_of_its_table(record: type[Record]) -> None:
    columns = tuple(column.name for column in tables.metadata.tables[record.TABLE.name].columns)
    assert columns == record._fields


def test_no_table_is_forgotten() -> None:
    kept = {record.TABLE.name for record in records.RECORDS}
    assert {*kept, "meta", "servers", "claims"} == set(tables.metadata.tables)
    declared = {name for name in vars(records) if name.endswith("Row")} - {"ExitRow"}
    assert {record.__name__ for record in records.RECORDS} == declared
