"""The version of a store's schema, and how it is upgraded.

The version stands in the table `venire_version`. A store of a newer version is refused; an older
one is upgraded in one transaction, so that it is of one version or the other, never in between.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Final

from sqlalchemy import Connection, inspect, text

from venire.errors import StoreError
from venire.server.store.sql.tables import metadata

_MIGRATIONS: Final = Path(__file__).parent / "migrations"

#: The version that this code reads and writes: that of the last migration.
HEAD: Final = max(script.name[1:5] for script in (_MIGRATIONS / "versions").glob("v*.py"))

VERSION_TABLE = "venire_version"

LOG = logging.getLogger("venire.storage")


def version_of(connection: Connection) -> str | None:
    """The version of the store, None if there is nothing yet.

    >>> from sqlalchemy import create_engine
    >>> with create_engine("sqlite://").connect() as connection:
    ...     print(version_of(connection))
    None
    """
    tables = set(inspect(connection).get_table_names())
    if VERSION_TABLE in tables:
        found: str | None = connection.execute(
            text(f"SELECT version_num FROM {VERSION_TABLE}")
        ).scalar()
        return found
    ours = sorted(tables & set(metadata.tables))
    if ours:
        raise StoreError(
            f"this is not a store of venire: it has tables of the same names ({', '.join(ours)}) "
            f"but no {VERSION_TABLE}; give the store a database of its own"
        )
    return None


def check_version(version: str | None, url: str) -> bool:
    """Whether the store is to be upgraded first; one of a newer version is refused.

    >>> check_version(HEAD, "sqlite:///venire.db")
    False
    >>> check_version("0001", "sqlite:///venire.db")
    True
    """
    if version is not None and version > HEAD:
        raise StoreError(
            f"the store {url} was written by a newer venire (schema {version}, this one knows "
            f"up to {HEAD}): upgrade venire, or restore the backup from before its upgrade"
        )
    return version != HEAD


def upgrade(connection: Connection, version: str = HEAD) -> None:
    """Run the migrations that are missing, in the transaction of the connection; logged."""
    from alembic.config import Config
    from alembic.runtime.environment import EnvironmentContext
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS))
    config.set_main_option("path_separator", "os")
    scripts = ScriptDirectory.from_config(config)
    steps = EnvironmentContext(
        config, scripts, fn=lambda now, _: scripts._upgrade_revs(version, now)
    )
    before = version_of(connection)
    if before is not None:
        LOG.info("the store is upgraded from schema %s to %s", before, version)
    with steps:
        steps.configure(
            connection,
            target_metadata=metadata,
            version_table=VERSION_TABLE,
            transactional_ddl=False,  # all of it is in the one transaction of the caller
        )
        steps.run_migrations()
