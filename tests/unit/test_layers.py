"""What import-linter cannot say: the lower layers know no clock, web framework or database.

Its `forbidden` contract wants every source module listed by name, so a new package would escape it.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import venire
from venire.engine.replay import DECIDING
from venire.tools.compiling import NO_PART, WITH_KERNELS, source_files

ROOT = Path(venire.__file__).parent
CLOCKS = {"time", "datetime"}
WEB = {"fastapi", "starlette", "uvicorn"}
DATABASES = {"psycopg", "sqlalchemy"}
FREE = {"cli", "client", "connectors", "server"}
STORE = ROOT / "server" / "store"
HTTP = ROOT / "tools" / "http.py"  # waits, and says for how long


def layer_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imported(source: str) -> Iterator[str]:
    """Top-level packages that the source imports, also inside functions; a day is no clock."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            is_day = node.module == "datetime" and [a.name for a in node.names] == ["date"]
            yield from () if is_day else (node.module.partition(".")[0],)


LOWER = [
    path
    for path in sorted(ROOT.rglob("*.py"))
    if (layer_of(path) not in FREE and path != HTTP) or STORE in path.parents
]


@pytest.mark.parametrize("path", LOWER, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_lower_layers_import_no_clock_web_or_database(path: Path) -> None:
    forbidden = CLOCKS | WEB | (set() if STORE in path.parents else DATABASES)
    assert forbidden.isdisjoint(imported(path.read_text(encoding="utf-8")))


def test_imported_sees_every_form_of_import() -> None:
    source = "import time as t, numpy.linalg\ndef f():\n    from sqlalchemy.engine import Engine\n"
    source += "from datetime import date\n"
    assert set(imported(source + "from . import x\n")) == {"time", "numpy", "sqlalchemy"}


def test_parts_of_kernels_live_where_a_change_compiles_them_anew() -> None:
    parts = {layer_of(path) for path in ROOT.rglob("*.py") if "@inlined" in path.read_text()}
    assert parts <= set(WITH_KERNELS)


def test_what_a_digest_of_sources_leaves_out_is_no_part_of_them() -> None:
    """What kernels and the engine are made of never imports it, at any distance at the root."""
    left_out = {f"venire.{name.removesuffix('.py')}" for name in NO_PART}
    for packages in (WITH_KERNELS, DECIDING):
        files = source_files(packages)
        assert not {ROOT / name for name in NO_PART} & set(files)
        assert {ROOT / name for name in ("model.py", "costs.py", "events.py")} <= set(files)
        for path in files:
            if path.parent != ROOT or not path.name.startswith("__"):
                assert left_out.isdisjoint(modules(path.read_text(encoding="utf-8"))), path


def modules(source: str) -> Iterator[str]:
    """All names of modules that the source may import, also inside functions."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (node.module, *(f"{node.module}.{alias.name}" for alias in node.names))
