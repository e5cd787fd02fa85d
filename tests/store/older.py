"""Make the store of the schema before this one: `python -m tests.store.older`, after a migration.

Writes the `schema-NNNN.db` that are missing in tests/data, each out of the one before it and by its
migration alone. They stay as they are: later migrations are tried on them.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from unittest.mock import patch

from sqlalchemy import create_engine

from venire.server.store.sql import migrations

DATA = Path(__file__).parent.parent / "data"


def main() -> None:
    """Write what is missing, and say so."""
    for n in range(2, int(migrations.HEAD)):
        path = DATA / f"schema-{n:04}.db"
        if not path.exists():
            shutil.copyfile(DATA / f"schema-{n - 1:04}.db", path)
            known = migrations.MIGRATIONS[:n]
            with (
                patch.multiple(migrations, MIGRATIONS=known, HEAD=f"{n:04}"),
                create_engine(f"sqlite:///{path}").begin() as connection,
            ):
                migrations.upgrade(connection, str(path))
            sys.stdout.write(f"{path} is made: add it to the commit\n")


if __name__ == "__main__":
    main()
