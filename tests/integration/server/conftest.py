"""Servers for the tests of the web layer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.server.harness import InProcess, Process, in_process, serving


@pytest.fixture
def server() -> Iterator[InProcess]:
    """A server in this process, on a store in memory."""
    with in_process() as served:
        yield served


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """`venire serve` on SQLite, one for all tests of a module."""
    folder: Path = tmp_path_factory.mktemp("serve")
    with serving(f"sqlite:///{folder}/venire.db", folder) as served:
        yield served
