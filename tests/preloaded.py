"""What the process that `tests.forked` forks has imported, as `venire serve` would."""

import gc

import psycopg  # noqa: F401
import uvloop  # noqa: F401

from venire.cli import serve  # noqa: F401
from venire.server.process import prepare

prepare()
gc.freeze()  # or else collecting garbage would copy the pages that the forks share
