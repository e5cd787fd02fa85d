"""Every store keeps alarms, once each, and reads the audit trail backwards."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from venire.errors import StoreError
from venire.server.store import (
    AlarmRow,
    AuditRow,
    Insert,
    StreamRow,
    open_storage,
)


@pytest.mark.parametrize("kind", ["memory", "sqlite", "postgres"])
def test_alarms_are_kept_in_order(new_url: Callable[[str], str], kind: str) -> None:
    rows = [
        AlarmRow(
            stream="s",
            n=n,
            at=4.5,
            rule="queue",
            subject="né",
            raised=n == 1,
            value=1 / 3,
            threshold=0.25,
            message="x",
        )
        for n in (1, 2)
    ]
    with open_storage(new_url(kind)) as storage:
        storage.write([Insert([StreamRow(name="s", created_at=0.0)]), Insert(rows)])
        assert storage.alarms("s") == rows
        assert storage.alarms("s", 1) == rows[1:]
        assert storage.alarms("s", 0, 1) == rows[:1]
        assert storage.alarms("other") == []
        for refused in (rows[0], rows[0]._replace(stream="nobody")):
            with pytest.raises(StoreError):
                storage.write([Insert([refused])])


@pytest.mark.parametrize("kind", ["memory", "sqlite", "postgres"])
def test_the_audit_trail_is_read_backwards(new_url: Callable[[str], str], kind: str) -> None:
    with open_storage(new_url(kind)) as storage:
        rows = [
            AuditRow(
                n=0, at=float(n), actor="me", key=None, action="ab"[n % 2], stream="st"[n // 3]
            )
            for n in range(6)
        ]
        storage.write([Insert(rows)])

        def times(*args: object) -> list[float]:
            return [row.at for row in storage.recent_audit(*args)]  # type: ignore[arg-type]

        assert times() == [5, 4, 3, 2, 1, 0]
        fourth = storage.recent_audit(None, 2)[-1].n
        assert times(fourth, 2) == [3, 2]
        assert times(None, None, "s") == [2, 1, 0]
        assert times(None, None, "s", "a") == [2, 0]
