"""Which sessions wrote the rows of streams, noted by PostgreSQL itself.

A trigger notes for each statement that changes rows of a stream by which session that is, whether
it owns the stream at that moment, and when. What is rolled back leaves no note.
"""

from __future__ import annotations

from typing import Any

import psycopg

__all__ = ["begin_notes", "now", "session_of", "strays", "written_since"]

_SESSION = "pid || ' since ' || backend_start"

_NOTES = f"""
CREATE TABLE written_by (
    session text, stream text, held boolean, last timestamptz, PRIMARY KEY (session, stream, held)
);
CREATE FUNCTION note_session() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO written_by SELECT
        (SELECT {_SESSION} FROM pg_stat_activity WHERE pid = pg_backend_pid()),
        changed.stream,
        EXISTS (
            SELECT 1 FROM claims WHERE stream = changed.stream AND pid = pg_backend_pid()
            UNION SELECT 1 FROM servers WHERE address = '' AND pid = pg_backend_pid()
        ),
        clock_timestamp()
    FROM (SELECT DISTINCT stream FROM changed_rows) AS changed
    ON CONFLICT (session, stream, held) DO UPDATE SET last = excluded.last;
    RETURN NULL;
END $$;
"""

_CHANGES = [
    *(("INSERT", table) for table in ("events", "items", "labels", "leases", "deliveries")),
    *(("UPDATE", table) for table in ("items", "leases", "deliveries")),
]


def begin_notes(storage: str) -> None:
    """Note who writes from now on; the store must exist."""
    with psycopg.connect(storage, autocommit=True) as connection:
        connection.execute(_NOTES.encode())
        for change, table in _CHANGES:
            connection.execute(
                f"CREATE TRIGGER note_{change} AFTER {change} ON {table} REFERENCING NEW TABLE AS "
                "changed_rows FOR EACH STATEMENT EXECUTE FUNCTION note_session()".encode()
            )


def session_of(storage: str, address: str) -> str:
    """The session in which the server with an address writes."""
    found = _ask(
        storage,
        f"SELECT {_SESSION} FROM pg_stat_activity JOIN servers USING (pid) "
        "WHERE address IN (%s, '')",  # without an address: the only one
        address,
    )
    assert len(found) == 1, f"{address} has the sessions {found}"
    return str(found[0][0])


def now(storage: str) -> Any:
    """The time by PostgreSQL's clock."""
    return _ask(storage, "SELECT clock_timestamp()")[0][0]


def written_since(storage: str, session: str, when: Any) -> list[tuple[Any, ...]]:
    """The streams that a session has written after a time."""
    query = "SELECT stream, last FROM written_by WHERE session = %s AND last > %s"
    return _ask(storage, query, session, when)


def strays(storage: str) -> list[tuple[Any, ...]]:
    """What was written without a claim; nothing was noted if nothing was written."""
    assert _ask(storage, "SELECT 1 FROM written_by WHERE held LIMIT 1")
    return _ask(storage, "SELECT * FROM written_by WHERE NOT held")


def _ask(storage: str, query: str, *values: Any) -> list[tuple[Any, ...]]:
    with psycopg.connect(storage, autocommit=True) as connection:
        return connection.execute(query.encode(), values).fetchall()
