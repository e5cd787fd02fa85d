"""Every store keeps alarms, once each."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from venire.errors import StoreError
from venire.storage import AddAlarms, AddStream, AlarmRow, StreamRow, open_storage


@pytest.mark.parametrize("kind", ["memory", "sqlite", "postgres"])
def test_alarms_are_kept_in_order(new_url: Callable[[str], str], kind: str) -> None:
    rows = [AlarmRow("s", n, 4.5, "queue", "né", n == 1, 1 / 3, 0.25, "x") for n in (1, 2)]
    with open_storage(new_url(kind)) as storage:
        storage.write([AddStream(StreamRow("s", 0.0)), AddAlarms(rows)])
        assert storage.alarms("s") == rows
        assert storage.alarms("s", 1) == rows[1:]
        assert storage.alarms("s", 0, 1) == rows[:1]
        assert storage.alarms("other") == []
        for refused in (rows[0], rows[0]._replace(stream="nobody")):
            with pytest.raises(StoreError):
                storage.write([AddAlarms([refused])])
