"""Your own data: readers that check everything first, writers that write all or nothing."""

from __future__ import annotations

from venire.datasets.items import ItemTable, read_items
from venire.datasets.panel import read_panel
from venire.datasets.results import (
    Output,
    assignments_output,
    check_targets,
    exits_output,
    write_outputs,
)

__all__ = [
    "ItemTable",
    "Output",
    "assignments_output",
    "check_targets",
    "exits_output",
    "read_items",
    "read_panel",
    "write_outputs",
]
